#include "emulator/management/tree_service.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Every direct route from a hub ends at `to`. REQUIRES: tables without loops, as CheckTables
// proves.
bool Routed(const Topology& topology, const TableSet& tables, NodeId from, NodeId to) {
  using Place = std::pair<NodeId, PortId>;  // came in by
  std::vector<Place> open{{from, kNoPort}};
  absl::flat_hash_set<Place> seen;
  while (!open.empty()) {
    const auto [at, in] = open.back();
    open.pop_back();
    if (at == to || !seen.insert({at, in}).second) continue;
    TablePlace place;
    place.port = in;
    place.intra = topology.supernode_of(at) == topology.supernode_of(to);
    place.index = static_cast<std::uint16_t>(place.intra ? topology.hub_in_supernode(to)
                                                         : topology.supernode_of(to));
    PortMask mask = tables[at]->Table(TableKind::kDirect, in)->Entry(place);
    if (mask == 0) return false;
    for (; mask != 0; mask &= mask - 1) {
      const LinkEnd next = topology.Peer(at, static_cast<PortId>(std::countr_zero(mask)));
      if (next.node == kNoNode) return false;
      open.emplace_back(next.node, next.port);
    }
  }
  return true;
}

}  // namespace

const char* TreeStateName(TreeState state) {
  constexpr const char* kNames[] = {"setting up", "ready", "failed", "deleted"};
  return kNames[static_cast<int>(state)];
}

void TreeService::Adopt(const TreeSpec& spec, std::shared_ptr<const TreePlan> plan) {
  TreeStatus status;
  status.id = plan->id;
  status.name = spec.name;
  status.state = TreeState::kReady;
  status.plan = std::move(plan);
  status_.push_back(std::move(status));
  trees_.push_back({spec});
}

bool TreeService::Linked(const Tree& tree, NodeId a, NodeId b) const {
  if (tree.mute.contains(std::minmax(a, b)) || tree.out.contains(a) || tree.out.contains(b))
    return false;
  return tables_.empty() || (Routed(topology_, tables_, a, b) && Routed(topology_, tables_, b, a));
}

// Network management gives out the indexes, so it knows how many each CAU has left.
absl::Status TreeService::CheckRoom(const TreePlan& plan) const {
  std::map<NodeId, int> used;
  for (const TreeVertex& v : plan.vertices) ++used[v.node];
  for (const TreeStatus& other : status_) {
    if (other.id == plan.id || other.state == TreeState::kDeleted ||
        other.state == TreeState::kFailed)
      continue;
    for (const TreeVertex& v : other.plan->vertices) {
      if (const auto it = used.find(v.node); it != used.end()) ++it->second;
    }
  }
  for (const auto& [node, count] : used) {
    if (count > kCauTrees) {
      return ToStatus({TreeProblem::Code::kFull, CauOperation::kReduce, 0, node}, plan.id,
                      topology_);
    }
  }
  return absl::OkStatus();
}

std::vector<NodeId> TreeService::Hubs(const TreePlan& plan) const {
  std::set<NodeId> hubs;
  for (const TreeVertex& v : plan.vertices) hubs.insert(v.node);
  return {hubs.begin(), hubs.end()};
}

// --- Commands ------------------------------------------------------------------------------------

absl::StatusOr<CauTreeId> TreeService::Create(const TreeSpec& spec) {
  if (absl::Status status = CheckTree(topology_, spec); !status.ok()) return status;
  for (const TreeStatus& other : status_) {
    if (other.name == spec.name && other.state != TreeState::kDeleted) {
      return absl::AlreadyExistsError(
          fmt::format("a tree \"{}\" exists already, number {}", spec.name, other.id));
    }
  }
  if (status_.size() >= kCauTreesMade) {
    return absl::ResourceExhaustedError(
        fmt::format("{} trees have been created, which is the maximum", kCauTreesMade));
  }
  Tree tree{spec};
  tree.out = lost_;
  auto plan = PlanTree(topology_, spec, [&](NodeId a, NodeId b) { return Linked(tree, a, b); });
  if (!plan.ok()) return plan.status();
  plan->id = static_cast<CauTreeId>(status_.size());
  if (absl::Status status = CheckRoom(*plan); !status.ok()) return status;
  tree.create = true;
  ++work_->unfinished;
  TreeStatus status;
  status.id = plan->id;
  status.name = spec.name;
  status.plan = std::make_shared<const TreePlan>(*std::move(plan));
  status_.push_back(std::move(status));
  trees_.push_back(std::move(tree));
  return status_.back().id;
}

absl::Status TreeService::Delete(CauTreeId id) {
  if (id >= trees_.size() || trees_[id].remove || status_[id].state == TreeState::kDeleted) {
    return absl::NotFoundError(fmt::format("tree {} does not exist", id));
  }
  if (status_[id].state == TreeState::kSettingUp) {
    return absl::FailedPreconditionError(
        fmt::format("tree {} is being set up; wait until it is ready, then delete it", id));
  }
  trees_[id].remove = true;
  ++work_->unfinished;
  return absl::OkStatus();
}

void TreeService::Execute(Time now) {
  for (CauTreeId id = 0; id < made(); ++id) {
    if (std::exchange(trees_[id].create, false)) {
      --work_->unfinished;  // SetUp counts on
      SetUp(id, TreePlan(*status_[id].plan), TreeProblem(), now);
    }
    // A tree under repair is deleted when the repair is over.
    if (trees_[id].remove && status_[id].state != TreeState::kSettingUp) {
      trees_[id].remove = false;
      --work_->unfinished;
      TakeDown(id, Hubs(*status_[id].plan), {TreeProblem::Code::kDeleted}, now);
      status_[id].state = TreeState::kDeleted;
      status_[id].since = now;
    }
  }
}

// --- Setting up ----------------------------------------------------------------------------------

void TreeService::Tell(ControlItem::Kind kind, CauTreeId id, NodeId hub, const TreeProblem& why,
                       Time now) {
  if (lost_.contains(hub)) return;
  ControlItem item;
  item.kind = kind;
  item.source = kManagerNode;
  item.target = hub;
  item.tree = id;
  item.epoch = status_[id].plan->generation;
  item.problem = why;
  item.arrival = now + parameters_.management_latency;
  if (kind == ControlItem::Kind::kTreeSet) {
    item.plan = status_[id].plan;
  } else {
    ++work_->unfinished;  // until it has arrived; to an order to set up there is an answer
  }
  send_(std::move(item));
}

void TreeService::TakeDown(CauTreeId id, const std::vector<NodeId>& hubs, const TreeProblem& why,
                           Time now) {
  for (const NodeId hub : hubs) Tell(ControlItem::Kind::kTreeDown, id, hub, why, now);
}

void TreeService::SetUp(CauTreeId id, TreePlan plan, const TreeProblem& why, Time now) {
  ++work_->unfinished;  // until it is ready, or has failed
  TreeStatus& status = status_[id];
  status.plan = std::make_shared<const TreePlan>(std::move(plan));
  status.state = TreeState::kSettingUp;
  status.since = now;
  const std::vector<NodeId> hubs = Hubs(*status.plan);
  trees_[id].unanswered = {hubs.begin(), hubs.end()};
  for (const NodeId hub : hubs) Tell(ControlItem::Kind::kTreeSet, id, hub, why, now);
}

void TreeService::Receive(const ControlItem& item, Time now) {
  if (item.tree >= trees_.size()) return;  // no hub of ours says that
  if (item.kind == ControlItem::Kind::kTreeAlert) {
    OnAlert(item, now);
  } else {
    OnAnswer(item, now);
  }
}

void TreeService::OnAnswer(const ControlItem& item, Time now) {
  TreeStatus& status = status_[item.tree];
  Tree& tree = trees_[item.tree];
  if (item.epoch != status.plan->generation) return;
  if (tree.unanswered.erase(item.source) == 0) return;
  if (item.problem.code != TreeProblem::Code::kNone) status.problem = item.problem;
  if (tree.unanswered.empty()) Answered(item.tree, now);
}

void TreeService::Answered(CauTreeId id, Time now) {
  TreeStatus& status = status_[id];
  --work_->unfinished;
  status.since = now;
  if (status.problem.code != TreeProblem::Code::kNone) {
    status.state = TreeState::kFailed;
    TakeDown(id, Hubs(*status.plan), status.problem, now);
    return Execute(now);
  }
  status.state = TreeState::kReady;
  if (log_)
    log_->Add(now, "tree_ready", status.name,
              fmt::format("generation {}", status.plan->generation));
  for (const NodeId hub : Hubs(*status.plan)) Tell(ControlItem::Kind::kTreeReady, id, hub, {}, now);
  if (!status.repairs.empty()) status.repairs.back().ready = now + parameters_.management_latency;
  // Links that went down or came up meanwhile.
  Review(now);
  Execute(now);
}

void TreeService::Lose(const std::vector<NodeId>& hubs, Time now) {
  lost_.insert(hubs.begin(), hubs.end());
  for (Tree& tree : trees_) tree.out.insert(hubs.begin(), hubs.end());
  for (CauTreeId id = 0; id < made(); ++id) {
    if (status_[id].state != TreeState::kSettingUp || trees_[id].unanswered.empty()) continue;
    std::erase_if(trees_[id].unanswered, [this](NodeId hub) { return lost_.contains(hub); });
    if (trees_[id].unanswered.empty()) Answered(id, now);
  }
  Review(now);
}

// --- Repair --------------------------------------------------------------------------------------

void TreeService::OnAlert(const ControlItem& item, Time now) {
  --work_->unfinished;  // the hub counted it when it raised it
  const TreeStatus& status = status_[item.tree];
  // Of several hubs that notice the same, the first counts.
  if (status.state != TreeState::kReady || item.epoch != status.plan->generation) return;
  if (item.problem.code == TreeProblem::Code::kUnacknowledged) {
    trees_[item.tree].mute.insert(std::minmax(item.problem.a, item.problem.b));
  }
  Repair(item.tree, item.problem, item.raised, now);
}

void TreeService::OnTables(const TableSet& tables, Time now) {
  tables_ = tables;
  OnLinkUp(now);
}

void TreeService::OnLinkUp(Time now) {
  for (Tree& tree : trees_) tree.mute.clear();
  Review(now);
}

bool TreeService::Broken(CauTreeId id, TreeProblem* why) const {
  const auto& vertices = status_[id].plan->vertices;
  for (const TreeVertex& v : vertices) {
    if (v.parent == kNoVertex) continue;
    const NodeId above = vertices[v.parent].node;
    if (above == v.node || Linked(trees_[id], above, v.node)) continue;
    *why = {TreeProblem::Code::kCutOff, CauOperation::kReduce, 0, above, v.node};
    return true;
  }
  return false;
}

void TreeService::Review(Time now) {
  for (CauTreeId id = 0; id < made(); ++id) {
    TreeProblem why;
    const TreeStatus& status = status_[id];
    if (status.state == TreeState::kReady && Broken(id, &why)) {
      Repair(id, why, now, now);
    } else if (status.state == TreeState::kReady ||
               (status.state == TreeState::kFailed &&
                status.problem.code == TreeProblem::Code::kNoTree)) {
      TakeBack(id, now);
    }
  }
}

// The largest set of these nodes that tree links can join; of two alike, the one with the lowest
// node.
std::vector<NodeId> TreeService::Reachable(const Tree& tree,
                                           const std::vector<NodeId>& nodes) const {
  std::vector<std::size_t> group(nodes.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  const auto root = [&group](std::size_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      if (root(i) != root(j) && Linked(tree, nodes[i], nodes[j])) {
        group[std::max(root(i), root(j))] = std::min(root(i), root(j));
      }
    }
  }
  std::map<std::size_t, std::vector<NodeId>> parts;
  for (std::size_t i = 0; i < nodes.size(); ++i) parts[root(i)].push_back(nodes[i]);
  std::vector<NodeId> best;
  for (auto& [first, part] : parts) {
    if (part.size() > best.size()) best = std::move(part);
  }
  return best;
}

// A tree over as many of these nodes as possible. If links between them are missing, the planner
// may find none although there is one; then the node with the fewest links is left out.
absl::StatusOr<TreePlan> TreeService::PlanOver(const Tree& tree, std::vector<NodeId> nodes) const {
  const TreeLinked linked = [&](NodeId a, NodeId b) { return Linked(tree, a, b); };
  while (true) {
    TreeSpec spec = tree.spec;
    spec.members = nodes = Reachable(tree, nodes);
    if (nodes.size() < 2) return absl::UnavailableError("no two of its hubs reach each other");
    std::erase_if(spec.relays, [&](NodeId relay) {
      return std::none_of(nodes.begin(), nodes.end(),
                          [&](NodeId node) { return node == relay || linked(relay, node); });
    });
    auto plan = PlanTree(topology_, spec, linked);
    if (plan.ok()) return plan;
    const auto links = [&](NodeId a) {
      return std::count_if(nodes.begin(), nodes.end(),
                           [&](NodeId b) { return a != b && linked(a, b); });
    };
    nodes.erase(std::min_element(nodes.begin(), nodes.end(),
                                 [&](NodeId a, NodeId b) { return links(a) < links(b); }));
  }
}

void TreeService::TakeBack(CauTreeId id, Time now) {
  Tree& tree = trees_[id];
  TreeStatus& status = status_[id];
  std::vector<NodeId> all = tree.spec.members, before;
  std::sort(all.begin(), all.end());
  if (status.state == TreeState::kReady) before = status.plan->Participants();
  if (tree.remove || before.size() == all.size()) return;
  auto plan = PlanOver(tree, all);
  if (!plan.ok()) return;
  TreeRepair repair{{}, status.plan->generation + 1, now, now};
  const std::vector<NodeId> after = plan->Participants();
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(repair.back));
  if (repair.back.empty() ||
      !std::includes(after.begin(), after.end(), before.begin(), before.end()))
    return;
  plan->id = id;
  plan->generation = repair.generation;
  if (!CheckRoom(*plan).ok()) return;  // other trees took the indexes meanwhile
  repair.problem = {TreeProblem::Code::kMembersBack, CauOperation::kReduce, 0, repair.back.front()};
  const TreeProblem why = repair.problem;
  if (log_)
    log_->Add(now, "tree_grows", status.name, std::string(ToStatus(why, id, topology_).message()));
  status.problem = {};
  status.repairs.push_back(std::move(repair));
  // Relays of the previous tree that the new one does not need.
  std::vector<NodeId> left_out;
  const std::vector<NodeId> new_hubs = Hubs(*plan);
  if (!before.empty()) {
    const std::vector<NodeId> old_hubs = Hubs(*status.plan);
    std::set_difference(old_hubs.begin(), old_hubs.end(), new_hubs.begin(), new_hubs.end(),
                        std::back_inserter(left_out));
  }
  TakeDown(id, left_out, why, now);
  SetUp(id, *std::move(plan), why, now);
}

void TreeService::Repair(CauTreeId id, const TreeProblem& why, Time raised, Time now) {
  const Tree& tree = trees_[id];
  TreeStatus& status = status_[id];
  if (log_)
    log_->Add(now, "tree_failed", status.name, std::string(ToStatus(why, id, topology_).message()));
  const std::vector<NodeId> old_hubs = Hubs(*status.plan), before = status.plan->Participants();
  TreeRepair repair{why, status.plan->generation + 1, raised, now};
  absl::StatusOr<TreePlan> plan = PlanOver(tree, before);
  std::vector<NodeId> after;
  if (plan.ok()) after = plan->Participants();
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(repair.lost));
  if (!plan.ok()) {
    status.state = TreeState::kFailed;
    status.since = now;
    status.problem = {TreeProblem::Code::kNoTree, CauOperation::kReduce, 0, old_hubs.front()};
    status.repairs.push_back(std::move(repair));
    return TakeDown(id, old_hubs, status.problem, now);
  }
  plan->id = id;
  plan->generation = repair.generation;
  status.repairs.push_back(std::move(repair));
  std::vector<NodeId> left_out;
  const std::vector<NodeId> new_hubs = Hubs(*plan);
  std::set_difference(old_hubs.begin(), old_hubs.end(), new_hubs.begin(), new_hubs.end(),
                      std::back_inserter(left_out));
  TakeDown(id, left_out, why, now);
  SetUp(id, *std::move(plan), why, now);
}

}  // namespace percs
