// Operations of programs outside, given to a fabric as commands. Method: two windows are opened,
// and bytes written from one to the other, by commands at virtual times; who listens, and how many
// threads run, changes nothing.
#include <gtest/gtest.h>

#include <map>

#include "emulator/scenario/window_operation.h"
#include "emulator/sim/run.h"
#include "tests/support/executors.h"
#include "tests/support/play.h"

namespace percs {
namespace {

constexpr Address kMemory = 0x10000;

class Heard : public WindowListener {
 public:
  void OnWindowEvent(const WindowEvent& event) override {
    if (event.kind == WindowEvent::Kind::kCompletion) completions[event.id] = event;
  }
  std::map<std::uint64_t, WindowEvent> completions;
};

struct Asked {
  Time at;
  NodeId node;
  WindowOperation operation;
};

WindowOperation Of(std::uint64_t id, WindowOp op, Address address = 0, std::uint64_t bytes = 0) {
  WindowOperation operation;
  operation.op = op;
  operation.id = id;
  operation.window = 3;
  operation.job = 9;
  operation.address = address;
  operation.bytes = bytes;
  return operation;
}

std::vector<Asked> OpenAndWrite(const std::vector<std::uint8_t>& data) {
  std::vector<Asked> asked;
  for (const NodeId node : {0u, 3u}) {
    asked.push_back({0, node, Of(node + 1, WindowOp::kReserve)});
    asked.push_back({0, node, Of(node + 10, WindowOp::kRegister, kMemory, data.size())});
  }
  WindowOperation fill = Of(20, WindowOp::kWriteMemory, kMemory);
  fill.data = data;
  asked.push_back({5 * kMicrosecond, 0, fill});
  WindowOperation put = Of(21, WindowOp::kRdmaWrite, kMemory, data.size());
  put.node = 3;
  put.peer_window = 3;
  put.peer_address = kMemory;
  asked.push_back({5 * kMicrosecond, 0, put});
  asked.push_back({90 * kMicrosecond, 3, Of(22, WindowOp::kReadMemory, kMemory, data.size())});
  return asked;
}

absl::StatusOr<RunResult> Play(const std::vector<Asked>& asked, WindowListener* listener,
                               int threads = 1) {
  Scenario scenario;
  scenario.topology = {1, 1, 4, 1};
  RunOptions options;
  options.threads = threads;
  options.executor = &test::kThreads;
  for (const Asked& a : asked) {
    options.commands.push_back({a.at, [a, listener](Fabric& fabric, Time at) {
                                  return fabric.Issue(a.node, at, a.operation, listener);
                                }});
  }
  return RunScenario(scenario, options);
}

TEST(OutsideOperation, BeginsAtItsTimeAndTheListenerHearsHowItEnded) {
  const std::vector<std::uint8_t> data(5000, 0x5a);
  Heard heard;
  const auto result = Play(OpenAndWrite(data), &heard);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->violations.empty());
  ASSERT_EQ(heard.completions.size(), 7u);
  for (const auto& [id, event] : heard.completions) {
    EXPECT_EQ(event.status, WindowStatus::kOk) << id << ": " << WindowStatusName(event.status);
  }
  EXPECT_EQ(heard.completions[1].at, 0) << "reserving takes no time";
  EXPECT_EQ(heard.completions[20].at, 5 * kMicrosecond)
      << "in the order of the calls: before what reads it";
  EXPECT_GT(heard.completions[21].at, 5 * kMicrosecond);
  EXPECT_LT(heard.completions[21].at, 90 * kMicrosecond);
  EXPECT_EQ(heard.completions[22].data, data);
}

TEST(OutsideOperation, IsTheSameWhoeverListensAndForAnyNumberOfThreads) {
  const std::vector<Asked> asked = OpenAndWrite(std::vector<std::uint8_t>(100'000, 7));
  Heard heard;
  const auto one = Play(asked, &heard), nobody = Play(asked, nullptr),
             two = Play(asked, nullptr, 2);
  ASSERT_TRUE(one.ok() && nobody.ok() && two.ok());
  EXPECT_EQ(one->digest.ToString(), nobody->digest.ToString());
  EXPECT_EQ(one->digest.ToString(), two->digest.ToString());
  EXPECT_GT(one->total.packets_delivered, 49u) << "the run did not end before the operations began";
}

// The operation that a program writes with is lost, and what the ranks send next waits behind it,
// in the same flow.
TEST(OutsideOperation, MessagesThatItCompletesReachTheirRanks) {
  Scenario scenario;
  scenario.topology = {1, 1, 2, 1};
  CollectiveWorkload loop;
  loop.algorithm = "p2p";
  loop.placement.nodes = 2;
  loop.warm_up = 0;
  loop.iterations = 20;
  scenario.workload = loop;
  FaultSpec deaf;
  deaf.id = "deaf";
  deaf.kind = FaultKind::kWindowDown;
  deaf.select.in = {1};
  deaf.window = 3;
  deaf.at = 0;
  deaf.duration = 30 * kMicrosecond;
  scenario.faults = {deaf};
  WindowOperation put = Of(3, WindowOp::kRdmaWrite, kMemory, 64);
  put.node = 1;
  put.peer_window = 3;
  put.peer_address = kMemory;
  Heard heard;
  RunOptions options;
  for (const auto& [node, operation] :
       std::vector<std::pair<NodeId, WindowOperation>>{{0, Of(1, WindowOp::kReserve)},
                                                       {0, Of(2, WindowOp::kRegister, kMemory, 64)},
                                                       {1, Of(1, WindowOp::kReserve)},
                                                       {1, Of(2, WindowOp::kRegister, kMemory, 64)},
                                                       {0, put}}) {
    options.commands.push_back({0, [&heard, node, operation](Fabric& fabric, Time at) {
                                  return fabric.Issue(node, at, operation, &heard);
                                }});
  }
  const auto result = RunScenario(scenario, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->violations.empty());
  EXPECT_EQ(result->collective.tasks, 2u);
  EXPECT_EQ(heard.completions[3].status, WindowStatus::kOk);
  EXPECT_GT(heard.completions[3].at, scenario.parameters.retransmit_timeout) << "it was sent again";
  EXPECT_GT(result->collective.slowest, scenario.parameters.retransmit_timeout)
      << "and a rank waited for it";
}

TEST(OutsideOperation, IsRefusedInThePastAndForWhatHasNoWindows) {
  Scenario scenario;
  scenario.topology = {1, 1, 4, 1};
  const auto topology = Topology::Create(scenario.topology);
  ASSERT_TRUE(topology.ok());
  const auto fabric = Fabric::Create(scenario, Placement::Single(topology->nodes()));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  (*fabric)->RunWindow(kMicrosecond);
  const WindowOperation reserve = Of(1, WindowOp::kReserve);
  EXPECT_EQ((*fabric)->Issue(4, kMicrosecond, reserve, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*fabric)->Issue(0, kMicrosecond - 1, reserve, nullptr).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*fabric)->work_left().unfinished, 0);
  ASSERT_TRUE((*fabric)->Issue(0, kMicrosecond, reserve, nullptr).ok());
  EXPECT_EQ((*fabric)->NextEventTime(), kMicrosecond);
  EXPECT_EQ((*fabric)->work_left().unfinished, 1);
  (*fabric)->RunWindow(kMicrosecond + (*fabric)->lookahead());
  EXPECT_TRUE((*fabric)->work_left().done());
}

TEST(OutsideOperation, IsRefusedForAnInnerSwitchOfAFatTree) {
  Scenario scenario;
  ASSERT_TRUE(scenario.topology.UseGraph({.kind = GraphSpec::Kind::kFatTree, .radix = 4}).ok());
  scenario.parameters.lr = scenario.parameters.d = scenario.parameters.ll;
  const auto topology = Topology::Create(scenario.topology);
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->leaves(), 2u);
  const auto fabric = Fabric::Create(scenario, Placement::Single(topology->nodes()));
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const WindowOperation reserve = Of(1, WindowOp::kReserve);
  EXPECT_TRUE((*fabric)->Issue(1, 0, reserve, nullptr).ok());
  EXPECT_EQ((*fabric)->Issue(2, 0, reserve, nullptr).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace percs
