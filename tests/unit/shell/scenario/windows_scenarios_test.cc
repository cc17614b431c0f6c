// Programs of windows in scenario files: the examples show what they are there to show, and what is
// written wrong is refused with its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/sim/run.h"
#include "proto/convert/result_parts.h"
#include "proto/scenario/build.h"
#include "proto/scenario/file.h"
#include "proto/scenario/reader.h"
#include "proto/scenario/windows.h"
#include "tests/support/fault_runs.h"
#include "tests/unit/shell/scenario/example_result.h"

namespace percs {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

RunResult ResultOf(const std::string& name) {
  RunResult result = test::ExampleResult(name);
  for (const WindowProgramResult& program : result.window_programs)
    EXPECT_TRUE(program.ended) << program.name;
  return result;
}

TEST(WindowScenarios, RdmaAndAtomicsHappenOnceUnderLoss) {
  RunResult result = ResultOf("hfi-rdma");
  EXPECT_GT(Dropped(result, DropReason::kCrc), 0u);
  EXPECT_GT(result.total.packets_resent, 0u);
  EXPECT_EQ(result.total.Hfi(0, HfiCounter::kAtomics), 400u);
  EXPECT_EQ(result.total.Hfi(0, HfiCounter::kRdmaBytesWritten), 1u << 20);
  EXPECT_EQ(result.total.Hfi(0, HfiCounter::kRdmaBytesRead), 1u << 20);
}

TEST(WindowScenarios, TwoJobsCannotTouchEachOther) {
  RunResult result = ResultOf("hfi-jobs");
  EXPECT_EQ(Dropped(result, DropReason::kWrongKey), 2u);
  EXPECT_EQ(result.total.Hfi(0, HfiCounter::kFaults), 5u);
  EXPECT_EQ(result.total.Hfi(0, HfiCounter::kRdmaBytesWritten), 64u);
}

TEST(WindowScenarios, ADiskIsUnpluggedHalfWayAndFoundAgain) {
  RunResult result = ResultOf("hfi-pcie");
  ASSERT_EQ(result.faults.size(), 1u);
  EXPECT_EQ(result.faults[0].phase, FaultPhase::kRecovered);
  const std::uint64_t out = result.total.Pcie(2, PcieCounter::kBytesOut);
  EXPECT_GT(out, (64u << 10) + (1400u << 10))
      << "both writes, and what the one that failed had done";
  EXPECT_LT(out, (64u << 10) + (1500u << 10));
  EXPECT_EQ(result.total.Pcie(2, PcieCounter::kBytesIn), 64u << 10);
  EXPECT_GE(result.total.Pcie(2, PcieCounter::kRefused), 3u);
}

TEST(WindowScenarios, AFullReceiveFifoDropsAndTheRestComesWhole) {
  const RunResult result = ResultOf("hfi-full-fifo");
  EXPECT_EQ(Dropped(result, DropReason::kReceiveFifoFull), 60u - 16);
  EXPECT_EQ(result.window_programs[0].received, 16u);
}

TEST(WindowScenarios, AWrongEndIsAViolation) {
  const auto message = ReadScenarioText(
      "topology: {supernodes: 1, drawers: 1, hubs: 2}\n"
      "workload:\n"
      "  windows:\n"
      "  - name: hopeful\n"
      "    hub: sn0-d0-h0\n"
      "    steps:\n"
      "    - reserve: {}\n"
      "    - register: {address: 1MiB, bytes: 4KiB}\n"
      "    - write: {address: 1MiB, pattern: 1}\n"
      "    - check: {address: 1MiB, pattern: 2}\n",
      "hopeful.yaml", ScenarioFormat::kYaml);
  ASSERT_TRUE(message.ok()) << message.status();
  const auto result = RunScenario(*BuildScenario(*message, ""), {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->violations.size(), 1u);
  EXPECT_THAT(result->violations[0], HasSubstr("hopeful"));
}

TEST(WindowScenarios, WhatIsWrittenWrongHasItsPlace) {
  const auto error = [](const std::string& step) {
    const auto message = ReadScenarioText(
        "topology: {supernodes: 1, drawers: 1, hubs: 2}\nworkload:\n  windows:\n  - hub: "
        "sn0-d0-h0\n    steps:\n    - " +
            step + "\n",
        "wrong.yaml", ScenarioFormat::kYaml);
    if (!message.ok()) return std::string(message.status().message());
    return std::string(BuildScenario(*message, "").status().message());
  };
  EXPECT_THAT(error("reserve: {}"), IsEmpty());
  EXPECT_THAT(error("rdma_write: {hub: sn9-d0-h0}"), HasSubstr("sn9-d0-h0"));
  EXPECT_THAT(error("repeat: {steps: 2, times: 3}"),
              HasSubstr("2 steps are to be repeated, but only 0 precede it"));
  EXPECT_THAT(error("reserve: {}\n    - repeat: {times: 1000000000}"), IsEmpty());
  EXPECT_THAT(error("reserve: {}\n    - repeat: {times: 1000000000}\n    - fence: {}"),
              HasSubstr("would go through 2000000001 steps or more"));
  EXPECT_THAT(error("fence: {}\n    - fence: {}\n    - repeat: {times: 40000, steps: 2}\n"
                    "    - repeat: {times: 20000}"),
              HasSubstr("a repeat multiplies the steps it repeats"));
  EXPECT_THAT(error("atomic: {hub: sn0-d0-h1, updates: [{}], expect: three}"),
              HasSubstr("\"three\" is not a whole number"));
  EXPECT_THAT(error("fifo_send: {to: sn0-d0-h1, from: 1MiB}"),
              HasSubstr("only ip_send gathers a datagram"));
  EXPECT_THAT(error("await: {}"), HasSubstr("write exactly one of operations, packets,"));
  EXPECT_THAT(error("{reserve: {}, expect: happiness}"), HasSubstr("happiness"));
}

// No step takes time, and each repetition is two steps.
TEST(WindowScenarios, AProgramWaitsAfterManyStepsInOneInstant) {
  const auto finished = [](const std::string& times) {
    const auto message = ReadScenarioText(
        "topology: {supernodes: 1, drawers: 1, hubs: 2}\nworkload:\n  windows:\n  - hub: "
        "sn0-d0-h0\n    steps:\n    - reserve: {}\n    - register: {address: 1MiB, bytes: 4KiB}\n"
        "    - write: {address: 1MiB, pattern: 1}\n    - repeat: {times: " +
            times + "}\n",
        "steps.yaml", ScenarioFormat::kYaml);
    EXPECT_TRUE(message.ok()) << message.status();
    const auto result = RunScenario(*BuildScenario(*message, ""), {});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->violations, IsEmpty());
    return result->window_programs[0].finished;
  };
  EXPECT_LT(finished("4000"), 10 * kMicrosecond);
  EXPECT_EQ(finished("6000"), 10 * kMicrosecond);
  EXPECT_EQ(finished("16000"), 30 * kMicrosecond);
}

TEST(WindowScenarios, AnInnerSwitchOfAFatTreeRunsNoProgram) {
  const auto built = [](const std::string& hub) {
    const auto message = ReadScenarioText(
        "topology: {kind: fat_tree, levels: 2, radix: 8}\nworkload:\n  windows:\n  - {hub: " + hub +
            ", steps: [{reserve: {}}]}\n",
        "tree.yaml", ScenarioFormat::kYaml);
    if (!message.ok()) return std::string(message.status().message());
    return std::string(BuildScenario(*message, "").status().message());
  };
  EXPECT_THAT(built("l1-s3"), IsEmpty());
  EXPECT_THAT(built("l2-s0"),
              HasSubstr("l2-s0, which has no windows; l1-s0 to l1-s3 have windows"));
}

TEST(WindowScenarios, ResultsCrossTheWireUnchanged) {
  WindowProgramResult result;
  result.program = 3;
  result.name = "p";
  result.node = 7;
  result.operations = 10;
  result.wrong = 1;
  result.received = 5;
  result.problem = "why";
  result.ended = true;
  result.finished = 123;
  result.marks = {1, 2};
  result.values = {~0ull, 4};
  v1::WindowProgramResult message;
  WindowProgramToProto(result, &message);
  const WindowProgramResult back = WindowProgramFromProto(message);
  EXPECT_EQ(std::tie(back.program, back.name, back.node, back.operations, back.wrong, back.received,
                     back.problem, back.ended, back.finished, back.marks, back.values),
            std::tie(result.program, result.name, result.node, result.operations, result.wrong,
                     result.received, result.problem, result.ended, result.finished, result.marks,
                     result.values));
}

}  // namespace
}  // namespace percs
