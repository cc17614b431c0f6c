#include "emulator/sim/lookahead.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs {
namespace {
constexpr Time kDistributedLookaheadMin = 20 * kNanosecond;

// What crosses a link of such a wire: a credit, or a flit.
void Shorten(const P7ihParameters& parameters, const std::string& name, Time wire,
             LinkClass link_class, Lookahead* best) {
  const Time flit_time = parameters.link(link_class).flit_time;
  const bool ib = link_class == LinkClass::kIb;
  const Time credit = wire + parameters.credit_processing;
  const Time latency =
      ib ? std::max<Time>(0, parameters.ib_crossbar - flit_time) : parameters.isr_latency;
  const Time flit = latency + flit_time + wire;
  if (credit < best->time) {
    *best = {credit, fmt::format("credit on {}: wire {} + credit processing {}", name,
                                 FormatTime(wire), FormatTime(parameters.credit_processing))};
  }
  if (flit < best->time) {
    *best = {flit, fmt::format("flit on {}: ISR latency {} + flit time {} + wire {}", name,
                               FormatTime(latency), FormatTime(flit_time), FormatTime(wire))};
  }
}

}  // namespace

Lookahead FindLookahead(const Topology& topology, const Scenario& scenario) {
  const P7ihParameters& parameters = scenario.parameters;
  Lookahead best{parameters.management_latency, "management latency"};
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!topology.connected(0, port) && ClassOf(port) != LinkClass::kD) continue;
    if (ClassOf(port) == LinkClass::kD && topology.supernodes() < 2 && topology.blades() == 0 &&
        topology.gateway().node == kNoNode) {
      continue;
    }
    Shorten(parameters, ClassName(ClassOf(port)), parameters.link(ClassOf(port)).wire,
            ClassOf(port), &best);
  }
  if (topology.has_tree()) Shorten(parameters, "IB", parameters.ib.wire, LinkClass::kIb, &best);
  for (const Cable& cable : scenario.cables) {
    Shorten(parameters, topology.LinkName(cable.link), cable.wire, topology.ClassOfLink(cable.link),
            &best);
  }
  return best;
}

Time FindSupernodeLookahead(const Topology& topology, const Scenario& scenario) {
  const P7ihParameters& parameters = scenario.parameters;
  Lookahead best{parameters.management_latency, ""};
  Shorten(parameters, "D", parameters.d.wire, LinkClass::kD, &best);
  for (const Cable& cable : scenario.cables) {
    if (topology.ClassOfLink(cable.link) != LinkClass::kD) continue;
    Shorten(parameters, "D", cable.wire, LinkClass::kD, &best);
  }
  return best.time;
}

absl::Status CheckDistributed(const Lookahead& lookahead) {
  if (lookahead.time >= kDistributedLookaheadMin) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the lookahead of a distributed run is {} ({}); at least {} are needed",
      FormatTime(lookahead.time), lookahead.source, FormatTime(kDistributedLookaheadMin)));
}

}  // namespace percs
