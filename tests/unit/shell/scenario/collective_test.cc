// `workload.collective`: what arrives in the machine's struct, what is refused, and that its results survive
// the wire.
#include "proto/scenario/collective.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scenario/build.h"
#include "proto/scenario/reader.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Scenario> Build(const std::string& yaml) {
  auto loaded = LoadScenarioText(yaml, "a.yaml", ScenarioFormat::kYaml);
  return loaded.ok() ? BuildScenario(*loaded) : loaded.status();
}

std::string ErrorOf(const std::string& fields) {
  const auto scenario = Build("topology: {drawers: 1, hubs: 4}\nworkload: {collective: {" + fields + "}}\n");
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

TEST(CollectiveScenario, FieldsArrive) {
  const auto scenario = Build(
      "topology: {drawers: 1, hubs: 4}\n"
      "trees: [{name: a, members: all}, {name: b, members: all}]\n"
      "workload:\n"
      "  collective: {operation: scan, algorithm: p2p, nodes: 3, tasks_per_node: 5, threads_per_core: 2,\n"
      "               mapping: cpu, bytes: 24B, op: max, type: uint64, root: 14, rotate_root: true, warm_up: 0,\n"
      "               iterations: 7, verified: false, tree: b}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto& w = std::get<CollectiveWorkload>(scenario->workload);
  EXPECT_EQ(w.operation, Operation::kScan);
  EXPECT_EQ(w.algorithm, "p2p");
  EXPECT_EQ(w.placement.nodes, 3u);
  EXPECT_EQ(w.placement.tasks(), 15u);
  EXPECT_EQ(w.placement.threads_per_core, 2);
  EXPECT_EQ(w.placement.mapping, ThreadMapping::kCpu);
  EXPECT_EQ(w.bytes, 24u);
  EXPECT_EQ(w.op, ReduceOp::kMax);
  EXPECT_EQ(w.type, OperandType::kUint64);
  EXPECT_EQ(w.root, 14u);
  EXPECT_TRUE(w.rotate_root);
  EXPECT_EQ(w.warm_up, 0u);
  EXPECT_EQ(w.iterations, 7u);
  EXPECT_FALSE(w.verified);
  EXPECT_EQ(w.cau_tree, 1);
}

TEST(CollectiveScenario, TakesAllHubsUnlessTold) {
  const auto scenario = Build("topology: {drawers: 1, hubs: 4}\nworkload: {collective: {}}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const auto& w = std::get<CollectiveWorkload>(scenario->workload);
  EXPECT_EQ(w.operation, Operation::kAllreduce);
  EXPECT_EQ(w.placement.tasks(), 4u);
  EXPECT_TRUE(w.verified);
}

TEST(CollectiveScenario, WhatCannotBeIsRefusedWithItsPlace) {
  const std::string place = "a.yaml:2:12: workload.collective: ";
  EXPECT_THAT(ErrorOf("algorithm: magic"), HasSubstr(place + "there is no allreduce algorithm 'magic'; there are p2p:"));
  EXPECT_EQ(ErrorOf("root: 4"), place + "root 4: tasks are 0 to 3");
  EXPECT_EQ(ErrorOf("bytes: 12B"), place + "12 bytes are no multiple of the 8 bytes of a int64");
  EXPECT_THAT(ErrorOf("op: and, type: double"), HasSubstr(place));
  EXPECT_THAT(ErrorOf("nodes: 5"), HasSubstr(place));
  EXPECT_THAT(ErrorOf("tree: world"), HasSubstr("workload.collective.tree: there is no tree \"world\""));
  EXPECT_THAT(ErrorOf("iterations: 0"), HasSubstr("workload.collective.iterations: 0 is out of range"));
}

TEST(CollectiveScenario, ResultsSurviveTheWire) {
  CollectiveResult result;
  result.tasks = 6;
  result.iterations = 5;
  result.total = 400;
  result.fastest = 3;
  result.slowest = 90;
  result.wrong = 2;
  result.levels = {{"gather", 11, 12}, {"leaders", 13, 14}};
  v1::TaskCollectiveResult message;
  CollectiveToProto(result, &message);
  const CollectiveResult back = CollectiveFromProto(message);
  DigestStream sent, got;
  result.Fold(sent);
  back.Fold(got);
  EXPECT_EQ(sent.Finish(), got.Finish());
  ASSERT_EQ(back.levels.size(), 2u);
  EXPECT_EQ(back.levels[1].level, "leaders");
}

}  // namespace
}  // namespace percs
