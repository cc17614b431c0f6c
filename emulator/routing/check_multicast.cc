#include "emulator/routing/check_multicast.h"

#include <algorithm>
#include <bit>

#include "emulator/routing/multicast_plan.h"
#include "fmt/format.h"

namespace percs {
namespace {

class GroupCheck {
 public:
  GroupCheck(const Topology& topology, const LiveFabric& live, const TableSet& tables,
             std::size_t group, ChannelGraph* channels, CheckReport* report)
      : topology_(topology),
        live_(live),
        tables_(tables),
        group_(group),
        channels_(channels),
        report_(report),
        reached_by_(topology.hubs(), kNoNode) {}

  absl::Status Run() {
    const MulticastGroup& group = topology_.groups()[group_];
    if (!live_.hub(group.source)) return absl::OkStatus();
    reached_by_[group.source] = group.source;
    if (auto s = Visit(group.source, kNoPort, kInjected, 0); !s.ok()) return s;
    const std::vector<TreeHop> legal = LowestPositions(topology_, live_, group.source);
    for (const NodeId member : group.members) {
      if (std::binary_search(delivered_.begin(), delivered_.end(), member)) continue;
      if (legal[member].position != kNoPosition) {
        return Wrong(fmt::format("its member {} is not reached", topology_.NodeName(member)));
      }
      ++report_->members_unreachable;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::FailedPreconditionError(
        fmt::format("route tables: multicast group {}: {}",
                    topology_.NodeName(topology_.nodes() + static_cast<NodeId>(group_)), what));
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
  absl::Status Visit(NodeId node, PortId in, Position position, int hops) {
    const PortMask entry = tables_[node]->Multicast(group_);
    if (entry == 0) {
      if (in == kNoPort) return absl::OkStatus();  // members that are missed are reported below
      return Wrong(fmt::format("leads to {}, which has no entry for it", topology_.NodeName(node)));
    }
    if (entry & HubTables::kDeliverHere) {
      if (auto s = Deliver(node, hops); !s.ok()) return s;
    }
    for (PortMask ports = entry & ~HubTables::kDeliverHere; ports; ports &= ports - 1) {
      const PortId port = static_cast<PortId>(std::countr_zero(ports));
      const std::string link = topology_.LinkName({node, port});
      if (port >= kLinkPorts || !live_.port(node, port)) {
        return Wrong(fmt::format("would leave by {}, which is not a live link", link));
      }
      const Position next = NextPosition(position, port);
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
      if (in != kNoPort) channels_->Add(node, in, position, port);
      if (auto s = Visit(peer.node, peer.port, next, hops + 1); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  const Topology& topology_;
  const LiveFabric& live_;
  const TableSet& tables_;
  const std::size_t group_;
  ChannelGraph* channels_;
  CheckReport* report_;
  std::vector<NodeId> reached_by_;
  std::vector<NodeId> delivered_;  // ascending
};

}  // namespace

absl::Status CheckMulticast(const Topology& topology, const LiveFabric& live,
                            const TableSet& tables, ChannelGraph* channels, CheckReport* report) {
  for (std::size_t group = 0; group < topology.groups().size(); ++group) {
    if (auto s = GroupCheck(topology, live, tables, group, channels, report).Run(); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

}  // namespace percs
