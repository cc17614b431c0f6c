#include "emulator/management/loss.h"

#include <algorithm>
#include <numeric>

#include "emulator/wire/outbox.h"
#include "fmt/format.h"

namespace percs {
namespace {

bool Has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// Calls f(end, far end) for each link of the nodes, once.
template <typename F>
void ForEachLink(const std::vector<NodeId>& nodes, const Topology& topology, F&& f) {
  for (const NodeId node : nodes) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const LinkEnd far = topology.Peer(node, port);
      if (far.node != kNoNode && !(Has(nodes, far.node) && far.node < node))
        f(LinkEnd{node, port}, far);
    }
  }
}

}  // namespace

std::vector<FaultAction> ActionsOf(const LostHubs& lost, const Topology& topology) {
  std::vector<FaultAction> actions;
  ForEachLink(lost.nodes, topology, [&](LinkEnd end, LinkEnd) {
    FaultAction& action = actions.emplace_back();
    action.at = lost.at;
    action.fault = kLossNumbers + lost.number;
    action.end = end;
  });
  return actions;
}

std::vector<FaultAction> ActionsOf(const RejoinedHubs& rejoined, const Topology& topology,
                                   const std::function<bool(NodeId)>& is_lost) {
  std::vector<FaultAction> actions;
  ForEachLink(rejoined.nodes, topology, [&](LinkEnd end, LinkEnd far) {
    if (is_lost(far.node)) return;
    FaultAction& action = actions.emplace_back();
    action.at = rejoined.at;
    action.fault = kLossNumbers + rejoined.loss;
    action.kind = FaultAction::Kind::kRejoined;
    action.begins = false;
    action.end = end;
    action.count = rejoined.generation;
  });
  return actions;
}

// No hub receives anything from them.
void LossRecord::Lose(const LostHubs& lost, NodeId nodes) {
  SeveredHubs& all = severed_.emplace_back(
      SeveredHubs{lost.nodes, std::vector<NodeId>(nodes), /*management=*/true});
  std::iota(all.to.begin(), all.to.end(), NodeId{0});
  lost_.push_back(lost);
}

void LossRecord::Rejoin(const RejoinedHubs& rejoined) {
  for (SeveredHubs& severed : severed_) {
    std::erase_if(severed.from, [&](NodeId node) { return Has(rejoined.nodes, node); });
  }
  std::erase_if(severed_, [](const SeveredHubs& severed) { return severed.from.empty(); });
  RejoinedHubs& kept = rejoined_.emplace_back();
  kept.nodes = rejoined.nodes;
  kept.who = rejoined.who;
  kept.loss = rejoined.loss;
  kept.incarnation = rejoined.incarnation;
  kept.at = rejoined.at;
}

absl::StatusOr<RejoinedHubs> LossRecord::Returning(std::uint32_t loss,
                                                   const Topology& topology) const {
  const auto lost =
      std::find_if(lost_.begin(), lost_.end(), [&](const LostHubs& l) { return l.number == loss; });
  if (lost == lost_.end()) {
    return absl::NotFoundError(
        fmt::format("loss {} does not exist; {} losses have been declared", loss, lost_.size()));
  }
  if (std::any_of(rejoined_.begin(), rejoined_.end(),
                  [&](const RejoinedHubs& r) { return r.loss == loss; })) {
    return absl::FailedPreconditionError(
        fmt::format("the hubs of loss {} have rejoined already", loss));
  }
  RejoinedHubs returning;
  returning.loss = loss;
  for (const NodeId node : lost->nodes) {
    if (!topology.is_blade(node)) returning.nodes.push_back(node);
  }
  if (returning.nodes.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("loss {} has only blades, whose programs cannot be restored", loss));
  }
  const auto times = std::count_if(lost_.begin(), lost_.end(), [&](const LostHubs& l) {
    return Has(l.nodes, returning.nodes.front());
  });
  returning.incarnation = static_cast<std::uint32_t>(times) + 1;
  return returning;
}

bool LossRecord::Severed(NodeId from, NodeId to) const {
  return std::any_of(severed_.begin(), severed_.end(), [&](const SeveredHubs& s) {
    return Has(s.from, from) && (to == kManagerNode ? s.management : Has(s.to, to));
  });
}

void LossRecord::Fold(DigestStream& digest) const {
  const auto fold = [&digest](const auto& all) {
    for (const auto& one : all) {
      digest.Add(static_cast<std::uint64_t>(one.at));
      for (const NodeId node : one.nodes) digest.Add(node);
    }
  };
  if (rejoined_.empty()) return;
  fold(lost_);
  fold(rejoined_);
}

bool LossRecord::IsLost(NodeId node) const {
  const auto times = [node](const auto& all) {
    return std::count_if(all.begin(), all.end(),
                         [node](const auto& one) { return Has(one.nodes, node); });
  };
  return times(lost_) > times(rejoined_);
}

}  // namespace percs
