#include "emulator/routing/forwarding.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "fmt/format.h"

namespace percs {
namespace {

using roadrunner::IbTree;

constexpr std::size_t kCrossbarsMax = 7;  // a packet passes: leaf, spine, leaf, A, B, A, leaf

bool Dead(const Topology& topology, const Failures& failures, LinkEnd end) {
  const LinkEnd far = topology.Peer(end.node, end.port);
  const auto name = std::min(std::pair(end.node, end.port), std::pair(far.node, far.port));
  return failures.links.contains(name) || failures.hubs.contains(end.node) ||
         failures.hubs.contains(far.node);
}

// The port of the leaf crossbar that an endpoint is plugged into.
LinkEnd LeafPort(const Topology& topology, int endpoint) {
  const NodeId blade = topology.BladeAtEndpoint(endpoint);
  if (blade != kNoNode) return topology.BladePeer(blade);
  return {topology.crossbar_node(topology.tree().LeafOf(endpoint)), kBladePort};
}

IbTree WithFailures(const Topology& topology, const Failures& failures) {
  IbTree tree = topology.tree();
  for (int crossbar = 0; crossbar < tree.crossbars(); ++crossbar) {
    const NodeId node = topology.crossbar_node(crossbar);
    if (failures.hubs.contains(node)) tree.SetCrossbar(crossbar, false);
  }
  const auto cut = [&](LinkEnd end) {
    if (!topology.is_crossbar(end.node)) return;
    const int crossbar = topology.crossbar_of(end.node);
    const int port = end.port == kBladePort ? tree.PortOfTriblade(0) : end.port - kIbFirst;
    tree.SetCable(tree.Out(crossbar, port), false);
  };
  for (const auto& [node, port] : failures.links) {
    cut({node, port});
    cut(topology.Peer(node, port));
  }
  if (topology.gateway().node != kNoNode && failures.hubs.contains(topology.gateway().node)) {
    cut(LeafPort(topology, 0));
  }
  return tree;
}

}  // namespace

void PlanForwarding(const Topology& topology, const Failures& failures, TableSet* tables) {
  const IbTree tree = WithFailures(topology, failures);
  const int endpoints = tree.triblades();
  // The shape every node's tables have; the tree's nodes use nothing of it.
  const auto none = std::make_shared<const RouteTable>(
      RouteTable{std::vector<PortMask>(static_cast<std::size_t>(topology.hubs_per_supernode())),
                 std::vector<PortMask>(static_cast<std::size_t>(topology.supernodes()))});
  const auto set = [&](NodeId node, std::vector<PortId> ports) {
    auto made = std::make_shared<HubTables>();
    made->source_direct = made->source_striped = made->source_indirect = none;
    made->port_direct.fill(none);
    made->port_indirect.fill(none);
    made->forwarding = std::move(ports);
    (*tables)[node] = std::move(made);
  };
  const auto count = static_cast<std::size_t>(endpoints);
  for (int crossbar = 0; crossbar < tree.crossbars(); ++crossbar) {
    std::vector<PortId> ports(count, kNoPort);
    for (int to = 0; to < endpoints; ++to) {
      const LinkEnd last = LeafPort(topology, to);
      if (!tree.alive(tree.Out(tree.LeafOf(to), tree.PortOfTriblade(to))))
        continue;  // no hub can reach it
      const int port = tree.NextPort(crossbar, to);
      if (port < 0 || !tree.alive(tree.Out(crossbar, port))) continue;
      ports[static_cast<std::size_t>(to)] =
          crossbar == tree.LeafOf(to) ? last.port : static_cast<PortId>(kIbFirst + port);
    }
    set(topology.crossbar_node(crossbar), std::move(ports));
  }
  std::vector<std::vector<PortId>> by_leaf(static_cast<std::size_t>(tree.crossbars()));
  for (int from = 0; from < endpoints; ++from) {
    const NodeId blade = topology.BladeAtEndpoint(from);
    if (blade == kNoNode) continue;
    std::vector<PortId>& ports = by_leaf[static_cast<std::size_t>(tree.LeafOf(from))];
    const bool cabled = tree.Route(from, from).ok();  // to its leaf and back
    if (!cabled) {
      set(blade, std::vector<PortId>(count, kNoPort));
      continue;
    }
    for (int to = static_cast<int>(ports.size()); to < endpoints; ++to) {
      ports.push_back(tree.Route(from, to).ok() ? kBladePort : kNoPort);
    }
    set(blade, ports);
  }
}

namespace {

class ForwardingCheck {
 public:
  ForwardingCheck(const Topology& topology, const Failures& failures, const TableSet& tables)
      : topology_(topology),
        failures_(failures),
        tables_(tables),
        onward_(topology.crossbars() * static_cast<std::size_t>(kLinkPorts)) {}

  absl::Status Run(CheckReport* report);

 private:
  absl::Status Wrong(const std::string& message) const {
    return absl::FailedPreconditionError("forwarding tables: " + message);
  }
  std::size_t endpoints() const { return static_cast<std::size_t>(topology_.tree().triblades()); }
  std::string Name(int endpoint) const {
    const NodeId blade = topology_.BladeAtEndpoint(endpoint);
    return blade == kNoNode ? "the gateway" : topology_.NodeName(blade);
  }
  absl::Status CheckSizes() const;
  // The endpoints that the tables lead to from a leaf crossbar.
  absl::Status FromLeaf(NodeId leaf, std::vector<bool>* reached);
  // `*reached` is false if the leaf's table has no port.
  absl::Status Walk(NodeId leaf, int to, bool* reached);
  std::size_t Index(LinkEnd in) const {
    return static_cast<std::size_t>(topology_.crossbar_of(in.node)) * kLinkPorts + in.port;
  }
  std::string FindCycle();
  bool Visit(LinkEnd in, std::string* cycle);

  const Topology& topology_;
  const Failures& failures_;
  const TableSet& tables_;
  std::vector<PortMask>
      onward_;  // by crossbar and the port a packet came in on: the ports it may wait for
  std::vector<std::uint8_t> visited_;
  std::vector<NodeId> way_;
};

absl::Status ForwardingCheck::CheckSizes() const {
  for (NodeId node = topology_.hubs(); node < topology_.nodes(); ++node) {
    if (!topology_.in_tree(node)) continue;
    if (!tables_[node] || tables_[node]->forwarding.size() != endpoints()) {
      return Wrong(
          fmt::format("{} has no table of {} endpoints", topology_.NodeName(node), endpoints()));
    }
  }
  return absl::OkStatus();
}

absl::Status ForwardingCheck::Walk(NodeId leaf, int to, bool* reached) {
  const LinkEnd target = LeafPort(topology_, to);
  std::vector<NodeId>& way = way_;
  way.clear();
  const auto wrong = [&](const std::string& what) {
    std::string text;
    for (const NodeId node : way) text += topology_.NodeName(node) + " > ";
    return Wrong(fmt::format("{}{}, on the way to {}", text, what, Name(to)));
  };
  *reached = false;
  // A packet from an endpoint holds nothing that others wait for, so where it came in is no part of
  // a cycle.
  for (LinkEnd in{leaf, kNoPort};;) {
    way.push_back(in.node);
    if (way.size() > kCrossbarsMax)
      return wrong(fmt::format("more than {} crossbars", kCrossbarsMax));
    const PortId out = tables_[in.node]->forwarding[static_cast<std::size_t>(to)];
    if (out == kNoPort) return way.size() == 1 ? absl::OkStatus() : wrong("nothing");
    const LinkEnd link{in.node, out}, next = topology_.Peer(in.node, out);
    if (next.node == kNoNode || Dead(topology_, failures_, link)) {
      return wrong(topology_.LinkName(link) + ", which is not a live cable");
    }
    if (in.port != kNoPort) onward_[Index(in)] |= PortBit(out);
    if (link == target) {
      *reached = true;
      return absl::OkStatus();
    }
    if (!topology_.is_crossbar(next.node)) return wrong(topology_.NodeName(next.node));
    in = next;
  }
}

absl::Status ForwardingCheck::FromLeaf(NodeId leaf, std::vector<bool>* reached) {
  reached->resize(endpoints());
  for (std::size_t to = 0; to < endpoints(); ++to) {
    bool there = false;
    if (auto s = Walk(leaf, static_cast<int>(to), &there); !s.ok()) return s;
    (*reached)[to] = there;
  }
  return absl::OkStatus();
}

// Depth first; 1: on the way, 2: done.
bool ForwardingCheck::Visit(LinkEnd in, std::string* cycle) {
  std::uint8_t& state = visited_[Index(in)];
  if (state == 2) return false;
  *cycle += (cycle->empty() ? "" : " > ") + topology_.LinkName(in);
  if (state == 1) return true;
  state = 1;
  for (PortMask rest = onward_[Index(in)]; rest; rest &= rest - 1) {
    const LinkEnd next = topology_.Peer(in.node, static_cast<PortId>(std::countr_zero(rest)));
    if (!topology_.is_crossbar(next.node)) continue;  // an endpoint takes what comes
    const std::size_t length = cycle->size();
    if (Visit(next, cycle)) return true;
    cycle->resize(length);
  }
  visited_[Index(in)] = 2;
  return false;
}

std::string ForwardingCheck::FindCycle() {
  visited_.assign(onward_.size(), 0);
  std::string cycle;
  for (std::size_t i = 0; i < onward_.size(); ++i) {
    const LinkEnd in{topology_.crossbar_node(static_cast<int>(i / kLinkPorts)),
                     static_cast<PortId>(i % kLinkPorts)};
    cycle.clear();
    if (onward_[i] != 0 && Visit(in, &cycle)) return cycle;
  }
  return "";
}

absl::Status ForwardingCheck::Run(CheckReport* report) {
  if (auto s = CheckSizes(); !s.ok()) return s;
  const int count = static_cast<int>(endpoints());
  std::vector<std::vector<bool>> from_leaf(topology_.crossbars());
  for (int from = 0; from < count; ++from) {
    const LinkEnd in = LeafPort(topology_, from);
    const NodeId blade = topology_.BladeAtEndpoint(from);
    const bool cabled = !Dead(topology_, failures_, in);
    std::vector<bool>& reached_from =
        from_leaf[static_cast<std::size_t>(topology_.crossbar_of(in.node))];
    if (cabled && reached_from.empty()) {
      if (auto s = FromLeaf(in.node, &reached_from); !s.ok()) return s;
    }
    for (int to = 0; to < count; ++to) {
      const bool reached = cabled && reached_from[static_cast<std::size_t>(to)];
      const NodeId peer = topology_.BladeAtEndpoint(to);
      if (!reached && to != from) {
        ++report->unreachable_pairs;
        if (report->unreachable.size() < CheckReport::kListedMax && blade != kNoNode &&
            peer != kNoNode) {
          report->unreachable.push_back({blade, peer, std::string("no live cables join them")});
        }
      }
      if (blade == kNoNode) continue;
      const PortId said = tables_[blade]->forwarding[static_cast<std::size_t>(to)];
      if (said == (reached ? kBladePort : kNoPort)) continue;
      return Wrong(fmt::format("{} {} be reached from {}, whose table says otherwise", Name(to),
                               reached ? "can" : "cannot", topology_.NodeName(blade)));
    }
  }
  if (const std::string cycle = FindCycle(); !cycle.empty()) {
    return Wrong("packets may wait for each other in a cycle of links: " + cycle);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckForwarding(const Topology& topology, const Failures& failures,
                             const TableSet& tables, CheckReport* report) {
  return ForwardingCheck(topology, failures, tables).Run(report);
}

}  // namespace percs
