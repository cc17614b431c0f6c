#include "emulator/routing/check_blades.h"

#include <algorithm>
#include <string>

#include "emulator/routing/planner.h"
#include "emulator/routing/table_error.h"
#include "fmt/format.h"

namespace percs {
namespace {

bool Live(const Topology& topology, const LiveFabric& live, const Failures& failures,
          NodeId blade) {
  const LinkEnd socket = topology.BladePeer(blade);
  return topology.ExitHub(blade) != kNoNode && live.hub(socket.node) &&
         !failures.links.contains({socket.node, socket.port});
}

bool All(const std::vector<PortMask>& masks, PortMask wanted) {
  return std::all_of(masks.begin(), masks.end(), [&](PortMask mask) { return mask == wanted; });
}

absl::Status CheckBlade(const Topology& topology, NodeId blade, bool live, const TableSet& tables) {
  const std::string name = topology.NodeName(blade);
  const HubTables* own = tables[blade].get();
  if (!own || !own->source_direct) return TablesWrong(fmt::format("{} has no table", name));
  const PortMask wanted = live ? PortBit(kBladePort) : 0;
  if (!All(own->source_direct->intra, wanted) || !All(own->source_direct->inter, wanted)) {
    return TablesWrong(fmt::format("{} must send everything {}, but a table says otherwise", name,
                                   live ? "through " + topology.LinkName({blade, kBladePort})
                                        : "nowhere, because its link is down"));
  }
  if (!live) return absl::OkStatus();
  const LinkEnd socket = topology.BladePeer(blade);
  const HubTables& hub = *tables[socket.node];
  if (*hub.port_direct[socket.port] == *hub.source_direct &&
      *hub.port_indirect[socket.port] == *hub.source_indirect) {
    return absl::OkStatus();
  }
  return TablesWrong(fmt::format(
      "the table of {} differs from the source table of {}, where packets from {} start",
      topology.LinkName(socket), topology.NodeName(socket.node), name));
}

}  // namespace

absl::Status CheckBlades(const Topology& topology, const LiveFabric& live, const Failures& failures,
                         const TableSet& tables, CheckReport* report) {
  std::uint64_t live_nodes = 0, cut_off = 0;
  for (NodeId hub = 0; hub < topology.hubs(); ++hub) live_nodes += live.hub(hub) ? 1 : 0;
  for (NodeId blade = topology.hubs(); blade < topology.nodes(); ++blade) {
    if (topology.in_tree(blade)) continue;  // CheckForwarding
    const bool on = Live(topology, live, failures, blade);
    if (auto s = CheckBlade(topology, blade, on, tables); !s.ok()) return s;
    if (topology.ExitHub(blade) == kNoNode) continue;  // never was part of it
    ++(on ? live_nodes : cut_off);
  }
  // Every pair with a blade that is cut off, in both directions.
  report->unreachable_pairs += 2 * cut_off * live_nodes + cut_off * cut_off - cut_off;
  return absl::OkStatus();
}

}  // namespace percs
