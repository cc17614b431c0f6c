#include "emulator/sim/lookahead.h"

#include <algorithm>
#include <set>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"

namespace percs {
namespace {
constexpr Time kDistributedLookaheadMin = 20 * kNanosecond;

// Hubs of PERCS have the same L ports; switches do not.
bool AnyConnected(const Topology& topology, PortId port) {
  const NodeId hubs = topology.graph() ? topology.hubs() : NodeId{1};
  for (NodeId node = 0; node < hubs; ++node) {
    if (topology.connected(node, port)) return true;
  }
  return false;
}

Lookahead OfClasses(const Topology& topology, const Scenario& scenario,
                    absl::FunctionRef<bool(LinkClass)> crosses) {
  const P7ihParameters& parameters = scenario.parameters;
  Lookahead best{parameters.management_latency, "management latency",
                 parameters.management_latency};
  const auto shorten = [&](const std::string& name, Time wire, LinkClass link_class) {
    const Time flit_time = parameters.link(link_class).flit_time;
    const bool ib = link_class == LinkClass::kIb;
    const Time credit = wire + parameters.credit_processing;
    const Time latency =
        ib ? std::max<Time>(0, parameters.ib_crossbar - flit_time) : parameters.isr_latency;
    const Time flit = latency + flit_time + wire;
    if (credit < best.time) {
      best.time = credit;
      best.source = fmt::format("credit on {}: wire {} + credit processing {}", name,
                                FormatTime(wire), FormatTime(parameters.credit_processing));
    }
    if (flit < best.time) {
      best.time = flit;
      best.source = fmt::format("flit on {}: ISR latency {} + flit time {} + wire {}", name,
                                FormatTime(latency), FormatTime(flit_time), FormatTime(wire));
    }
    best.flit = std::min(best.flit, flit);
  };
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!crosses(ClassOf(port))) continue;
    if (ClassOf(port) != LinkClass::kD && !AnyConnected(topology, port)) continue;
    if (ClassOf(port) == LinkClass::kD && topology.supernodes() < 2 && topology.blades() == 0 &&
        topology.gateway().node == kNoNode) {
      continue;
    }
    shorten(ClassName(ClassOf(port)), parameters.link(ClassOf(port)).wire, ClassOf(port));
  }
  if (topology.has_tree()) shorten("IB", parameters.ib.wire, LinkClass::kIb);
  for (const Cable& cable : scenario.cables) {
    const LinkClass link_class = topology.ClassOfLink(cable.link);
    if (crosses(link_class)) shorten(topology.LinkName(cable.link), cable.wire, link_class);
  }
  return best;
}

}  // namespace

Lookahead FindLookahead(const Topology& topology, const Scenario& scenario) {
  return OfClasses(topology, scenario, [](LinkClass) { return true; });
}

Lookahead FindHorizon(const Topology& topology, const Scenario& scenario) {
  return OfClasses(topology, scenario,
                   [](LinkClass link_class) { return link_class == LinkClass::kD; });
}

Lookahead FindCrossing(const Topology& topology, const Scenario& scenario,
                       const std::vector<std::uint16_t>& process_of_node) {
  std::set<LinkClass> crossing{LinkClass::kD};
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const LinkEnd peer = topology.Peer(node, port);
      if (peer.node != kNoNode && process_of_node[peer.node] != process_of_node[node])
        crossing.insert(topology.ClassOfLink({node, port}));
    }
  }
  return OfClasses(topology, scenario,
                   [&](LinkClass link_class) { return crossing.contains(link_class); });
}

absl::Status CheckDistributed(const Lookahead& lookahead) {
  if (lookahead.time >= kDistributedLookaheadMin) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the lookahead of a distributed run is {} ({}); at least {} are needed",
      FormatTime(lookahead.time), lookahead.source, FormatTime(kDistributedLookaheadMin)));
}

}  // namespace percs
