// The report on the global clock as a message.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/clock/clock_report.h"
#include "percs/v1/common.pb.h"

namespace percs {

void ClockToProto(const ClockReport& clock, v1::ClockReport* message);
ClockReport ClockFromProto(const v1::ClockReport& message);

// Samples as sync.proto packs them.
using PackedSamples = google::protobuf::RepeatedField<google::protobuf::int64>;
void PackSamples(const std::vector<ClockSample>& samples, PackedSamples* packed);
absl::StatusOr<std::vector<ClockSample>> UnpackSamples(const PackedSamples& packed);

}  // namespace percs
