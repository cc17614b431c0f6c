#include "emulator/routing/check_multicast.h"

#include <algorithm>
#include <bit>

#include "emulator/routing/multicast_plan.h"
#include "emulator/routing/table_error.h"
#include "fmt/format.h"

namespace percs {
namespace {

class GroupCheck {
 public:
  GroupCheck(const Topology& topology, const TreeRules& rules, const TableSet& tables,
             std::size_t group, CheckReport* report)
      : topology_(topology),
        rules_(rules),
        tables_(tables),
        group_(group),
        report_(report),
        reached_by_(topology.hubs(), kNoNode) {}

  absl::Status Run() {
    const MulticastGroup& group = topology_.groups()[group_];
    if (!rules_.alive(group.source)) return absl::OkStatus();
    reached_by_[group.source] = group.source;
    if (auto s = Visit({.node = group.source}, 0); !s.ok()) return s;
    const std::vector<bool> legal = rules_.reach(group.source);
    for (const NodeId member : group.members) {
      if (std::binary_search(delivered_.begin(), delivered_.end(), member)) continue;
      if (legal[member]) {
        return Wrong(fmt::format("its member {} is not reached", topology_.NodeName(member)));
      }
      ++report_->members_unreachable;
    }
    return absl::OkStatus();
  }

 private:
  NodeId Group() const { return topology_.nodes() + static_cast<NodeId>(group_); }
  absl::Status Wrong(const std::string& what) const {
    return TablesWrong(fmt::format("multicast group {}: {}", topology_.NodeName(Group()), what));
  }
  absl::Status Deliver(NodeId node, int hops) {
    const auto& members = topology_.groups()[group_].members;
    if (!std::binary_search(members.begin(), members.end(), node)) {
      return Wrong(fmt::format("delivers to {}, which is not a member", topology_.NodeName(node)));
    }
    delivered_.insert(std::lower_bound(delivered_.begin(), delivered_.end(), node), node);
    report_->multicast_hops_max = std::max(report_->multicast_hops_max, hops);
    return absl::OkStatus();
  }
  absl::Status Visit(const TreePlace& here, int hops) {
    const NodeId node = here.node;
    const PortMask entry = tables_[node]->Multicast(group_);
    if (entry == 0) {
      if (here.in == kNoPort)
        return absl::OkStatus();  // members that are missed are reported below
      return Wrong(fmt::format("leads to {}, which has no entry for it", topology_.NodeName(node)));
    }
    if (entry & HubTables::kDeliverHere) {
      if (auto s = Deliver(node, hops); !s.ok()) return s;
    }
    for (PortMask ports = entry & ~HubTables::kDeliverHere; ports; ports &= ports - 1) {
      const PortId port = static_cast<PortId>(std::countr_zero(ports));
      const std::string link = topology_.LinkName({node, port});
      if (port >= kLinkPorts || !rules_.live(node, port)) {
        return Wrong(fmt::format("would leave by {}, which is not a live link", link));
      }
      const Position next = rules_.next(Group(), here, port);
      if (next == kNoPosition) {
        return Wrong(fmt::format("would leave by {}, for which no VC position is left", link));
      }
      const LinkEnd peer = topology_.Peer(node, port);
      if (reached_by_[peer.node] != kNoNode) {
        return Wrong(fmt::format(
            "is not a tree: {} is reached from {} and from {}", topology_.NodeName(peer.node),
            topology_.NodeName(reached_by_[peer.node]), topology_.NodeName(node)));
      }
      reached_by_[peer.node] = node;
      if (here.in != kNoPort) rules_.may_wait(here, port, next);
      if (auto s = Visit({peer.node, peer.port, next}, hops + 1); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  const Topology& topology_;
  const TreeRules& rules_;
  const TableSet& tables_;
  const std::size_t group_;
  CheckReport* report_;
  std::vector<NodeId> reached_by_;
  std::vector<NodeId> delivered_;  // ascending
};

}  // namespace

absl::Status CheckTrees(const Topology& topology, const TreeRules& rules, const TableSet& tables,
                        CheckReport* report) {
  const std::size_t groups = topology.groups().size();
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    const std::size_t entries = tables[node]->multicast.size();
    if (entries == groups) continue;
    return TablesWrong(fmt::format("{} has {} multicast entries, but there are {} groups",
                                   topology.NodeName(node), entries, groups));
  }
  for (std::size_t group = 0; group < groups; ++group) {
    if (auto s = GroupCheck(topology, rules, tables, group, report).Run(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckMulticast(const Topology& topology, const LiveFabric& live,
                            const TableSet& tables, ChannelGraph* channels, CheckReport* report) {
  TreeRules rules;
  rules.alive = [&](NodeId node) { return live.hub(node); };
  rules.live = [&](NodeId node, PortId port) { return live.port(node, port); };
  rules.next = [](NodeId, const TreePlace& here, PortId out) {
    return NextPosition(here.position, out);
  };
  rules.reach = [&](NodeId source) {
    const std::vector<TreeHop> hops = LowestPositions(topology, live, source);
    std::vector<bool> reached;
    for (const TreeHop& hop : hops) reached.push_back(hop.position != kNoPosition);
    return reached;
  };
  rules.may_wait = [&](const TreePlace& here, PortId out, Position) {
    channels->Add(here.node, here.in, here.position, out);
  };
  return CheckTrees(topology, rules, tables, report);
}

}  // namespace percs
