#include "emulator/routing/graph_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "emulator/routing/live_fabric.h"

namespace percs {
namespace {

constexpr std::uint32_t kFar = 0xffffffffu;

class GraphPlan {
 public:
  GraphPlan(const Topology& topology, const Failures& failures)
      : topology_(topology),
        graph_(*topology.graph()),
        failures_(failures),
        live_(LivePorts(topology, failures)),
        by_rank_(graph_.switches()),
        fresh_(graph_.switches()),
        came_down_(graph_.switches()),
        none_(std::make_shared<const RouteTable>(
            RouteTable{std::vector<PortMask>(graph_.switches()), std::vector<PortMask>(1)})) {
    std::iota(by_rank_.begin(), by_rank_.end(), NodeId{0});
    std::sort(by_rank_.begin(), by_rank_.end(),
              [&](NodeId a, NodeId b) { return graph_.rank(a) < graph_.rank(b); });
    for (NodeId node = 0; node < graph_.switches(); ++node) {
      fresh_[node].assign(graph_.switches(), 0);
      came_down_[node].assign(graph_.switches(), 0);
    }
  }

  TableSet Tables() {
    for (NodeId to = 0; to < graph_.switches(); ++to) {
      if (failures_.hubs.contains(to)) continue;
      if (Planned(to)) continue;
      Detour(to);
      detours_.push_back(to);
    }
    TableSet tables;
    for (NodeId node = 0; node < graph_.switches(); ++node) tables.push_back(Make(node));
    return tables;
  }

 private:
  NodeId Far(NodeId node, PortId port) const { return graph_.Peer(node, port).node; }

  // Sets the entries of all switches for planned routes to `to`; false: some leaf has none.
  bool Planned(NodeId to) {
    std::vector<std::uint8_t> state(graph_.switches(), kUnknown);
    state[to] = kGood;
    for (NodeId node = 0; node < graph_.switches(); ++node) {
      const bool served = live_[node] == 0 || Leads(node, to, &state);  // one that is cut off waits
      if (!served && node < graph_.leaves()) {
        for (NodeId set = 0; set < graph_.switches(); ++set) fresh_[set][to] = 0;
        return false;
      }
    }
    for (NodeId node = 0; node < graph_.switches(); ++node) came_down_[node][to] = fresh_[node][to];
    return true;
  }
  // Planned routes have no loops, so this ends; they are as long as the network is wide.
  bool Leads(NodeId node, NodeId to, std::vector<std::uint8_t>* state) {
    std::uint8_t& here = (*state)[node];
    if (here != kUnknown) return here == kGood;
    PortMask good = 0;
    for (PortMask rest = graph_.Planned(node, to) & live_[node]; rest; rest &= rest - 1) {
      const auto port = static_cast<PortId>(std::countr_zero(rest));
      if (Leads(Far(node, port), to, state)) good |= PortBit(port);
    }
    fresh_[node][to] = good;
    here = good != 0 ? kGood : kBad;
    return good != 0;
  }

  // Shortest ways up, then down.
  void Detour(NodeId to) {
    std::vector<std::uint32_t> down(graph_.switches(), kFar);
    down[to] = 0;
    std::vector<NodeId> reached{to};
    for (std::size_t i = 0; i < reached.size(); ++i) {  // against the links, so up
      ForEachPort(reached[i], [&](PortId, NodeId above) {
        if (!graph_.Up(reached[i], above) || down[above] != kFar) return;
        down[above] = down[reached[i]] + 1;
        reached.push_back(above);
      });
    }
    std::vector<std::uint32_t> any = down;
    for (const NodeId node : by_rank_) {  // what is above it comes before it
      ForEachPort(node, [&](PortId, NodeId far) {
        if (graph_.Up(node, far) && any[far] != kFar) any[node] = std::min(any[node], any[far] + 1);
      });
    }
    for (NodeId node = 0; node < graph_.switches(); ++node) {
      if (node == to) continue;
      ForEachPort(node, [&](PortId port, NodeId far) {
        const bool up = graph_.Up(node, far);
        const std::uint32_t left = up ? any[far] : down[far];
        if (left == kFar) return;
        if (left + 1 == any[node]) fresh_[node][to] |= PortBit(port);
        if (!up && left + 1 == down[node]) came_down_[node][to] |= PortBit(port);
      });
    }
  }
  template <typename Visit>
  void ForEachPort(NodeId node, Visit visit) const {
    for (PortMask rest = live_[node]; rest; rest &= rest - 1) {
      const auto port = static_cast<PortId>(std::countr_zero(rest));
      visit(port, Far(node, port));
    }
  }

  std::shared_ptr<const HubTables> Make(NodeId node) const {
    const std::vector<PortMask> inter(1);
    const auto fresh = std::make_shared<const RouteTable>(RouteTable{fresh_[node], inter});
    const auto down = fresh_[node] == came_down_[node]
                          ? fresh
                          : std::make_shared<const RouteTable>(RouteTable{came_down_[node], inter});
    auto made = std::make_shared<HubTables>();
    made->source_direct = made->source_striped = fresh;
    made->source_indirect = none_;
    made->port_indirect.fill(none_);
    for (int p = 0; p < kLinkPorts; ++p) {
      const NodeId far = Far(node, static_cast<PortId>(p));
      made->port_direct[static_cast<std::size_t>(p)] =
          far != kNoNode && !graph_.Up(far, node) ? down : fresh;
    }
    made->detours = detours_;
    return made;
  }

  enum : std::uint8_t { kUnknown, kGood, kBad };
  const Topology& topology_;
  const SwitchGraph& graph_;
  const Failures& failures_;
  std::vector<PortMask> live_;
  std::vector<NodeId> by_rank_;
  std::vector<std::vector<PortMask>> fresh_, came_down_;  // by switch, then destination
  std::vector<NodeId> detours_;
  const std::shared_ptr<const RouteTable> none_;  // of all switches: no indirect routes
};

}  // namespace

TableSet PlanGraph(const Topology& topology, const Failures& failures) {
  return GraphPlan(topology, failures).Tables();
}

}  // namespace percs
