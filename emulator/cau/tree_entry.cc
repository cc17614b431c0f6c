#include "emulator/cau/tree_entry.h"

#include <algorithm>

namespace percs {
namespace {

constexpr int kReduceKind = static_cast<int>(CauOperation::kReduce);
constexpr int kMulticastKind = static_cast<int>(CauOperation::kMulticast);

}  // namespace

TreeEntry::TreeEntry(const TreePlan& plan, TreeVertexId v, int depth)
    : tree(plan.id),
      generation(plan.generation),
      vertex(v),
      node(plan.vertices[v].node),
      order(plan.order) {
  const auto add = [this, depth](NodeId to, TreeVertexId neighbor) {
    TreeLink& link = links.emplace_back();
    link.node = to;
    link.vertex = neighbor;
    for (TreeChannel& channel : link.channels) channel = TreeChannel(link.local() ? 0 : depth);
  };
  if (plan.vertices[v].participant) add(node, kNoVertex);
  for (std::size_t c = v + 1u; c < plan.vertices.size(); ++c) {
    if (plan.vertices[c].parent == v) add(plan.vertices[c].node, static_cast<TreeVertexId>(c));
  }
  const TreeVertexId parent = plan.vertices[v].parent;
  if (parent != kNoVertex) add(plan.vertices[parent].node, parent);
}

int TreeEntry::FindLink(TreeVertexId neighbor) const {
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].vertex == neighbor && !links[i].local()) return static_cast<int>(i);
  }
  return -1;
}

bool TreeEntry::Match(const CauItem& a, NodeId from_a, const CauItem& b, NodeId from_b,
                      TreeProblem* problem) const {
  using Code = TreeProblem::Code;
  const Code code = a.root != b.root                   ? Code::kRoots
                    : a.op != b.op                     ? Code::kOps
                    : a.operand != b.operand           ? Code::kTypes
                    : a.payload.size != b.payload.size ? Code::kSizes
                                                       : Code::kNone;
  if (code == Code::kNone) return true;
  *problem = {code, CauOperation::kReduce, a.sequence, from_a, from_b};
  return false;
}

bool TreeEntry::Misplaced(int link, CauOperation operation, const CauItem& item,
                          TreeProblem* problem) const {
  const int kind = static_cast<int>(operation);
  if (static_cast<std::int32_t>(item.sequence - next[kind]) >= 0) return false;
  *problem = {TreeProblem::Code::kTwice, operation, item.sequence,
              links[static_cast<std::size_t>(link)].node, node};
  return true;
}

const CauItem* TreeEntry::Declared() const {
  if (!expected.empty() && expected.front().sequence == next[kReduceKind]) return &expected.front();
  const CauItem* given = has_participant() ? links.front().head(kReduceKind) : nullptr;
  return given && given->sequence == next[kReduceKind] ? given : nullptr;
}

bool TreeEntry::Contradicts(const CauItem& said, NodeId by, TreeProblem* problem) const {
  const CauItem* here = Declared();
  return here && here->sequence == said.sequence && !Match(*here, node, said, by, problem);
}

bool TreeEntry::Fire(CauOperation operation, Firing* firing, TreeProblem* problem) {
  firing->outputs.clear();
  firing->consumed.clear();
  firing->inputs = 0;
  firing->own = false;
  return operation == CauOperation::kReduce ? FireReduce(firing, problem)
                                            : FireMulticast(firing, problem);
}

void TreeEntry::Take(int index, int kind, Firing* firing) {
  TreeLink& link = links[static_cast<std::size_t>(index)];
  if (link.local()) {
    link.given[kind].pop_front();
    firing->own = true;
  } else if (link.channels[kind].receiver.Consume()) {
    firing->consumed.push_back(index);
  }
}

bool TreeEntry::FireReduce(Firing* firing, TreeProblem* problem) {
  const std::uint32_t sequence = next[kReduceKind];
  const int count = static_cast<int>(links.size());
  int present[16], missing = -1, inputs = 0;
  for (int i = 0; i < count; ++i) {
    const CauItem* head = links[static_cast<std::size_t>(i)].head(kReduceKind);
    if (head && head->sequence == sequence) {
      present[inputs++] = i;
    } else {
      missing = i;
    }
  }
  const auto item = [&](int i) -> const CauItem& {
    return *links[static_cast<std::size_t>(present[i])].head(kReduceKind);
  };
  const auto from = [&](int i) { return links[static_cast<std::size_t>(present[i])].node; };
  if (inputs == 0) return false;
  for (int i = 1; i < inputs; ++i) {
    if (!Match(item(0), from(0), item(i), from(i), problem)) return false;
  }
  const bool root_spoke = !expected.empty() && expected.front().sequence == sequence;
  if (root_spoke && !Match(expected.front(), node, item(0), from(0), problem)) return false;
  if (inputs == count) {
    // All inputs are operands, so none is left for the root.
    *problem = {TreeProblem::Code::kRoots, CauOperation::kReduce, sequence, from(0),
                from(inputs - 1)};
    return false;
  }
  if (inputs + 1 < count) return false;
  const TreeLink& out = links[static_cast<std::size_t>(missing)];
  if (out.local()) {
    if (item(0).root != node) return false;  // not a root, only late
  } else if (!out.channels[kReduceKind].sender.HasRoom()) {
    return false;
  }
  if (order == OperandOrder::kArrival) {
    std::sort(present, present + inputs, [&](int a, int b) {
      return links[static_cast<std::size_t>(a)].head(kReduceKind)->order <
             links[static_cast<std::size_t>(b)].head(kReduceKind)->order;
    });
  }
  firing->item = item(0);
  CauPayload& result = firing->item.payload;
  const std::size_t operands = result.size / OperandBytes(firing->item.operand);
  for (int i = 1; i < inputs; ++i) {
    Combine(firing->item.op, firing->item.operand, operands, item(i).payload.bytes.data(),
            result.bytes.data());
  }
  for (int i = 0; i < inputs; ++i) Take(present[i], kReduceKind, firing);
  if (root_spoke) expected.pop_front();
  firing->inputs = inputs;
  firing->outputs.push_back(missing);
  ++next[kReduceKind];
  return true;
}

bool TreeEntry::FireMulticast(Firing* firing, TreeProblem* problem) {
  const std::uint32_t sequence = next[kMulticastKind];
  int source = -1;
  for (int i = 0; i < static_cast<int>(links.size()); ++i) {
    const CauItem* head = links[static_cast<std::size_t>(i)].head(kMulticastKind);
    if (!head || head->sequence != sequence) continue;
    if (source >= 0) {
      *problem = {TreeProblem::Code::kTwice, CauOperation::kMulticast, sequence,
                  links[static_cast<std::size_t>(source)].node,
                  links[static_cast<std::size_t>(i)].node};
      return false;
    }
    source = i;
  }
  if (source < 0) return false;
  for (int i = 0; i < static_cast<int>(links.size()); ++i) {
    const TreeLink& link = links[static_cast<std::size_t>(i)];
    if (i == source) continue;
    if (!link.local() && !link.channels[kMulticastKind].sender.HasRoom()) return false;
    firing->outputs.push_back(i);
  }
  firing->item = *links[static_cast<std::size_t>(source)].head(kMulticastKind);
  Take(source, kMulticastKind, firing);
  firing->inputs = 1;
  ++next[kMulticastKind];
  return true;
}

}  // namespace percs
