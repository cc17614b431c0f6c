// Method: whole scenarios whose participants check every result against a serial reference, with
// links and hubs lost on the way. Every operation has to end right or fail with a reason, nothing
// may hang (a run that hangs ends as a deadlock, which is an error), and every placement has to
// tell the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "emulator/base/random.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

TreeSpec Over(std::vector<NodeId> members, int fan_out = 8) {
  return {.name = "t" + std::to_string(members.size()) + std::to_string(fan_out),
          .members = std::move(members),
          .fan_out = fan_out};
}
std::vector<NodeId> Nodes(NodeId from, NodeId to) {
  std::vector<NodeId> nodes(to - from);
  std::iota(nodes.begin(), nodes.end(), from);
  return nodes;
}

Scenario Loop(TopologySpec topology, std::vector<TreeSpec> trees, std::uint64_t iterations) {
  Scenario s;
  s.topology = topology;
  s.trees = std::move(trees);
  CauWorkload loop;
  loop.steps = {CauStep::kAllreduce, CauStep::kMulticast, CauStep::kBarrier, CauStep::kReduce};
  loop.iterations = iterations;
  loop.operands = 3;
  loop.in_flight = 3;
  s.workload = loop;
  return s;
}

RunResult CheckedRepair(const Scenario& scenario) {
  const auto result = RunScenario(scenario, RunOptions());
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_TRUE(result->violations.empty()) << result->violations.front();
  return *result;
}

std::uint64_t Of(RunResult& result, CauCounter counter) { return result.total.Cau(counter); }

// Takes every link of a hub down at `at`.
void CutOff(Scenario& s, NodeId node, Time at) {
  const Topology topology = *Topology::Create(s.topology);
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (topology.connected(node, port)) s.faults.push_back(SetLinkDown(at, {node, port}));
  }
}

TEST(TreeRepair, AllStepsOfAllTreesAreRightInAQuietFabric) {
  for (const OperandType type :
       {OperandType::kInt32, OperandType::kUint64, OperandType::kFloat, OperandType::kDouble}) {
    Scenario s =
        Loop({2, 2, 4, 1}, {Over(Nodes(0, 16)), Over({1, 5, 6, 12, 15}, 2), Over({3, 9}, 1)}, 50);
    std::get<CauWorkload>(s.workload).type = type;
    RunResult result = CheckedRepair(s);
    for (const CauTaskResult& task : result.cau_tasks) {
      EXPECT_EQ(task.problem, "");
      EXPECT_EQ(task.steps_failed, 0u);
    }
    EXPECT_EQ(result.cau_tasks.size(), 23u);
    EXPECT_EQ(Of(result, CauCounter::kResultsRight),
              50u * 23 * 3 + 50 * 3);  // one result per reduce
    EXPECT_EQ(Of(result, CauCounter::kPacketsResent), 0u);
    EXPECT_EQ(result.total.payload_errors, 0u);
  }
}

TEST(TreeRepair, ALinkLostMidwayCostsNoOperation) {
  Scenario s = Loop({1, 2, 4, 1}, {Over(Nodes(0, 8), 2)}, 200);
  const Topology topology = *Topology::Create(s.topology);
  s.faults = {SetLinkDown(20 * kMicrosecond, *topology.ParseLink("sn0-d0-h0/sn0-d0-h1")),
              SetLinkDown(25 * kMicrosecond, *topology.ParseLink("sn0-d0-h0/sn0-d1-h0")),
              SetLinkUp(400 * kMicrosecond, *topology.ParseLink("sn0-d0-h0/sn0-d1-h0"))};
  RunResult result = CheckedRepair(s);
  EXPECT_GT(Of(result, CauCounter::kPacketsResent), 0u);
  EXPECT_EQ(Of(result, CauCounter::kTreesFailed), 0u);
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.steps_failed, 0u);
    EXPECT_EQ(task.problem, "");
  }
  ASSERT_EQ(result.trees.size(), 1u);
  EXPECT_TRUE(result.trees[0].repairs.empty());
  EXPECT_GT(result.reroutes.size(), 0u);
}

TEST(TreeRepair, AHubLostMidwayIsLeftOutAndTheOthersGoOn) {
  Scenario s = Loop({1, 2, 4, 1}, {Over(Nodes(0, 8), 2), Over(Nodes(0, 4))}, 200);
  CutOff(s, 5, 30 * kMicrosecond);
  RunResult result = CheckedRepair(s);
  ASSERT_EQ(result.trees[0].repairs.size(), 1u);
  const TreeRepair& repair = result.trees[0].repairs[0];
  EXPECT_EQ(repair.lost, std::vector<NodeId>{5});
  EXPECT_EQ(repair.problem.code, TreeProblem::Code::kCutOff);
  EXPECT_NE(repair.ready, kNever);
  EXPECT_EQ(result.trees[0].plan->Participants().size(), 7u);
  EXPECT_TRUE(result.trees[1].repairs.empty());  // it has nothing to do with that hub
  for (const CauTaskResult& task : result.cau_tasks) {
    const bool lost = task.node == 5;
    EXPECT_EQ(task.problem.empty(), !lost) << task.problem;
    if (lost) {
      EXPECT_NE(task.problem.find("no longer a route"), std::string::npos) << task.problem;
    }
    if (task.steps_failed > 0) {
      EXPECT_NE(task.reason, "");
    }
    if (task.tree == 1) {
      EXPECT_EQ(task.steps_failed, 0u);
    }
  }
}

TEST(TreeRepair, WithoutNewRoutesTheTreeGoesRoundTheSilentPair) {
  Scenario s = Loop({1, 1, 6, 1}, {Over(Nodes(0, 6), 2)}, 100);
  s.reroute = false;
  s.parameters.retransmit_tries = 3;
  const Topology topology = *Topology::Create(s.topology);
  s.faults = {SetLinkDown(20 * kMicrosecond, *topology.ParseLink("sn0-d0-h0/sn0-d0-h1"))};
  RunResult result = CheckedRepair(s);
  ASSERT_EQ(result.trees[0].repairs.size(), 1u);
  EXPECT_EQ(result.trees[0].repairs[0].problem.code, TreeProblem::Code::kUnacknowledged);
  EXPECT_TRUE(result.trees[0].repairs[0].lost.empty());
  for (const TreeVertex& v : result.trees[0].plan->vertices) {
    if (v.parent == kNoVertex) continue;
    EXPECT_NE(v.node + result.trees[0].plan->vertices[v.parent].node, 1u);
  }
  for (const CauTaskResult& task : result.cau_tasks) EXPECT_EQ(task.problem, "");
}

TEST(TreeRepair, MembersThatWereLeftOutComeBackWithTheirLinks) {
  Scenario s = Loop({1, 2, 4, 1}, {Over(Nodes(0, 8), 2)}, 600);
  CutOff(s, 5, 30 * kMicrosecond);
  for (const FaultSpec& fault : std::vector(s.faults)) {
    s.faults.push_back(SetLinkUp(500 * kMicrosecond, *fault.select.link));
  }
  RunResult result = CheckedRepair(s);
  const TreeStatus& tree = result.trees[0];
  ASSERT_EQ(tree.repairs.size(), 2u);
  EXPECT_EQ(tree.repairs[0].lost, std::vector<NodeId>{5});
  EXPECT_EQ(tree.repairs[1].problem.code, TreeProblem::Code::kMembersBack);
  EXPECT_EQ(tree.repairs[1].back, std::vector<NodeId>{5});
  EXPECT_NE(tree.repairs[1].ready, kNever);
  EXPECT_EQ(tree.plan->Participants(), Nodes(0, 8));
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.problem, "");
    EXPECT_NE(task.reason, "");
    // It missed what the others did without it, and took part in the rest.
    EXPECT_GT(task.steps_right, task.node == 5 ? 100u : 1790u) << task.node;
    if (task.node == 5) {
      EXPECT_LT(task.steps_right, 1790u);
    }
  }
}

TEST(TreeRepair, WithoutNewRoutesASilentMemberComesBackWithItsLinks) {
  Scenario s = Loop({1, 1, 4, 1}, {Over(Nodes(0, 4), 2)}, 2000);
  s.reroute = false;
  s.parameters.retransmit_tries = 3;
  s.parameters.retransmit_timeout = 10 * kMicrosecond;
  CutOff(s, 2, 30 * kMicrosecond);
  for (const FaultSpec& fault : std::vector(s.faults)) {
    s.faults.push_back(SetLinkUp(2 * kMillisecond, *fault.select.link));
  }
  RunResult result = CheckedRepair(s);
  const TreeStatus& tree = result.trees[0];
  ASSERT_GE(tree.repairs.size(), 2u);
  EXPECT_EQ(tree.state, TreeState::kReady);
  EXPECT_EQ(tree.repairs.back().problem.code, TreeProblem::Code::kMembersBack);
  EXPECT_EQ(tree.repairs.back().back, std::vector<NodeId>{2});
  EXPECT_EQ(tree.plan->Participants(), Nodes(0, 4));
  for (const CauTaskResult& task : result.cau_tasks) EXPECT_EQ(task.problem, "");
}

TEST(TreeRepair, ATreeThatCouldNotBeLaidIsLaidWhenItCanBe) {
  Scenario s = Loop({1, 1, 4, 1}, {Over({0, 1}), Over({2, 3})}, 1000);
  const Topology topology = *Topology::Create(s.topology);
  for (const auto& [a, b] :
       std::vector<std::pair<NodeId, NodeId>>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}}) {
    s.faults.push_back(SetLinkDown(30 * kMicrosecond, {a, topology.LPort(a, b)}));
    s.faults.push_back(SetLinkUp(500 * kMicrosecond, {a, topology.LPort(a, b)}));
  }
  s.trees[1].name = "other";
  RunResult result = CheckedRepair(s);
  EXPECT_EQ(result.trees[0].state, TreeState::kReady);
  EXPECT_EQ(result.trees[0].plan->Participants(), Nodes(0, 2));
  EXPECT_EQ(result.trees[0].problem.code, TreeProblem::Code::kNone);
  EXPECT_TRUE(result.trees[1].repairs.empty());
  // Nobody went on without them, so nothing was missed.
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.problem, "");
    EXPECT_GE(task.steps_right, 3000u) << task.node;
  }
}

TEST(TreeRepair, AFabricThatFallsApartEndsWithReasonsNotInAHang) {
  Scenario s = Loop({1, 1, 4, 1}, {Over(Nodes(0, 4), 2)}, 100);
  for (NodeId node = 0; node < 3; ++node) {
    const Topology topology = *Topology::Create(s.topology);
    for (NodeId other = node + 1; other < 4; ++other) {
      s.faults.push_back(SetLinkDown(30 * kMicrosecond, {node, topology.LPort(node, other)}));
    }
  }
  RunResult result = CheckedRepair(s);
  EXPECT_EQ(result.trees[0].state, TreeState::kFailed);
  for (const CauTaskResult& task : result.cau_tasks) EXPECT_NE(task.problem, "");
}

// A tree over some of the hubs, faults that come and go: whatever happens, the run ends, no result
// is wrong, and who did not do all says why.
Scenario RandomScenario(RandomStream& random) {
  const TopologySpec shapes[] = {
      {1, 1, 6, 1}, {1, 2, 4, 1}, {2, 2, 2, 2}, {3, 1, 3, 1}, {1, 4, 8, 1}};
  const TopologySpec shape = shapes[random.Below(5)];
  const Topology topology = *Topology::Create(shape);
  std::vector<TreeSpec> trees;
  for (std::uint32_t t = 0; t < 1 + random.Below(3); ++t) {
    TreeSpec tree = Over({}, 1 + static_cast<int>(random.Below(8)));
    tree.name = "t" + std::to_string(t);
    for (NodeId node = 0; node < topology.hubs(); ++node) {
      if (random.Below(3) > 0) tree.members.push_back(node);
      if (random.Below(9) == 0) tree.relays.push_back(node);
    }
    if (tree.members.size() < 2) tree.members = {0, 1};
    if (random.Below(4) == 0) tree.order = OperandOrder::kArrival;
    trees.push_back(tree);
  }
  Scenario s = Loop(shape, trees, 20 + random.Below(60));
  s.seed = random.Next();
  CauWorkload& loop = std::get<CauWorkload>(s.workload);
  loop.type = static_cast<OperandType>(random.Below(kOperandTypes));
  loop.op = random.Below(2) ? ReduceOp::kSum : ReduceOp::kMin;
  loop.in_flight = 1 + static_cast<int>(random.Below(12));
  loop.rotate_root = random.Below(2);
  if (random.Below(2)) loop.compute_max = random.Below(3'000'000);
  s.reroute = random.Below(4) > 0;
  s.parameters.cau_queue_packets = 1 + static_cast<int>(random.Below(8));
  s.parameters.retransmit_timeout = (5 + random.Below(40)) * kMicrosecond;
  s.parameters.retransmit_tries = 3 + static_cast<int>(random.Below(4));
  const std::vector<LinkEnd> links = topology.Links();
  std::map<std::size_t, Time> down;
  for (std::uint32_t f = random.Below(6); f > 0; --f) {
    const std::size_t link = random.Below(static_cast<std::uint32_t>(links.size()));
    if (down.contains(link)) continue;
    const Time at = 1 + static_cast<Time>(random.Below(80'000'000));
    down[link] = at;
    s.faults.push_back(SetLinkDown(at, links[link]));
    if (random.Below(2))
      s.faults.push_back(
          SetLinkUp(at + 1 + static_cast<Time>(random.Below(90'000'000)), links[link]));
  }
  if (random.Below(4) == 0 && down.empty())
    CutOff(s, random.Below(topology.hubs()), random.Below(60'000'000));
  return s;
}

TEST(TreeRepair, RandomTreesUnderRandomFaultsAreRightOrSayWhy) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "tree_repair");
  std::uint64_t repairs = 0, failed = 0, resent = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const Scenario s = RandomScenario(random);
    RunResult result = CheckedRepair(s);
    for (const CauTaskResult& task : result.cau_tasks) {
      if (task.steps_failed > 0) {
        EXPECT_FALSE(task.reason.empty());
      }
      EXPECT_EQ(task.problem.find("out of order"), std::string::npos) << task.problem;
      failed += task.steps_failed;
    }
    for (const TreeStatus& tree : result.trees) repairs += tree.repairs.size();
    resent += Of(result, CauCounter::kPacketsResent);
    if (round % 4 > 0) continue;
    test::SplitOptions options;
    options.processes = 3;
    options.process_of = [](NodeId node) { return static_cast<int>(node % 3); };
    options.seed = test::Seed() + static_cast<std::uint64_t>(round);
    const auto split = test::SplitRun(s, options);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, result.digest);
    ASSERT_EQ(split->trees.size(), result.trees.size());
    for (std::size_t t = 0; t < result.trees.size(); ++t) {
      EXPECT_EQ(split->trees[t].plan->vertices, result.trees[t].plan->vertices);
    }
  }
  EXPECT_GT(repairs, 0u);
  EXPECT_GT(failed, 0u);
  EXPECT_GT(resent, 0u);
}

// --- Commands ------------------------------------------------------------------------------------

TEST(TreeService, CreatesListsAndDeletesTreesInVirtualTime) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  auto fabric = Fabric::Create(s, Placement::Single(4));
  ASSERT_TRUE(fabric.ok());
  Fabric& f = **fabric;
  const TableSet tables = Planner(f.topology()).Plan(Failures());
  for (NodeId node = 0; node < 4; ++node) f.InstallTables(node, tables[node]);
  f.Start();
  const auto run = [&f] {
    while (!f.work_left().done()) f.RunWindow(f.NextEventTime() + f.lookahead(), nullptr);
  };
  for (int i = 0; i < 64; ++i) {
    TreeSpec spec = Over(Nodes(0, 4), 1 + i % 8);
    spec.name = "tree" + std::to_string(i);
    const auto id = f.CreateTree(spec, f.now());
    ASSERT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(*id, i);
    EXPECT_EQ(f.CreateTree(spec, f.now()).status().code(), absl::StatusCode::kAlreadyExists);
  }
  TreeSpec one_more = Over({2, 3});
  EXPECT_EQ(f.CreateTree(one_more, f.now()).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(f.CreateTree(Over({2}), f.now()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(f.DeleteTree(64, f.now()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(f.trees()[0].state, TreeState::kSettingUp);
  run();
  for (const TreeStatus& tree : f.trees()) EXPECT_EQ(tree.state, TreeState::kReady);
  ASSERT_TRUE(f.DeleteTree(7, f.now()).ok());
  EXPECT_EQ(f.DeleteTree(7, f.now()).code(), absl::StatusCode::kNotFound);
  run();
  EXPECT_EQ(f.trees()[7].state, TreeState::kDeleted);
  const auto again = f.CreateTree(one_more, f.now());  // its index is free
  ASSERT_TRUE(again.ok()) << again.status();
  run();
  EXPECT_EQ(f.trees()[*again].state, TreeState::kReady);
}

// A run once ended before its hubs knew, if a window ended then.
TEST(TreeService, WorkIsLeftUntilTheHubsKnowThatATreeIsReadyOrGone) {
  for (const bool short_windows : {false, true}) {
    SCOPED_TRACE(short_windows);
    Scenario s;
    s.topology = {1, 1, 4, 1};
    auto fabric = Fabric::Create(s, Placement::Single(4));
    ASSERT_TRUE(fabric.ok());
    Fabric& f = **fabric;
    f.Start();
    const auto run = [&f, short_windows] {
      const Time window = short_windows ? 1 : f.lookahead();
      while (!f.work_left().done()) f.RunWindow(f.NextEventTime() + window, nullptr);
    };
    const Time created = f.now();
    const auto id = f.CreateTree(Over({0, 1}), created);
    ASSERT_TRUE(id.ok()) << id.status();
    run();
    EXPECT_EQ(f.last_event(), created + 3 * s.parameters.management_latency);
    const Time deleted = f.now();
    ASSERT_TRUE(f.DeleteTree(*id, deleted).ok());
    run();
    EXPECT_EQ(f.last_event(), deleted + s.parameters.management_latency);
    EXPECT_EQ(f.NextEventTime(), kNever);
  }
}

TEST(TreeService, AScenarioWith65TreesOnOneCauIsRefused) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  for (int i = 0; i < 65; ++i) {
    s.trees.push_back(Over({0, 1 + static_cast<NodeId>(i % 3)}));
    s.trees.back().name = std::to_string(i);
  }
  const auto result = RunScenario(s, RunOptions());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
  s.trees.pop_back();
  EXPECT_TRUE(RunScenario(s, RunOptions()).ok());
}

}  // namespace
}  // namespace percs
