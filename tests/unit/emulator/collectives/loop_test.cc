// Method: the benchmark loop on small fabrics with real bytes; every result is checked by the loop
// against what a serial program gives. Sizes, counts, roots, ops, types and placements are drawn at
// random.
#include "emulator/collectives/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"
#include "tests/support/executors.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

Scenario LoopScenario(const CollectiveWorkload& workload, std::uint32_t drawers = 1) {
  Scenario scenario;
  scenario.topology.supernodes = 1;
  scenario.topology.drawers = static_cast<int>(drawers);
  scenario.topology.hubs = 8;
  scenario.workload = workload;
  return scenario;
}

std::string Describe(const CollectiveWorkload& w) {
  return fmt::format("{} {} on {} x {} tasks, smt {}, {} B, {} of {}, root {}{}",
                     OperationName(w.operation), w.algorithm, w.placement.nodes,
                     w.placement.tasks_per_node, w.placement.threads_per_core, w.bytes,
                     OpName(w.op), TypeName(w.type), w.root, w.rotate_root ? " rotating" : "");
}

// Three supernodes, packets of one message on many ways, and links that lose some of them.
void LoseAndReorder(Scenario* scenario, RandomStream& random) {
  scenario->topology = {.supernodes = 3, .drawers = 1, .hubs = 4, .d_links_per_pair = 4};
  RouteSetting& route = scenario->routing.fifo;
  route.mode = random.Below(2) ? RouteMode::kHwDirectStriped : RouteMode::kHwIndirect;
  if (route.mode == RouteMode::kHwIndirect) route.selection = MiddleSelection::kRandom;
  scenario->parameters.link_replay = false;
  const Topology topology = *Topology::Create(scenario->topology);
  for (NodeId node = 0; node < topology.hubs(); ++node) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      if (!topology.connected(node, port)) continue;
      scenario->faults.push_back(SetErrorRate(0, {node, port}, 0.004));
    }
  }
}

std::string LayerOf(const CollectiveName& name) { return name.name.substr(0, name.name.find(':')); }

// What the algorithm is for, at random.
CollectiveWorkload Draw(const CollectiveName& name, std::uint32_t nodes_max, RandomStream& random) {
  CollectiveWorkload w;
  w.operation = name.operation;
  w.algorithm = name.name;
  const std::string layer = LayerOf(name);
  w.placement.nodes = layer == "shm" || layer == "smartmap" ? 1 : 1 + random.Below(nodes_max);
  w.placement.tasks_per_node = 1 + random.Below(w.placement.nodes == 1 ? 32 : 6);
  if (layer == "cau") w.placement.tasks_per_node = 1;
  w.placement.threads_per_core = 1 << random.Below(3);
  w.placement.mapping = random.Below(2) ? ThreadMapping::kCore : ThreadMapping::kCpu;
  const std::uint64_t limits[] = {64, 3000, 40000};
  do {
    w.op = static_cast<ReduceOp>(1 + random.Below(kSoftwareReduceOps - 1));
    w.type = static_cast<OperandType>(random.Below(kOperandTypes));
    w.bytes = random.Below(static_cast<std::uint32_t>(limits[random.Below(3)]) / 8 + 1) * 8;
    if (IsOfPairs(w.op)) w.bytes = w.bytes / 16 * 16;
  } while (!CheckReduction(w.op, w.type).ok() || !CheckCollectiveName(w).ok());
  w.root = random.Below(w.placement.tasks());
  w.rotate_root = random.Below(2) != 0;
  w.warm_up = 0;
  w.iterations = 3;
  return w;
}

class EveryAlgorithm : public testing::TestWithParam<CollectiveName> {};

TEST_P(EveryAlgorithm, GivesWhatASerialProgramGives) {
  PERCS_TRACE_SEED();
  const CollectiveName& name = GetParam();
  RandomStream random(test::Seed(), fmt::format("{}/{}", OperationName(name.operation), name.name));
  std::uint64_t lost = 0;
  for (int round = 0; round < 14; ++round) {
    const bool rough = round % 2 != 0;
    const CollectiveWorkload w = Draw(name, rough ? 12 : 8, random);
    Scenario scenario = LoopScenario(w);
    if (rough) LoseAndReorder(&scenario, random);
    const auto result = RunScenario(scenario, RunOptions());
    ASSERT_TRUE(result.ok()) << Describe(w) << ": " << result.status();
    EXPECT_EQ(result->collective.tasks, w.placement.tasks()) << Describe(w);
    EXPECT_EQ(result->collective.wrong, 0u) << Describe(w);
    EXPECT_THAT(result->violations, testing::IsEmpty()) << Describe(w);
    EXPECT_EQ(RunScenario(scenario, RunOptions())->digest, result->digest) << Describe(w);
    lost += result->total.packets_dropped[static_cast<std::size_t>(DropReason::kCrc)];
  }
  if (LayerOf(name) == "p2p") {
    EXPECT_GT(lost, 0u);
  }
}

std::string TestName(const testing::TestParamInfo<CollectiveName>& info) {
  std::string name = fmt::format("{}_{}", OperationName(info.param.operation), info.param.name);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Collectives, EveryAlgorithm, testing::ValuesIn(CollectiveNames()),
                         TestName);

CollectiveWorkload Small(Operation operation, std::uint32_t nodes, std::uint32_t tasks) {
  CollectiveWorkload w;
  w.operation = operation;
  w.placement.nodes = nodes;
  w.placement.tasks_per_node = tasks;
  w.warm_up = 2;
  w.iterations = 20;
  return w;
}

TEST(CollectiveLoopTest, AWrongResultWouldBeSeen) {
  const CollectivePattern pattern(Operation::kAllreduce, ReduceOp::kSum, OperandType::kInt32, 7,
                                  12);
  std::vector<std::uint8_t> input(12), sum(12, 0);
  for (std::uint32_t task = 0; task < 7; ++task) {
    pattern.Fill(5, task, 0, input.data(), nullptr);
    Combine(ReduceOp::kSum, OperandType::kInt32, 3, input.data(), sum.data());
  }
  EXPECT_TRUE(pattern.Check(5, 3, 0, sum.data()));
  EXPECT_FALSE(pattern.Check(6, 3, 0, sum.data()));  // of another call
  ++sum[8];
  EXPECT_FALSE(pattern.Check(5, 3, 0, sum.data()));
}

TEST(CollectiveLoopTest, BuffersWithContentHaveABudget) {
  CollectiveWorkload w = Small(Operation::kAllreduce, 32, 1);
  w.bytes = 64 << 20;  // in and out: 4 GiB of 32 tasks
  EXPECT_TRUE(CheckCollectiveWorkload(w, 32).ok());
  w.bytes += 8;
  EXPECT_EQ(
      CheckCollectiveWorkload(w, 32).message(),
      "verified: 32 tasks with buffers of 134217744 bytes each are more than 4294967296 bytes "
      "of content; take fewer bytes or tasks, or lengths only (`verified: false`)");
  w.verified = false;
  EXPECT_TRUE(CheckCollectiveWorkload(w, 32).ok());

  CollectiveWorkload most = Small(Operation::kAlltoall, 16'416, 128);
  most.placement.threads_per_core = 4;
  most.bytes = 256 << 20;
  EXPECT_THAT(std::string(CheckCollectiveWorkload(most, 16'416).message()),
              testing::HasSubstr("of content"));
}

TEST(CollectiveLoopTest, CallsThatTakeNoTimeEndTheRunWithAnError) {
  CollectiveWorkload w;
  w.operation = Operation::kBarrier;
  w.algorithm = "p2p";
  w.placement = {.nodes = 1, .tasks_per_node = 4};
  w.warm_up = 0;
  w.iterations = 9'999;
  HostParameters& host = w.host;
  host.collective_entry = host.local_send = host.local_receive = host.shared_step = host.poll = 0;
  host.write_per_kib = host.copy_per_kib = host.memory_per_kib = 0;
  host.line_same_core = host.line_same_chip = host.line_other_chip = host.line_repeat = 0;
  ASSERT_TRUE(RunScenario(LoopScenario(w), {}).ok());
  w.iterations = 20'000;
  EXPECT_THAT(RunScenario(LoopScenario(w), {}).status().message(),
              testing::HasSubstr("10000 calls at 0ps: virtual time does not pass"));
  host.collective_entry = 1;
  EXPECT_TRUE(RunScenario(LoopScenario(w), {}).ok());
}

TEST(CollectiveLoopTest, LengthsAloneTakeTheSameTime) {
  for (const std::uint64_t bytes : {8, 1024, 100000}) {
    CollectiveWorkload w = Small(Operation::kBroadcast, 3, 5);
    w.bytes = bytes;
    w.rotate_root = true;
    w.iterations = 5;
    const auto real = RunScenario(LoopScenario(w), RunOptions());
    w.verified = false;
    const auto lengths = RunScenario(LoopScenario(w), RunOptions());
    ASSERT_TRUE(real.ok() && lengths.ok());
    EXPECT_EQ(real->collective.total, lengths->collective.total) << bytes;
    EXPECT_GT(real->collective.total, 0);
  }
}

TEST(CollectiveLoopTest, IsTheSameOnAnyNumberOfThreads) {
  CollectiveWorkload w = Small(Operation::kAllreduce, 8, 4);
  RunOptions two;
  two.threads = 2;
  two.executor = &test::kBackwards;
  const auto one = RunScenario(LoopScenario(w), RunOptions());
  const auto other = RunScenario(LoopScenario(w), two);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(one->digest, other->digest);
  EXPECT_GT(one->total.packets_delivered, 0u);
}

TEST(CollectiveLoopTest, SurvivesALinkThatFlaps) {
  CollectiveWorkload w = Small(Operation::kAlltoall, 4, 3);
  w.bytes = 5000;
  w.iterations = 10;
  Scenario scenario = LoopScenario(w);
  for (int i = 0; i < 3; ++i) {
    scenario.faults.push_back(SetLinkDown((20 + 60 * i) * kMicrosecond, {0, 0}));
    scenario.faults.push_back(SetLinkUp((50 + 60 * i) * kMicrosecond, {0, 0}));
  }
  const auto result = RunScenario(scenario, RunOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->total.packets_resent, 0u);
  EXPECT_THAT(result->violations, testing::IsEmpty());
}

TEST(CollectiveLoopTest, LevelsOfTheHybridsAreTimed) {
  CollectiveWorkload w = Small(Operation::kAllreduce, 4, 8);
  w.algorithm = "hybrid:cau";
  const auto result = RunScenario(LoopScenario(w), RunOptions());
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::string> names;
  for (const LevelTime& level : result->collective.levels) {
    names.push_back(level.level);
    EXPECT_GT(level.total, 0) << level.level;
  }
  EXPECT_THAT(names,
              testing::ElementsAre("shm reduce", "CAU reduce", "CAU broadcast", "shm broadcast"));
}

TEST(CollectiveLoopTest, RefusesWhatATreeOfCausCannotDo) {
  CollectiveWorkload w = Small(Operation::kAllreduce, 4, 1);
  w.algorithm = "cau";
  std::vector<TreeSpec> trees;
  const auto error = [&] {
    Scenario scenario = LoopScenario(w);
    scenario.trees = trees;
    return std::string(RunScenario(scenario, RunOptions()).status().message());
  };
  EXPECT_EQ(error(), "");
  w.bytes = 72;
  EXPECT_THAT(error(),
              testing::HasSubstr("cau allreduce of 72 bytes: a CAU packet has at most 64"));
  w.bytes = 8;
  w.op = ReduceOp::kProd;
  EXPECT_THAT(error(), testing::HasSubstr("a CAU does not support prod of int64 operands"));
  w.op = ReduceOp::kMaxLoc;
  w.bytes = 16;
  EXPECT_THAT(error(), testing::HasSubstr("a CAU does not support maxloc of int64 operands"));
  w.op = ReduceOp::kSum;
  w.placement.tasks_per_node = 2;
  EXPECT_THAT(error(), testing::HasSubstr("one participant per node, so use hybrid:cau"));
  w.placement.tasks_per_node = 1;
  trees = {{.name = "few", .members = {0, 1, 3}}};
  EXPECT_THAT(error(), testing::HasSubstr(
                           "the 3 participants of tree 0 ('few') are not the nodes with tasks"));
  trees = {{.name = "all", .members = {0, 1, 2, 3}}};
  EXPECT_EQ(error(), "");
  w.cau_tree = 1;
  EXPECT_THAT(error(), testing::HasSubstr("cau allreduce on tree 1: the scenario has 1 trees"));
  w.cau_tree = 0;
  trees[0].fan_out = 9;
  EXPECT_THAT(error(), testing::HasSubstr("fan-out"));
}

TEST(CollectiveLoopTest, RefusesWhatCannotBeRun) {
  const auto error = [](CollectiveWorkload w) {
    const auto result = RunScenario(LoopScenario(w), RunOptions());
    return std::string(result.status().message());
  };
  CollectiveWorkload w = Small(Operation::kAllreduce, 4, 2);
  w.algorithm = "telepathy";
  EXPECT_THAT(error(w), testing::HasSubstr(
                            "unknown allreduce algorithm 'telepathy'; algorithms: p2p:butterfly"));
  w = Small(Operation::kAllreduce, 9, 2);
  EXPECT_THAT(error(w), testing::HasSubstr("9 nodes: the fabric has 8 hubs"));
  w = Small(Operation::kAllreduce, 4, 33);
  EXPECT_THAT(error(w), testing::HasSubstr("32 cores with 1 thread each run 1 to 32"));
  w = Small(Operation::kBroadcast, 4, 2);
  w.root = 8;
  EXPECT_THAT(error(w), testing::HasSubstr("root 8: tasks are 0 to 7"));
  w = Small(Operation::kAllreduce, 4, 2);
  w.op = ReduceOp::kXor;
  w.type = OperandType::kFloat;
  EXPECT_THAT(error(w), testing::HasSubstr("xor of float operands does not exist"));
  w = Small(Operation::kReduce, 1, 4);
  w.algorithm = "smartmap:parallel";
  w.op = ReduceOp::kMinLoc;
  w.bytes = 2048;
  EXPECT_THAT(error(w), testing::HasSubstr(
                            "with minloc: a task that computes a part does not have the values"));
  w.algorithm = "p2p";
  w.bytes = 24;
  EXPECT_THAT(error(w),
              testing::HasSubstr("24 bytes is not a multiple of 16, the size of a pair of int64"));
  w = Small(Operation::kReduce, 4, 2);
  w.bytes = 12;
  EXPECT_THAT(error(w), testing::HasSubstr("12 bytes is not a multiple of 8, the size of int64"));
}

}  // namespace
}  // namespace percs
