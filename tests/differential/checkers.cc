#include "tests/differential/checkers.h"

#include <map>
#include <tuple>

#include "fmt/format.h"

namespace percs::reference {

std::vector<std::string> CheckConservation(const std::vector<NodeStats>& nodes) {
  std::uint64_t flits_in = 0, flits_out = 0, packets_in = 0, packets_out = 0;
  for (const NodeStats& s : nodes) {
    flits_in += s.flits_created + s.flits_synthesised + s.flits_replicated;
    packets_in += s.packets_created + s.packets_synthesised + s.packets_replicated;
    flits_out += s.flits_delivered;
    packets_out += s.packets_delivered;
    for (std::uint64_t v : s.flits_dropped) flits_out += v;
    for (std::uint64_t v : s.packets_dropped) packets_out += v;
  }
  std::vector<std::string> wrong;
  if (flits_in != flits_out) {
    wrong.push_back(fmt::format("flits: created and synthesised {}, delivered and dropped {}",
                                flits_in, flits_out));
  }
  if (packets_in != packets_out) {
    wrong.push_back(fmt::format("packets: created and synthesised {}, delivered and dropped {}",
                                packets_in, packets_out));
  }
  return wrong;
}

std::vector<std::string> CheckFlitOrder(const std::vector<std::vector<ReferenceGrant>>& grants,
                                        const P7ihParameters& parameters, bool links_failed) {
  std::vector<std::string> wrong;
  for (std::size_t node = 0; node < grants.size(); ++node) {
    struct Open {
      NodeId source;
      std::uint64_t sequence;
      PortId input;
      VcId input_vc;
      int next_flit;
    };
    std::map<std::pair<int, int>, Open> open;  // by (output, VC)
    std::map<int, Time> busy_until;
    for (const ReferenceGrant& g : grants[node]) {
      const auto complain = [&](std::string_view what) {
        wrong.push_back(fmt::format("node {} port {} VC {} at {}: packet ({}, {}) flit {} {}", node,
                                    g.output, g.output_vc, g.time, g.source, g.sequence,
                                    g.first_flit, what));
      };
      if (g.time < busy_until[g.output]) complain("while the port was busy");
      busy_until[g.output] = g.time + g.flits * parameters.link(ClassOf(g.output)).flit_time;
      auto it = open.find({g.output, g.output_vc});
      const bool same_packet =
          it != open.end() && it->second.source == g.source && it->second.sequence == g.sequence;
      // Branches of a multicast packet may meet under random tables. Copies differ by their input,
      // unless they met before; then one follows another only if a link cut that.
      const bool same =
          same_packet && it->second.input == g.input && it->second.input_vc == g.input_vc;
      if (g.first_flit == 0) {
        if (same && !(links_failed && g.multicast)) complain("sent twice");
        if (it != open.end() && !same && !links_failed) {
          complain("on the VC of another packet or copy");
        }
      } else if (!same) {
        complain("of a packet that has not begun there");
      } else if (it->second.next_flit != g.first_flit) {
        complain("out of order");
      }
      if (g.tail) {
        open.erase({g.output, g.output_vc});
      } else {
        open[{g.output, g.output_vc}] = {g.source, g.sequence, g.input, g.input_vc,
                                         g.first_flit + g.flits};
      }
    }
  }
  return wrong;
}

std::vector<std::string> CheckVcPositions(const std::vector<std::vector<ReferenceGrant>>& grants,
                                          const Topology* topology) {
  const auto edge = [&](std::size_t node, PortId port) {
    if (topology == nullptr || port >= kLinkPorts) return false;
    return topology->is_blade(topology->Peer(static_cast<NodeId>(node), port).node);
  };
  std::vector<std::string> wrong;
  // In a graph it depends on tables, which grants do not name; the reference works it out.
  if (topology != nullptr && topology->graph() != nullptr) return wrong;
  for (std::size_t node = 0; node < grants.size(); ++node) {
    for (const ReferenceGrant& g : grants[node]) {
      if ((IsHfi(g.output) || edge(node, g.output)) && g.output_vc == 0) continue;
      const Position from = edge(node, g.input) ? kInjected : PositionOf(g.input, g.input_vc);
      const Position next = NextPosition(from, g.output);
      if (!IsHfi(g.output) && next != kNoPosition && VcOfPosition(next) == g.output_vc) continue;
      wrong.push_back(
          fmt::format("node {} at {}: packet ({}, {}) from port {} VC {} to port {} VC {}", node,
                      g.time, g.source, g.sequence, g.input, g.input_vc, g.output, g.output_vc));
    }
  }
  return wrong;
}

std::vector<std::string> CheckDrained(const ReferenceResult& result) {
  std::vector<std::string> wrong;
  if (result.resident_packets != 0) {
    wrong.push_back(fmt::format("deadlock: {} packets wait for ever", result.resident_packets));
  }
  if (result.credits_wrong != 0) {
    wrong.push_back(fmt::format("{} VCs without all their credits", result.credits_wrong));
  }
  return wrong;
}

}  // namespace percs::reference
