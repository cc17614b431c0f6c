// The channel dependency graph: which channel (a direction of a link and a VC) a packet may hold
// while it waits for which next one. Free of cycles = free of deadlock.
#pragma once

#include <string>
#include <vector>

#include "emulator/topology/topology.h"

namespace percs {

class ChannelGraph {
 public:
  ChannelGraph(const Topology& topology, VcPolicy policy);

  // A packet that came in on `in_port` at `position` may leave by `out_port`.
  void Add(NodeId node, PortId in_port, Position position, PortId out_port) {
    outputs_[Channel(node, in_port,
                     policy_ == VcPolicy::kSingle ? VcId{0} : VcOfPosition(position))] |=
        PortBit(out_port);
  }

  // The channels of one cycle by link name and VC, "a VC0 > b VC0 > a VC0"; empty when there is
  // none.
  std::string FindCycle() const;

 private:
  // A channel is named by its receiving end.
  std::size_t Channel(NodeId node, PortId port, VcId vc) const {
    return (static_cast<std::size_t>(node) * kLinkPorts + port) * kMaxVcs + vc;
  }
  std::size_t Next(std::size_t channel, PortId out_port) const;
  std::string Name(std::size_t channel) const;

  const Topology& topology_;
  VcPolicy policy_;
  std::vector<PortMask> outputs_;  // by channel
};

}  // namespace percs
