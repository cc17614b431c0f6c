// `workload.collective`: what arrives in the machine's struct, what is refused, and that its
// results survive the wire.
#include "proto/scenario/collective.h"

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "emulator/sim/check_scenario.h"
#include "emulator/sim/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/result_parts.h"
#include "proto/scenario/build.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/reader.h"
#include "tests/support/scenario_text.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

std::string CollectiveError(const std::string& fields) {
  const auto scenario =
      Build("topology: {drawers: 1, hubs: 4}\nworkload: {collective: {" + fields + "}}\n");
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

TEST(CollectiveScenario, FieldsArrive) {
  const auto scenario = Build(
      "topology: {drawers: 1, hubs: 4}\n"
      "trees: [{name: a, members: all}, {name: b, members: all}]\n"
      "workload:\n"
      "  collective: {operation: scan, algorithm: p2p, nodes: 3, tasks_per_node: 5, "
      "threads_per_core: 2,\n"
      "               mapping: cpu, bytes: 24B, op: max, type: uint64, root: 14, rotate_root: "
      "true, warm_up: 0,\n"
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
  EXPECT_THAT(CollectiveError("algorithm: magic"),
              HasSubstr(place + "unknown allreduce algorithm 'magic'; algorithms: p2p:"));
  EXPECT_EQ(CollectiveError("root: 4"), place + "root 4: tasks are 0 to 3");
  EXPECT_EQ(CollectiveError("bytes: 12B"),
            place + "12 bytes is not a multiple of 8, the size of int64");
  EXPECT_THAT(CollectiveError("op: and, type: double"), HasSubstr(place));
  EXPECT_THAT(CollectiveError("nodes: 5"), HasSubstr(place));
  EXPECT_THAT(CollectiveError("tree: world"),
              HasSubstr("workload.collective.tree: there is no tree \"world\""));
  EXPECT_THAT(CollectiveError("iterations: 0"),
              HasSubstr("workload.collective.iterations: 0 is out of range"));
}

TEST(CollectiveScenario, PairsHaveTheirOperations) {
  const auto scenario = Build("workload: {collective: {op: maxloc, type: float, bytes: 24B}}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(std::get<CollectiveWorkload>(scenario->workload).op, ReduceOp::kMaxLoc);
  EXPECT_THAT(CollectiveError("op: minloc, bytes: 24B"),
              HasSubstr("24 bytes is not a multiple of 16, the size of a pair of int64"));
  EXPECT_THAT(CollectiveError("op: minloc, bytes: 16B, algorithm: cau"),
              HasSubstr("a CAU does not support minloc of int64 operands"));
  const auto tree =
      Build("trees: [{name: a, members: all}]\nworkload: {cau: {operation: maxloc}}\n");
  EXPECT_THAT(std::string(tree.status().message()),
              HasSubstr("a CAU does not support maxloc of double operands"));
}

// The algorithms of an operation, as the error for an unknown one lists them.
std::vector<std::string> AlgorithmsOf(const std::string& operation) {
  const std::string error = CollectiveError("operation: " + operation + ", algorithm: none");
  const std::string list = "algorithms: ";
  const std::size_t at = error.find(list);
  return at == error.npos ? std::vector<std::string>()
                          : std::vector<std::string>(absl::StrSplit(
                                error.substr(at + list.size(), error.find('\n', at) - at), ", "));
}

// Runs it on as many nodes and tasks as it takes, with all costs at their least.
void RunAtLeastCost(const std::string& operation, const std::string& algorithm,
                    const HostParameters& host) {
  int runs = 0;
  for (const char* places : {"bytes: 4KiB, nodes: 1, tasks_per_node: 4", "bytes: 4KiB, nodes: 4",
                             "bytes: 4KiB, nodes: 3, tasks_per_node: 3", "bytes: 16B, nodes: 4",
                             "bytes: 16B, nodes: 4, tasks_per_node: 3"}) {
    auto scenario = Build(
        "topology: {drawers: 1, hubs: 4}\n"
        "parameters: {send_overhead: 0ps, receive_overhead: 0ps}\n"
        "workload: {collective: {iterations: 3, operation: " +
        operation + ", algorithm: '" + algorithm + "', " + places + "}}\n");
    if (!scenario.ok()) continue;  // not on these nodes
    auto& w = std::get<CollectiveWorkload>(scenario->workload);
    w.host = host;
    if (!CheckScenario(*scenario, RunsOn::kProcess).ok()) continue;
    ++runs;
    const auto result = RunScenario(*scenario, {});
    ASSERT_TRUE(result.ok()) << places << ": " << result.status();
    EXPECT_EQ(result->collective.tasks, w.placement.tasks());
    EXPECT_EQ(result->collective.wrong, 0u);
    EXPECT_THAT(result->violations, ::testing::IsEmpty());
  }
  EXPECT_GT(runs, 0);
}

// Where all that takes time takes none, a task may begin, send and end before the next has begun.
TEST(CollectiveScenario, EveryAlgorithmRunsWithAllCostsAtTheirLeast) {
  v1::HostParameters least;
  for (const auto* field : VisibleFields(v1::HostParameters::descriptor()))
    ASSERT_TRUE(SetFromText(&least, field, RulesOf(field).min()).ok()) << field->full_name();
  std::size_t algorithms = 0;
  for (const auto* operation : Choices(v1::TaskOperation_descriptor())) {
    for (const std::string& algorithm : AlgorithmsOf(ChoiceName(operation))) {
      SCOPED_TRACE(ChoiceName(operation) + " " + algorithm);
      RunAtLeastCost(ChoiceName(operation), algorithm, BuildHostParameters(least));
      ++algorithms;
    }
  }
  EXPECT_GT(algorithms, 10u);
}

// Every number of the struct, in order. The size check below makes a new field fail here.
std::vector<std::int64_t> Numbers(const HostParameters& p) {
  std::vector<std::int64_t> all;
  const auto add = [&all](auto... values) {
    (all.push_back(static_cast<std::int64_t>(values)), ...);
  };
  add(p.smt, p.collective_entry, p.local_send, p.local_receive, p.eager_limit, p.leader_eager_limit,
      p.local_fragment, p.registration, p.network_registration, p.rdma_per_kib, p.fifo_per_kib,
      p.fifo_latency, p.write_per_kib, p.copy_per_kib, p.memory_per_kib, p.cached, p.own_cache,
      p.own_per_kib, p.combine_per_kib, p.line_same_core, p.line_same_chip, p.line_other_chip,
      p.line_repeat, p.shared_entry, p.shared_step, p.node_per_kib, p.shared_memory_per_kib,
      p.spin_polls, p.poll, p.shared_record, p.shared_chunk, p.shared_piece, p.two_buffers_from,
      p.cau_send, p.cau_receive);
  return all;
}
struct SameFieldsAsHostParameters {
  int smt;
  Time messages_first[3];
  std::uint64_t eager_limits[2];
  std::uint64_t local_fragment;
  Time registrations[2];
  Time copies[6];
  std::uint64_t cached[2];
  Time shared[10];
  int spin_polls;
  Time poll;
  std::uint64_t sizes[4];
  Time cau[2];
};
static_assert(sizeof(HostParameters) == sizeof(SameFieldsAsHostParameters),
              "a field came or went: host.proto, collective.cc and Numbers() have to follow");

TEST(HostParametersTable, HasTheDefaultsOfTheStructAndWiresEveryField) {
  const std::vector<std::int64_t> defaults = Numbers(HostParameters());
  std::size_t fields = 0;
  for (const auto* field : VisibleFields(v1::HostParameters::descriptor())) {
    v1::HostParameters message;
    ASSERT_TRUE(SetFromText(&message, field, DefaultValue(field)).ok()) << field->full_name();
    EXPECT_EQ(Numbers(BuildHostParameters(message)), defaults) << field->full_name();
    const bool at_max = DefaultValue(field) == RulesOf(field).max();
    ASSERT_TRUE(
        SetFromText(&message, field, at_max ? RulesOf(field).min() : RulesOf(field).max()).ok());
    const auto changed = Numbers(BuildHostParameters(message));
    int differences = 0;
    for (std::size_t i = 0; i < changed.size(); ++i) differences += changed[i] != defaults[i];
    EXPECT_EQ(differences, 1) << field->full_name();
    ++fields;
  }
  EXPECT_EQ(fields, defaults.size());
}

TEST(HostParametersTable, IsPartOfAScenario) {
  const auto scenario =
      Build("workload: {collective: {host: {cau_send: 1us, eager_limit: 1KiB}}}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const HostParameters& host = std::get<CollectiveWorkload>(scenario->workload).host;
  EXPECT_EQ(host.cau_send, kMicrosecond);
  EXPECT_EQ(host.eager_limit, 1024u);
  EXPECT_EQ(host.cau_receive, HostParameters().cau_receive);
  EXPECT_THAT(CollectiveError("host: {shared_piece: 1MiB}"),
              HasSubstr("is more than half of the shared buffer"));
  EXPECT_THAT(CollectiveError("host: {cau_sent: 1us}"), HasSubstr("cau_send"));
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
