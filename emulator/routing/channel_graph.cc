#include "emulator/routing/channel_graph.h"

#include <algorithm>
#include <bit>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {

ChannelGraph::ChannelGraph(const Topology& topology, VcPolicy policy)
    : topology_(topology),
      policy_(policy),
      outputs_(static_cast<std::size_t>(topology.hubs()) * kLinkPorts * kMaxVcs) {}

std::size_t ChannelGraph::Next(std::size_t channel, PortId out_port) const {
  const std::size_t place = channel / kMaxVcs;
  const PortId in_port = static_cast<PortId>(place % kLinkPorts);
  const NodeId node = static_cast<NodeId>(place / kLinkPorts);
  VcId vc = 0;
  if (policy_ == VcPolicy::kPosition) {
    const Position next =
        NextPosition(PositionOf(in_port, static_cast<VcId>(channel % kMaxVcs)), out_port);
    PERCS_CHECK(next != kNoPosition);
    vc = VcOfPosition(next);
  }
  const LinkEnd peer = topology_.Peer(node, out_port);
  return Channel(peer.node, peer.port, vc);
}

std::string ChannelGraph::Name(std::size_t channel) const {
  const std::size_t place = channel / kMaxVcs;
  const LinkEnd sender = topology_.Peer(static_cast<NodeId>(place / kLinkPorts),
                                        static_cast<PortId>(place % kLinkPorts));
  return fmt::format("{} VC{}", topology_.LinkName(sender), channel % kMaxVcs);
}

std::string ChannelGraph::FindCycle() const {
  enum : std::uint8_t { kNew, kOnPath, kDone };
  struct Visit {
    std::size_t channel;
    PortMask rest;
  };
  std::vector<std::uint8_t> state(outputs_.size(), kNew);
  std::vector<Visit> path;
  for (std::size_t start = 0; start < outputs_.size(); ++start) {
    if (state[start] != kNew || !outputs_[start]) continue;
    path.push_back({start, outputs_[start]});
    state[start] = kOnPath;
    while (!path.empty()) {
      Visit& top = path.back();
      if (!top.rest) {
        state[top.channel] = kDone;
        path.pop_back();
        continue;
      }
      const std::size_t next = Next(top.channel, static_cast<PortId>(std::countr_zero(top.rest)));
      top.rest &= top.rest - 1;
      if (state[next] == kOnPath) {
        const auto first = std::find_if(path.begin(), path.end(),
                                        [&](const Visit& visit) { return visit.channel == next; });
        std::string names;
        for (auto it = first; it != path.end(); ++it) names += Name(it->channel) + " > ";
        return names + Name(next);
      }
      if (state[next] == kNew) {
        state[next] = kOnPath;
        path.push_back({next, outputs_[next]});
      }
    }
  }
  return "";
}

}  // namespace percs
