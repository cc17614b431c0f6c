#include "emulator/routing/tree_plan.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

// A place of the tree that has not got its parent yet.
struct Slot {
  NodeId node = 0;
  bool participant = true;
};

// Hubs that will hang below one vertex, in the order of their numbers.
struct Part {
  TreeVertexId parent = kNoVertex;
  std::vector<Slot> slots;
};

class TreePlanner {
 public:
  TreePlanner(const Topology& topology, const TreeSpec& spec, const TreeLinked& linked)
      : topology_(topology), spec_(spec), linked_(linked) {}

  absl::StatusOr<TreePlan> Plan() {
    std::vector<Slot> slots;
    for (const NodeId node : spec_.members) slots.push_back({node, true});
    for (const NodeId node : spec_.relays) slots.push_back({node, false});
    std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
      return std::pair(a.node, a.participant) < std::pair(b.node, b.participant);
    });
    std::deque<Part> parts{{kNoVertex, std::move(slots)}};
    for (; !parts.empty(); parts.pop_front()) {
      if (absl::Status status = Place(parts.front(), &parts); !status.ok()) return status;
    }
    plan_.order = spec_.order;
    DropIdleRelays();
    return std::move(plan_);
  }

 private:
  // A relay heads its part if there is one: it has nothing else to do.
  absl::StatusOr<std::size_t> Head(const Part& part) const {
    std::size_t best = part.slots.size();
    for (std::size_t i = 0; i < part.slots.size(); ++i) {
      const Slot& slot = part.slots[i];
      if (best < part.slots.size() && slot.participant) continue;
      if (part.parent != kNoVertex && !Linked(plan_.vertices[part.parent].node, slot.node))
        continue;
      best = i;
      if (!slot.participant) break;
    }
    if (best < part.slots.size()) return best;
    return absl::FailedPreconditionError(
        fmt::format("no tree of fan-out {} over the {} hubs was found: none of the {} hubs from {} "
                    "on can have a tree link "
                    "to {}",
                    spec_.fan_out, spec_.members.size(), part.slots.size(),
                    topology_.NodeName(part.slots[0].node),
                    topology_.NodeName(plan_.vertices[part.parent].node)));
  }
  bool Linked(NodeId a, NodeId b) const { return a == b || linked_(a, b); }

  absl::Status Place(Part& part, std::deque<Part>* parts) {
    const auto head = Head(part);
    if (!head.ok()) return head.status();
    const auto vertex = static_cast<TreeVertexId>(plan_.vertices.size());
    const Slot slot = part.slots[*head];
    plan_.vertices.push_back({slot.node, part.parent, slot.participant});
    part.slots.erase(part.slots.begin() + static_cast<std::ptrdiff_t>(*head));
    Split(std::move(part.slots), vertex, parts);
    return absl::OkStatus();
  }

  // How much a cut before slot i costs siblings: nothing between supernodes, most inside a drawer.
  int Edge(const std::vector<Slot>& slots, std::size_t i) const {
    const NodeId a = slots[i - 1].node, b = slots[i].node;
    if (topology_.supernode_of(a) != topology_.supernode_of(b)) return 0;
    const NodeId drawer = static_cast<NodeId>(topology_.spec().hubs);
    return a / drawer != b / drawer ? 1 : 2;
  }

  // Vertices of a subtree with `depth` links below its head.
  std::size_t Capacity(int depth) const {
    std::size_t all = 1, level = 1;
    for (int d = 0; d < depth && all < kNoVertex; ++d)
      all += level *= static_cast<std::size_t>(spec_.fan_out);
    return all;
  }

  void Split(std::vector<Slot> slots, TreeVertexId parent, std::deque<Part>* parts) {
    const std::size_t n = slots.size();
    if (n == 0) return;
    int depth = 0;
    while (Capacity(depth) < n + 1 && spec_.fan_out > 1) ++depth;
    const std::size_t count = std::min(n, static_cast<std::size_t>(spec_.fan_out));
    const std::size_t capacity = spec_.fan_out > 1 ? Capacity(depth - 1) : n;
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      const std::size_t end = i == count ? n : Cut(slots, begin, i, count, capacity);
      parts->push_back({parent,
                        {slots.begin() + static_cast<std::ptrdiff_t>(begin),
                         slots.begin() + static_cast<std::ptrdiff_t>(end)}});
      begin = end;
    }
  }

  // Where part i of `count` ends: near its share, at the best edge that leaves no part too big.
  std::size_t Cut(const std::vector<Slot>& slots, std::size_t begin, std::size_t i,
                  std::size_t count, std::size_t capacity) const {
    const std::size_t n = slots.size(), ideal = n * i / count, reach = n / count / 2,
                      left = count - i;
    const std::size_t least = std::max(begin + 1, n > left * capacity ? n - left * capacity : 0);
    const std::size_t most = std::min(begin + capacity, n - left);
    const std::size_t low = std::clamp(ideal - reach, least, most),
                      high = std::clamp(ideal + reach, least, most);
    const auto cost = [&](std::size_t cut) {
      return std::pair(Edge(slots, cut), cut > ideal ? cut - ideal : ideal - cut);
    };
    std::size_t best = low;
    for (std::size_t cut = low; cut <= high; ++cut) {
      if (cost(cut) < cost(best)) best = cut;
    }
    return best;
  }

  // A relay with one link has no other link to pass packets on.
  void DropIdleRelays() {
    auto& all = plan_.vertices;
    std::vector<int> children(all.size());
    for (const TreeVertex& v : all) {
      if (v.parent != kNoVertex) ++children[v.parent];
    }
    std::vector<TreeVertexId> renumbered(all.size(), kNoVertex);
    std::vector<bool> idle(all.size());
    for (std::size_t v = all.size(); v-- > 0;) {
      idle[v] = !all[v].participant && children[v] == 0;
      if (idle[v] && all[v].parent != kNoVertex) --children[all[v].parent];
    }
    for (std::size_t v = 0;
         v < all.size() && (idle[v] || (!all[v].participant && children[v] == 1)); ++v) {
      idle[v] = true;  // at the top, with one child: that is the top then
    }
    std::vector<TreeVertex> kept;
    for (std::size_t v = 0; v < all.size(); ++v) {
      if (idle[v]) continue;
      renumbered[v] = static_cast<TreeVertexId>(kept.size());
      kept.push_back(all[v]);
      TreeVertexId& parent = kept.back().parent;
      if (parent != kNoVertex) parent = renumbered[parent];
    }
    all = std::move(kept);
  }

  const Topology& topology_;
  const TreeSpec& spec_;
  const TreeLinked& linked_;
  TreePlan plan_;
};

absl::Status CheckHubs(const Topology& topology, const std::vector<NodeId>& nodes,
                       const char* what) {
  std::vector<NodeId> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] >= topology.hubs()) {
      return absl::InvalidArgumentError(
          fmt::format("{} cannot be a {} of a tree: only the {} hubs have a CAU",
                      sorted[i] < topology.nodes() ? topology.NodeName(sorted[i])
                                                   : fmt::format("node {}", sorted[i]),
                      what, topology.hubs()));
    }
    if (i > 0 && sorted[i] == sorted[i - 1]) {
      return absl::InvalidArgumentError(
          fmt::format("{} is a {} twice; a tree has one participating window on a hub",
                      topology.NodeName(sorted[i]), what));
    }
  }
  return absl::OkStatus();
}

void PutNumber(std::uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

// False at the end of the bytes, and for more than `limit`.
bool TakeNumber(absl::Span<const std::uint8_t>* bytes, std::uint64_t limit, std::uint64_t* v) {
  *v = 0;
  for (int shift = 0; shift < 35 && !bytes->empty(); shift += 7) {
    const std::uint8_t byte = bytes->front();
    bytes->remove_prefix(1);
    *v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return *v <= limit;
  }
  return false;
}

}  // namespace

std::vector<NodeId> TreePlan::Participants() const {
  std::vector<NodeId> nodes;
  for (const TreeVertex& v : vertices) {
    if (v.participant) nodes.push_back(v.node);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

int TreePlan::Depth() const {
  std::vector<int> depths;
  for (const TreeVertex& v : vertices)
    depths.push_back(v.parent == kNoVertex ? 0 : depths[v.parent] + 1);
  return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
}

std::string TreePlan::Serialize() const {
  std::string out;
  PutNumber(id, &out);
  PutNumber(generation, &out);
  PutNumber(static_cast<std::uint64_t>(order), &out);
  PutNumber(vertices.size(), &out);
  for (const TreeVertex& v : vertices) {
    PutNumber(static_cast<std::uint64_t>(v.node) << 1 | v.participant, &out);
    PutNumber(v.parent == kNoVertex ? 0 : v.parent + 1u, &out);
  }
  return out;
}

absl::StatusOr<TreePlan> TreePlan::Parse(absl::Span<const std::uint8_t> bytes) {
  TreePlan plan;
  std::uint64_t id = 0, generation = 0, order = 0, count = 0;
  const auto bad = [](const char* what) {
    return absl::InvalidArgumentError(fmt::format("a tree of CAUs with {}", what));
  };
  if (!TakeNumber(&bytes, 0xffff, &id) || !TakeNumber(&bytes, 0xffffffff, &generation) ||
      !TakeNumber(&bytes, 1, &order) || !TakeNumber(&bytes, bytes.size() / 2, &count)) {
    return bad("an invalid head");
  }
  plan.id = static_cast<CauTreeId>(id);
  plan.generation = static_cast<std::uint32_t>(generation);
  plan.order = static_cast<OperandOrder>(order);
  std::vector<int> children;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t node = 0, parent = 0;
    if (!TakeNumber(&bytes, 0x1ffffffff, &node) || !TakeNumber(&bytes, i, &parent) ||
        (parent == 0) != (i == 0)) {
      return bad("an invalid vertex");
    }
    plan.vertices.push_back({static_cast<NodeId>(node >> 1),
                             parent == 0 ? kNoVertex : static_cast<TreeVertexId>(parent - 1),
                             (node & 1) != 0});
    children.push_back(0);
    if (parent > 0 && ++children[parent - 1] > kCauFanOutMax)
      return bad("more children than a CAU has links");
  }
  if (!bytes.empty()) return bad("bytes after its end");
  return plan;
}

absl::Status CheckTree(const Topology& topology, const TreeSpec& spec) {
  if (spec.members.size() < 2) {
    return absl::InvalidArgumentError(
        fmt::format("a tree of {} members; name at least two hubs", spec.members.size()));
  }
  if (spec.fan_out < 1 || spec.fan_out > kCauFanOutMax) {
    return absl::InvalidArgumentError(fmt::format(
        "a fan-out of {}; a CAU has tree links to 1..{} children", spec.fan_out, kCauFanOutMax));
  }
  if (absl::Status status = CheckHubs(topology, spec.members, "member"); !status.ok())
    return status;
  for (const NodeId member : spec.members) {
    if (member < topology.leaves()) continue;
    return absl::InvalidArgumentError(fmt::format(
        "{} cannot be a member of a tree: an inner switch has no windows; name it as a relay",
        topology.NodeName(member)));
  }
  return CheckHubs(topology, spec.relays, "relay");
}

absl::StatusOr<TreePlan> PlanTree(const Topology& topology, const TreeSpec& spec,
                                  const TreeLinked& linked) {
  return TreePlanner(topology, spec, linked).Plan();
}

}  // namespace percs
