#include "proto/scenario/trees.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "emulator/base/status.h"
#include "emulator/topology/find_names.h"
#include "emulator/workload/cau_loop.h"
#include "fmt/format.h"
#include "proto/process/printable.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names;
  for (const auto part : absl::StrSplit(list, ',')) {
    std::string name(absl::StripAsciiWhitespace(part));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

// A hub, or all hubs with windows whose names begin with that of a drawer or supernode.
absl::Status AddHubs(const std::string& name, const Topology& topology, std::vector<NodeId>* hubs) {
  const std::vector<NodeId> named = HubsNamed(topology, name);
  for (const NodeId hub : named) {
    if (named.size() == 1 || hub < topology.leaves()) hubs->push_back(hub);
  }
  if (!named.empty()) return absl::OkStatus();
  const auto node = topology.ParseNode(name);  // for its words, or a blade
  if (!node.ok()) return node.status();
  hubs->push_back(*node);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NodeId>> Hubs(const std::string& list, const Topology& topology) {
  std::vector<NodeId> hubs;
  for (const std::string& name : Names(list)) {
    if (absl::Status status = AddHubs(name, topology, &hubs); !status.ok()) return status;
  }
  return hubs;
}

}  // namespace

absl::StatusOr<TreeSpec> BuildTree(const v1::Tree& message, const Topology& topology) {
  TreeSpec spec;
  if (absl::Status status = CheckName(message.name()); !status.ok()) return status;
  spec.name = message.name();
  auto members = Hubs(message.members(), topology);
  if (!members.ok()) return members.status();
  spec.members = *std::move(members);
  auto relays = Hubs(message.relays(), topology);
  if (!relays.ok()) return relays.status();
  spec.relays = *std::move(relays);
  if (message.has_fan_out()) spec.fan_out = message.fan_out();
  if (message.order() == v1::OPERAND_ORDER_ARRIVAL) spec.order = OperandOrder::kArrival;
  if (absl::Status status = CheckTree(topology, spec); !status.ok()) return status;
  return spec;
}

std::vector<TreeSpec> BuildTrees(const v1::Scenario& message, const Topology& topology,
                                 ErrorList* errors) {
  std::vector<TreeSpec> trees;
  std::map<NodeId, int> used;
  for (int i = 0; i < message.trees_size(); ++i) {
    const std::string path = fmt::format("trees[{}]", i);
    const auto tree = BuildTree(message.trees(i), topology);
    if (!tree.ok()) {
      errors->Add(path, MessageOf(tree.status()));
      continue;
    }
    const auto plan = PlanTree(topology, *tree, [](NodeId, NodeId) { return true; });
    for (const TreeVertex& v : plan->vertices) {
      if (++used[v.node] != kCauTrees + 1) continue;
      errors->Add(path, fmt::format("the CAU of {} has only {} indexes, and this tree needs one "
                                    "more; remove the hub from a tree",
                                    topology.NodeName(v.node), kCauTrees));
    }
    trees.push_back(*tree);
  }
  return trees;
}

CauWorkload BuildCauLoop(const v1::CauLoop& message, const std::vector<TreeSpec>& trees,
                         ErrorList* errors) {
  static_assert(v1::REDUCE_OPERATION_NOP == static_cast<int>(ReduceOp::kNop) + 1 &&
                v1::REDUCE_OPERATION_MINLOC == static_cast<int>(ReduceOp::kMinLoc) + 1 &&
                v1::OPERAND_TYPE_DOUBLE == static_cast<int>(OperandType::kDouble) + 1);
  const std::string path = "workload.cau";
  CauWorkload w;
  std::vector<std::string> known;
  for (const TreeSpec& tree : trees) known.push_back(tree.name);
  for (const std::string& name : Names(message.trees())) {
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) {
      errors->Add(path + ".trees",
                  fmt::format("there is no tree \"{}\"{}", name, DidYouMean(name, known)));
    } else {
      w.trees.push_back(static_cast<CauTreeId>(it - known.begin()));
    }
  }
  if (message.has_steps()) {
    const std::vector<std::string> steps = {"reduce", "multicast", "barrier", "allreduce"};
    w.steps.clear();
    for (const std::string& name : Names(message.steps())) {
      const auto it = std::find(steps.begin(), steps.end(), name);
      if (it == steps.end()) {
        errors->Add(path + ".steps",
                    fmt::format("\"{}\" is no step{}", name, Suggest(name, steps, "steps")));
        return w;
      }
      w.steps.push_back(static_cast<CauStep>(it - steps.begin()));
    }
  }
  if (message.has_iterations()) w.iterations = static_cast<std::uint64_t>(message.iterations());
  if (message.operation() != v1::REDUCE_OPERATION_UNSPECIFIED)
    w.op = static_cast<ReduceOp>(message.operation() - 1);
  if (message.type() != v1::OPERAND_TYPE_UNSPECIFIED)
    w.type = static_cast<OperandType>(message.type() - 1);
  if (message.has_operands()) w.operands = message.operands();
  if (message.has_rotate_root()) w.rotate_root = message.rotate_root();
  if (message.has_in_flight()) w.in_flight = message.in_flight();
  if (message.has_compute_max()) w.compute_max = message.compute_max();
  if (absl::Status status = CauLoop::Check(w, trees.size()); !status.ok())
    errors->Add(path, MessageOf(status));
  return w;
}

void TreeToProto(const TreeStatus& tree, const Topology& topology, bool vertices,
                 v1::TreeStatus* message) {
  message->set_id(tree.id);
  message->set_name(tree.name);
  message->set_state(TreeStateName(tree.state));
  message->set_generation(tree.plan->generation);
  message->set_participants(static_cast<std::uint32_t>(tree.plan->Participants().size()));
  message->set_indexes(static_cast<std::uint32_t>(tree.plan->vertices.size()));
  message->set_depth(static_cast<std::uint32_t>(tree.plan->Depth()));
  message->set_problem(MessageOf(ToStatus(tree.problem, tree.id, topology)));
  message->set_since(tree.since);
  for (const TreeRepair& from : tree.repairs) {
    v1::TreeRepair* repair = message->add_repairs();
    repair->set_problem(MessageOf(ToStatus(from.problem, tree.id, topology)));
    repair->set_generation(from.generation);
    repair->set_raised(from.raised);
    repair->set_started(from.started);
    if (from.ready != kNever) repair->set_ready(from.ready);
    for (const NodeId node : from.lost) repair->add_lost(topology.NodeName(node));
    for (const NodeId node : from.back) repair->add_back(topology.NodeName(node));
  }
  for (std::size_t v = 0; vertices && v < tree.plan->vertices.size(); ++v) {
    const TreeVertex& from = tree.plan->vertices[v];
    v1::TreeVertex* vertex = message->add_vertices();
    vertex->set_node(topology.NodeName(from.node));
    if (from.parent != kNoVertex) vertex->set_parent(from.parent);
    vertex->set_participant(from.participant);
  }
}

absl::Status ListTrees(const std::vector<TreeStatus>& trees, const Topology& topology,
                       const std::string& name,
                       google::protobuf::RepeatedPtrField<v1::TreeStatus>* list) {
  if (!name.empty()) {
    const auto id = FindTree(trees, name);
    if (!id.ok()) return id.status();
    TreeToProto(trees[*id], topology, true, list->Add());
    return absl::OkStatus();
  }
  for (const TreeStatus& tree : trees) TreeToProto(tree, topology, false, list->Add());
  return absl::OkStatus();
}

}  // namespace percs
