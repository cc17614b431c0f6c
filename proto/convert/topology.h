// The topology of a run, which names in its results need.
#pragma once

#include "emulator/topology/topology.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/scenario.pb.h"

namespace percs {

// Without the blades, which are a list of their own.
void TopologyToProto(const TopologySpec& spec, v1::Topology* message);
void BladesToProto(const TopologySpec& spec,
                   google::protobuf::RepeatedPtrField<v1::BladeSite>* blades);
absl::StatusOr<Topology> TopologyFromProto(
    const v1::Topology& message, const google::protobuf::RepeatedPtrField<v1::BladeSite>& blades);

}  // namespace percs
