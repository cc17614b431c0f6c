// What a node counts, as messages and back. The tables in emulator/metrics list the counters. A
// counter stands in the field of its name, or, if there is no such field, in the map `counts` of
// its message; counters that are zero are left out.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/metrics/node_stats.h"
#include "percs/v1/common.pb.h"

namespace percs {

void CountersToProto(const NodeStats& stats, v1::Counters* message);
// INVALID_ARGUMENT names a port, a VC or a counter that this version does not know.
absl::StatusOr<NodeStats> CountersFromProto(const v1::Counters& message);

void PortToProto(PortId port, const PortStats& stats, v1::PortCounters* message);

// Every integer in the order of NodeStats::Visit, for processes of one version among themselves.
using PackedStats = google::protobuf::RepeatedField<std::uint64_t>;
void PackStats(const NodeStats& stats, PackedStats* packed);
// INVALID_ARGUMENT if there are not as many as NodeStats has.
absl::StatusOr<NodeStats> UnpackStats(const PackedStats& packed);

}  // namespace percs
