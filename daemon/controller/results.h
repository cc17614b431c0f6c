// What the machine counts and finds out, as messages of the Control service.
#pragma once

#include "emulator/sim/run.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/control.pb.h"

namespace percs {

void CountersToProto(const NodeStats& stats, v1::Counters* message);
void PortToProto(PortId port, const PortStats& stats, v1::PortCounters* message);
void ResultToProto(const RunResult& result, const Topology& topology, v1::RunResult* message);
void RerouteToProto(const Reroute& reroute, const Topology& topology, v1::Reroute* message);
// Without the blades, which are a list of their own.
void TopologyToProto(const TopologySpec& spec, v1::Topology* message);
void BladesToProto(const TopologySpec& spec,
                   google::protobuf::RepeatedPtrField<v1::BladeSite>* blades);
// `sn0-d0-h0/sn0-d1-h4`.
std::string EndsOf(const Topology& topology, LinkEnd link);
// The end by which a link is named: the lower one.
LinkEnd LowerEnd(const Topology& topology, LinkEnd link);

}  // namespace percs
