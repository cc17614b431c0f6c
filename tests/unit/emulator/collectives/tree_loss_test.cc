// Method: tasks call collectives on trees of CAUs, alone and in hybrids, while links and hubs of
// the trees are lost. Every call has to end right on every task, or the run has to say why it
// cannot; nothing may hang (a run that hangs ends as a deadlock without a reason) and no result may
// be wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "emulator/base/random.h"
#include "emulator/collectives/cau_collective.h"
#include "emulator/collectives/loop.h"
#include "emulator/runtime/node_runtime.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"
#include "tests/unit/emulator/cau/cau_hubs.h"

namespace percs {
namespace {

using testing::HasSubstr;

TreeSpec Leaders(NodeId nodes, int fan_out) {
  TreeSpec spec = test::CauHubs::First(nodes, fan_out);
  spec.name = "leaders";
  return spec;
}

Scenario OnATree(Operation operation, const std::string& algorithm, std::uint32_t tasks) {
  CollectiveWorkload w;
  w.operation = operation;
  w.algorithm = algorithm;
  w.placement = {.nodes = 8, .tasks_per_node = tasks};
  w.warm_up = 2;
  w.iterations = 200;
  Scenario scenario;
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 8};
  scenario.workload = w;
  scenario.trees = {Leaders(8, 2)};
  return scenario;
}

// Network management plans no new routes: the tree link stays silent, and the tree fails.
void LoseATreeLink(Scenario* scenario) {
  scenario->faults = {SetLinkDown(40 * kMicrosecond, {0, 0})};  // to node 1, its child in the tree
  scenario->reroute = false;
  scenario->parameters.retransmit_tries = 2;
}

void CutOff(Scenario* scenario, NodeId node, Time at, bool up = false) {
  const Topology topology = *Topology::Create(scenario->topology);
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (topology.connected(node, port))
      scenario->faults.push_back(up ? SetLinkUp(at, {node, port}) : SetLinkDown(at, {node, port}));
  }
}

void ExpectAllRight(const absl::StatusOr<RunResult>& result, const CollectiveWorkload& w) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->collective.tasks, w.placement.tasks());
  EXPECT_EQ(result->collective.iterations, w.iterations);
  EXPECT_EQ(result->collective.wrong, 0u);
  EXPECT_THAT(result->violations, testing::IsEmpty());
}

struct Case {
  Operation operation;
  const char* algorithm;
  bool rotate;
};
const Case kCases[] = {
    {Operation::kAllreduce, "cau", false},       {Operation::kAllreduce, "hybrid:cau", false},
    {Operation::kBarrier, "cau", false},         {Operation::kBarrier, "hybrid:cau", false},
    {Operation::kBroadcast, "cau", true},        {Operation::kBroadcast, "cau", false},
    {Operation::kBroadcast, "hybrid:cau", true}, {Operation::kReduce, "cau", true},
    {Operation::kReduce, "cau", false}};

TEST(TreeLossTest, ALinkLostMidwayIsGoneRoundByNewRoutes) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", OperationName(c.operation), c.algorithm));
    Scenario scenario = OnATree(c.operation, c.algorithm, c.algorithm[0] == 'c' ? 1 : 4);
    auto& workload = std::get<CollectiveWorkload>(scenario.workload);
    workload.rotate_root = c.rotate;
    scenario.faults = {SetLinkDown(40 * kMicrosecond, {0, 0})};
    const auto result = RunScenario(scenario, RunOptions());
    ExpectAllRight(result, workload);
    EXPECT_GT(result->reroutes.size(), 0u);
    EXPECT_TRUE(result->trees[0].repairs.empty());
  }
}

TEST(TreeLossTest, TasksGoOnWhenTheirTreeHasBeenSetUpAnew) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", OperationName(c.operation), c.algorithm));
    Scenario scenario = OnATree(c.operation, c.algorithm, c.algorithm[0] == 'c' ? 1 : 4);
    auto& workload = std::get<CollectiveWorkload>(scenario.workload);
    workload.rotate_root = c.rotate;
    LoseATreeLink(&scenario);
    const auto result = RunScenario(scenario, RunOptions());
    ExpectAllRight(result, workload);
    ASSERT_EQ(result->trees[0].repairs.size(), 1u);
    EXPECT_TRUE(result->trees[0].repairs[0].lost.empty());
    NodeStats total = result->total;
    EXPECT_GT(total.Cau(CauCounter::kOperationsFailed), 0u);  // it was in the middle of them
  }
}

TEST(TreeLossTest, ANodeThatIsLeftOutFailsTheCallsOfAll) {
  for (const char* algorithm : {"cau", "hybrid:cau"}) {
    Scenario scenario = OnATree(Operation::kAllreduce, algorithm, algorithm[0] == 'c' ? 1 : 4);
    CutOff(&scenario, 5, 40 * kMicrosecond);
    const auto result = RunScenario(scenario, RunOptions());
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(std::string(result.status().message()),
                testing::AllOf(
                    HasSubstr("7 of the 8 nodes are left in the tree that was set up again after"),
                    HasSubstr("there is no longer a route between"), HasSubstr("sn0-d0-h5"),
                    HasSubstr("waits in")));
  }
}

// The window of the root takes a packet only when its neighbours have the one before: however long
// the link stays silent, no more is given than is kept.
TEST(TreeLossTest, ARootDoesNotRunAheadOfASilentLink) {
  Scenario scenario = OnATree(Operation::kBroadcast, "cau", 1);
  auto& workload = std::get<CollectiveWorkload>(scenario.workload);
  workload.iterations = 4000;
  LoseATreeLink(&scenario);
  scenario.parameters.retransmit_tries = 6;
  ExpectAllRight(RunScenario(scenario, RunOptions()), workload);
}

// Faults that come and go, while new routes are planned or not. Whatever happens, a run that ends
// well has no wrong result, and one that does not says what of the tree went wrong.
Scenario Random(RandomStream& random) {
  const Case& c = kCases[random.Below(std::size(kCases))];
  Scenario s = OnATree(c.operation, c.algorithm, c.algorithm[0] == 'c' ? 1 : 1 + random.Below(6));
  const TopologySpec shapes[] = {{1, 1, 8, 1}, {1, 1, 6, 1}, {1, 2, 4, 1}, {2, 2, 2, 2}};
  s.topology = shapes[random.Below(4)];
  const Topology topology = *Topology::Create(s.topology);
  auto& w = std::get<CollectiveWorkload>(s.workload);
  w.placement.nodes = 4 + random.Below(static_cast<std::uint32_t>(topology.hubs()) - 3);
  w.rotate_root = random.Below(2) != 0;
  w.root = random.Below(w.placement.tasks());
  w.bytes = 8 * (1 + random.Below(8));
  w.type = static_cast<OperandType>(random.Below(kOperandTypes));
  w.op = random.Below(2) ? ReduceOp::kSum : ReduceOp::kMax;
  w.iterations = 100 + random.Below(200);
  s.trees = {
      Leaders(static_cast<NodeId>(w.placement.nodes), 1 + static_cast<int>(random.Below(8)))};
  for (NodeId node = w.placement.nodes; node < topology.hubs(); ++node) {
    if (random.Below(3) == 0) s.trees[0].relays.push_back(node);
  }
  s.reroute = random.Below(4) == 0;
  s.parameters.cau_queue_packets = 1 + static_cast<int>(random.Below(8));
  s.parameters.retransmit_timeout = (5 + random.Below(30)) * kMicrosecond;
  s.parameters.retransmit_tries = 1 + static_cast<int>(random.Below(4));
  const std::vector<LinkEnd> links = topology.Links();
  for (std::uint32_t f = 1 + random.Below(5); f > 0; --f) {
    const std::size_t link = random.Below(static_cast<std::uint32_t>(links.size()));
    const auto same = [&](const FaultSpec& fault) { return fault.select.link == links[link]; };
    if (std::any_of(s.faults.begin(), s.faults.end(), same)) continue;
    const Time at = 1 + static_cast<Time>(random.Below(120)) * kMicrosecond;
    s.faults.push_back(SetLinkDown(at, links[link]));
    if (random.Below(2))
      s.faults.push_back(
          SetLinkUp(at + 1 + static_cast<Time>(random.Below(400)) * kMicrosecond, links[link]));
  }
  return s;
}

TEST(TreeLossTest, RandomFaultsCostTimeOrAreReported) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "tree_loss");
  std::size_t repaired = 0, reported = 0;
  for (int round = 0; round < 90; ++round) {
    const Scenario s = Random(random);
    const auto& w = std::get<CollectiveWorkload>(s.workload);
    SCOPED_TRACE(fmt::format("round {}: {} {} of {} B on {} x {} tasks", round,
                             OperationName(w.operation), w.algorithm, w.bytes, w.placement.nodes,
                             w.placement.tasks_per_node));
    const auto result = RunScenario(s, RunOptions());
    if (!result.ok()) {
      ++reported;
      EXPECT_THAT(std::string(result.status().message()),
                  testing::AnyOf(HasSubstr("nodes are left in the tree"),
                                 HasSubstr("no tree connects the hubs"),
                                 HasSubstr("it continues without this hub"),
                                 HasSubstr("must be repeated")));
      EXPECT_THAT(std::string(result.status().message()),
                  testing::Not(HasSubstr("not set up again yet")));
      continue;
    }
    ExpectAllRight(result, w);
    const auto& repairs = result->trees[0].repairs;
    repaired += !repairs.empty() && repairs.back().ready != kNever;
    if (round % 6 > 0) continue;
    test::SplitOptions options;
    options.processes = 2;
    options.process_of = [](NodeId node) { return static_cast<int>(node % 2); };
    options.seed = test::Seed() + static_cast<std::uint64_t>(round);
    const auto split = test::SplitRun(s, options);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->digest, result->digest);
  }
  EXPECT_GT(repaired, 0u);
  EXPECT_GT(reported, 0u);
}

// --- Many trees ----------------------------------------------------------------------------------

constexpr NodeId kNodes = 4;

// One task on each of four nodes, which starts a reduce on every tree, all at once, and waits for
// all.
class ManyTrees {
 public:
  explicit ManyTrees(int trees)
      : hubs_(kNodes), done_(kNodes * static_cast<std::size_t>(trees)), trees_(trees) {
    const Topology topology = *Topology::Create({.supernodes = 1, .drawers = 1, .hubs = kNodes});
    for (NodeId node = 0; node < kNodes; ++node) {
      auto runtime =
          std::make_unique<NodeRuntime>(host_, TaskPlacement{.nodes = kNodes}, hubs_.hub(node));
      for (int t = 0; t < trees; ++t) {
        auto plan = PlanTree(topology, test::CauHubs::First(kNodes, 1 + t % 8),
                             [](NodeId, NodeId) { return true; });
        plan->id = static_cast<CauTreeId>(t);
        error_.Update(hubs_.hub(node).AddTree(std::make_shared<const TreePlan>(*std::move(plan))));
        runtime->UseTree(static_cast<CauTreeId>(t));
      }
      runtime->SetProgram([this, node](Rank& rank) { return Program(rank, node); });
      runtimes_.push_back(runtime.get());
      hubs_.hub(node).SetWorkload(std::move(runtime));
    }
    if (!error_.ok()) return;
    hubs_.Run(100 * kMillisecond);
    for (const NodeRuntime* runtime : runtimes_) error_.Update(runtime->error());
  }

  const absl::Status& error() const { return error_; }
  long done() const { return std::count(done_.begin(), done_.end(), 1); }
  std::uint64_t sum(int tree) const { return sums_[static_cast<std::size_t>(tree)]; }

 private:
  struct Call {
    std::unique_ptr<CauCollective> collective;
    std::uint64_t input = 0, output = 0;
    bool done = false;
  };
  Task<> Program(Rank& rank, NodeId node) {
    std::vector<Call> calls(static_cast<std::size_t>(trees_));
    for (std::size_t t = 0; t < calls.size(); ++t) {
      Call& call = calls[t];
      call.collective =
          std::make_unique<CauCollective>(rank, TaskGroup{0, 1, kNodes}, Operation::kReduce, t);
      call.input = 1000 * t + node;
      CollectiveCall what;
      what.root = static_cast<std::uint32_t>(t % kNodes);
      what.bytes = 8;
      what.type = OperandType::kUint64;
      what.input = reinterpret_cast<std::uint8_t*>(&call.input);
      what.output = reinterpret_cast<std::uint8_t*>(&call.output);
      what.done = [](void* flag) { *static_cast<bool*>(flag) = true; };
      what.client = &call.done;
      call.collective->Reset(what);
      call.collective->Start();
    }
    for (std::size_t t = 0; t < calls.size(); ++t) {
      co_await rank.Until(&calls[t].done);
      done_[node * calls.size() + t] = 1;
      if (t % kNodes == node) sums_[t] = calls[t].output;
    }
  }

  HostParameters host_;
  test::CauHubs hubs_;  // owns the nodes' runtimes
  std::vector<int> done_;
  std::array<std::uint64_t, 65> sums_{};
  const int trees_;
  absl::Status error_;
  std::vector<NodeRuntime*> runtimes_;
};

TEST(ManyTreesTest, TasksUseAll64TreesOfACauAtOnce) {
  const ManyTrees all(64);
  EXPECT_TRUE(all.error().ok()) << all.error();
  EXPECT_EQ(all.done(), 64 * kNodes);
  for (int t = 0; t < 64; ++t) EXPECT_EQ(all.sum(t), 4000u * static_cast<unsigned>(t) + 6) << t;
}

TEST(ManyTreesTest, The65thIsRefused) {
  const ManyTrees all(65);
  EXPECT_EQ(all.error().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(all.error().message()),
              HasSubstr("tree 64: all 64 indexes of the CAU of sn0-d0-h0 are in use"));
  // The same for tasks of a scenario.
  Scenario scenario = OnATree(Operation::kAllreduce, "cau", 1);
  for (int t = 1; t < 64; ++t) {
    scenario.trees.push_back(Leaders(8, 1 + t % 8));
    scenario.trees.back().name = fmt::format("t{}", t);
  }
  std::get<CollectiveWorkload>(scenario.workload).cau_tree = 63;
  ExpectAllRight(RunScenario(scenario, RunOptions()),
                 std::get<CollectiveWorkload>(scenario.workload));
  scenario.trees.push_back(Leaders(8, 4));
  scenario.trees.back().name = "one more";
  const absl::Status refused = RunScenario(scenario, RunOptions()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("all 64 indexes of the CAU of"));
}

}  // namespace
}  // namespace percs
