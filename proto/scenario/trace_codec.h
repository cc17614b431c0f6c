// Traced packets as messages: which to follow, what hubs recorded, and what became of them.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "emulator/sim/traced_packet.h"
#include "percs/v1/common.pb.h"

namespace percs {

inline constexpr const char* kAllKinds = "all";  // of packets, also those of management

// NOT_FOUND or INVALID_ARGUMENT says what is wrong with it.
absl::StatusOr<TraceSelection> SelectionFromProto(const v1::TraceSelection& message,
                                                  const Topology& topology);

using TraceEventList = google::protobuf::RepeatedPtrField<v1::TraceEvent>;
void EventsToProto(const std::vector<TraceEvent>& events, TraceEventList* list);
// INVALID_ARGUMENT for one that no hub can have recorded.
absl::StatusOr<std::vector<TraceEvent>> EventsFromProto(const TraceEventList& list,
                                                        const Topology& topology);

using TracedPacketList = google::protobuf::RepeatedPtrField<v1::TracedPacket>;
void TracedToProto(const std::vector<TracedPacket>& packets, const Topology& topology,
                   TracedPacketList* list);

}  // namespace percs
