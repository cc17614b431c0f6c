// Method: plans over whole machines and random sets of hubs; what every tree must be is checked on
// each.
#include "emulator/routing/tree_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

const TreeLinked kAll = [](NodeId, NodeId) { return true; };

Topology Machine(int supernodes, int drawers = 4, int hubs = 8) {
  return *Topology::Create({.supernodes = supernodes, .drawers = drawers, .hubs = hubs});
}

TreeSpec First(NodeId count, int fan_out = 8) {
  TreeSpec spec{.name = "t"};
  spec.members.resize(count);
  std::iota(spec.members.begin(), spec.members.end(), NodeId{0});
  spec.fan_out = fan_out;
  return spec;
}

// Least depth of a tree of `n` vertices.
int LeastDepth(std::size_t n, std::size_t fan_out) {
  int depth = 0;
  for (std::size_t all = 1, level = 1; all < n; ++depth) all += level *= fan_out;
  return depth;
}

void CheckPlan(const TreeSpec& spec, const TreePlan& plan) {
  std::vector<NodeId> members = spec.members;
  std::sort(members.begin(), members.end());
  EXPECT_EQ(plan.Participants(), members);
  std::map<TreeVertexId, int> children;
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    const TreeVertexId parent = plan.vertices[v].parent;
    ASSERT_EQ(parent == kNoVertex, v == 0);
    if (v == 0) continue;
    ASSERT_LT(parent, v);
    EXPECT_LE(++children[parent], spec.fan_out);
  }
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    const int links = children[static_cast<TreeVertexId>(v)] + (v > 0);
    EXPECT_TRUE(plan.vertices[v].participant || links > 1) << "an idle relay";
  }
  const std::string bytes = plan.Serialize();
  const auto parsed = TreePlan::Parse(
      absl::MakeConstSpan(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->vertices, plan.vertices);
}

TEST(TreePlan, HasLeastDepthForEverySizeAndFanOut) {
  const Topology machine = Machine(4);
  for (const int fan_out : {1, 2, 3, 5, 8}) {
    for (const NodeId count : {2u, 3u, 8u, 9u, 10u, 31u, 32u, 33u, 73u, 74u, 127u, 128u}) {
      SCOPED_TRACE(testing::Message() << count << " hubs, fan-out " << fan_out);
      const TreeSpec spec = First(count, fan_out);
      const auto plan = PlanTree(machine, spec, kAll);
      ASSERT_TRUE(plan.ok()) << plan.status();
      CheckPlan(spec, *plan);
      EXPECT_EQ(plan->Depth(), fan_out == 1 ? static_cast<int>(count) - 1
                                            : LeastDepth(count, static_cast<std::size_t>(fan_out)));
    }
  }
}

TEST(TreePlan, SiblingsShareDrawersThenSupernodes) {
  // 32 hubs need two levels; below the top, every tree link stays inside a drawer.
  const Topology one = Machine(1);
  const auto plan = PlanTree(one, First(32), kAll);
  ASSERT_TRUE(plan.ok());
  int across = 0;
  for (const TreeVertex& v : plan->vertices) {
    if (v.parent == kNoVertex || v.parent == 0) continue;
    across += plan->vertices[v.parent].node / 8 != v.node / 8;
  }
  EXPECT_EQ(across, 0);
  // Four supernodes: below the top no link leaves its supernode.
  const Topology four = Machine(4);
  const auto large = PlanTree(four, First(128), kAll);
  ASSERT_TRUE(large.ok());
  for (const TreeVertex& v : large->vertices) {
    if (v.parent == kNoVertex || v.parent == 0) continue;
    EXPECT_EQ(large->vertices[v.parent].node / 32, v.node / 32);
  }
}

TEST(TreePlan, RandomSetsOfHubsWithRelaysMakeTrees) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "tree_plan");
  const Topology machine = Machine(5, 3, 5);
  for (int round = 0; round < 300; ++round) {
    TreeSpec spec{.name = "t"};
    for (NodeId node = 0; node < machine.hubs(); ++node) {
      if (random.Below(3) == 0) spec.members.push_back(node);
      if (random.Below(12) == 0) spec.relays.push_back(node);
    }
    if (spec.members.size() < 2) continue;
    spec.fan_out = 1 + static_cast<int>(random.Below(8));
    ASSERT_TRUE(CheckTree(machine, spec).ok());
    const auto plan = PlanTree(machine, spec, kAll);
    ASSERT_TRUE(plan.ok()) << plan.status();
    CheckPlan(spec, *plan);
  }
}

TEST(TreePlan, AMemberThatIsARelayTooTakesTwoIndexes) {
  TreeSpec spec = First(6);
  spec.relays = {2};
  const auto plan = PlanTree(Machine(1), spec, kAll);
  ASSERT_TRUE(plan.ok());
  CheckPlan(spec, *plan);
  EXPECT_EQ(std::count_if(plan->vertices.begin(), plan->vertices.end(),
                          [](const TreeVertex& v) { return v.node == 2; }),
            2);
}

TEST(TreePlan, AvoidsPairsThatCannotBeLinked) {
  const TreeSpec spec = First(9, 2);
  const TreeLinked linked = [](NodeId a, NodeId b) { return a + b != 1 && a + b != 5; };
  const auto plan = PlanTree(Machine(1), spec, linked);
  ASSERT_TRUE(plan.ok()) << plan.status();
  CheckPlan(spec, *plan);
  for (const TreeVertex& v : plan->vertices) {
    if (v.parent == kNoVertex) continue;
    EXPECT_TRUE(linked(v.node, plan->vertices[v.parent].node));
  }
  const auto none = PlanTree(Machine(1), First(2), [](NodeId, NodeId) { return false; });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TreePlan, RefusesWhatNobodyCanSetUp) {
  const Topology machine = Machine(1);
  const auto code = [&machine](TreeSpec spec) { return CheckTree(machine, spec).code(); };
  EXPECT_EQ(code(First(1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(First(4, 9)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(First(4, 0)), absl::StatusCode::kInvalidArgument);
  TreeSpec twice = First(4);
  twice.members.push_back(2);
  EXPECT_EQ(code(twice), absl::StatusCode::kInvalidArgument);
  TreeSpec beyond = First(4);
  beyond.members.push_back(32);
  EXPECT_EQ(code(beyond), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(First(32)), absl::StatusCode::kOk);
}

TEST(TreePlan, DamagedBytesAreRefused) {
  TreePlan plan = *PlanTree(Machine(1), First(20), kAll);
  std::string bytes = plan.Serialize();
  bytes.pop_back();
  EXPECT_FALSE(
      TreePlan::Parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}).ok());
  plan.vertices.assign(11, {1, 0, true});  // ten children of one
  plan.vertices[0].parent = kNoVertex;
  bytes = plan.Serialize();
  EXPECT_FALSE(
      TreePlan::Parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}).ok());
}

}  // namespace
}  // namespace percs
