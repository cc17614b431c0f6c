// Method: the tasks of a few nodes call one collective with arguments that do not go together. It
// has to be reported as what it is, and nothing may go on or give a result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/collectives/cau_collective.h"
#include "emulator/collectives/p2p_collective.h"
#include "emulator/runtime/node_runtime.h"
#include "tests/unit/emulator/cau/cau_hubs.h"

namespace percs {
namespace {

constexpr NodeId kDisagreeNodes = 4;

// One task on each of four nodes, on a tree of CAUs; each makes one call.
class Calls {
 public:
  using MakeOne = std::function<std::unique_ptr<Collective>(Rank&, const TaskGroup&)>;
  using Alter = std::function<void(std::uint32_t task, CollectiveCall& call)>;

  Calls(MakeOne make, Alter alter, std::uint64_t bytes = 8) : hubs_(kDisagreeNodes) {
    for (auto& data : data_) data.assign(256, 1);
    const auto plan =
        PlanTree(*Topology::Create({.supernodes = 1, .drawers = 1, .hubs = kDisagreeNodes}),
                 test::CauHubs::First(kDisagreeNodes), [](NodeId, NodeId) { return true; });
    const auto shared = std::make_shared<const TreePlan>(*plan);
    for (NodeId node = 0; node < kDisagreeNodes; ++node) {
      EXPECT_TRUE(hubs_.hub(node).AddTree(shared).ok());
      auto runtime = std::make_unique<NodeRuntime>(host_, TaskPlacement{.nodes = kDisagreeNodes},
                                                   hubs_.hub(node));
      runtime->UseTree(0);
      CollectiveCall call;
      call.bytes = bytes;
      call.input = data_[node].data();
      call.output = data_[node].data() + 128;
      call.done = [](void* done) { *static_cast<bool*>(done) = true; };
      call.client = &done_[node];
      alter(node, call);
      collectives_.push_back(make(runtime->local_rank(0), {0, 1, kDisagreeNodes}));
      runtime->SetProgram([this, node, call](Rank& rank) { return One(rank, node, call); });
      runtimes_.push_back(runtime.get());
      hubs_.hub(node).SetWorkload(std::move(runtime));
    }
    hubs_.Run(100 * kMillisecond);
  }

  // The errors of all nodes, and what their tasks wait for.
  std::string said() const {
    std::string all;
    for (const NodeRuntime* runtime : runtimes_) {
      if (!runtime->error().ok()) all += std::string(runtime->error().message()) + "\n";
    }
    return all;
  }
  std::string waits() const {
    std::string all;
    for (const auto& collective : collectives_) all += collective->Waits() + "\n";
    return all;
  }
  int done() const { return static_cast<int>(std::count(done_.begin(), done_.end(), true)); }

 private:
  Task<> One(Rank& rank, NodeId node, CollectiveCall call) {
    collectives_[node]->Reset(call);
    collectives_[node]->Start();
    co_await rank.Until(&done_[node]);
  }

  HostParameters host_;
  test::CauHubs hubs_;  // owns the nodes' runtimes
  std::array<std::vector<std::uint8_t>, kDisagreeNodes> data_;
  std::array<bool, kDisagreeNodes> done_{};
  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<NodeRuntime*> runtimes_;
};

Calls::MakeOne OnTree(Operation operation) {
  return [operation](Rank& rank, const TaskGroup& group) {
    return std::make_unique<CauCollective>(rank, group, operation);
  };
}
Calls::MakeOne ByMessages(Operation operation) {
  return [operation](Rank& rank, const TaskGroup& group) {
    return std::make_unique<P2pCollective>(rank, group, *FindP2pAlgorithm(operation, ""), 0);
  };
}
const Calls::Alter kNothing = [](std::uint32_t, CollectiveCall&) {};

TEST(DisagreementTest, CallsThatAgreeComplete) {
  for (const Operation operation : {Operation::kReduce, Operation::kBroadcast}) {
    for (const auto& make : {OnTree(operation), ByMessages(operation)}) {
      const Calls calls(make, kNothing);
      EXPECT_EQ(calls.said(), "");
      EXPECT_EQ(calls.done(), 4);
    }
  }
}

TEST(DisagreementTest, RootsOfAReduceOnATree) {
  const Calls calls(OnTree(Operation::kReduce),
                    [](std::uint32_t task, CollectiveCall& call) { call.root = task == 3; });
  EXPECT_THAT(calls.said(), testing::HasSubstr("root")) << calls.said();
  EXPECT_LT(calls.done(), 4);
}

TEST(DisagreementTest, OperationsTypesAndCountsOfAReduceOnATree) {
  const Calls ops(OnTree(Operation::kReduce), [](std::uint32_t task, CollectiveCall& call) {
    if (task == 2) call.op = ReduceOp::kMax;
  });
  EXPECT_THAT(ops.said(), testing::HasSubstr("operation")) << ops.said();
  const Calls types(OnTree(Operation::kReduce), [](std::uint32_t task, CollectiveCall& call) {
    if (task == 2) call.type = OperandType::kUint64;
  });
  EXPECT_THAT(types.said(), testing::HasSubstr("type")) << types.said();
  const Calls counts(OnTree(Operation::kReduce), [](std::uint32_t task, CollectiveCall& call) {
    if (task == 2) call.bytes = 16;
  });
  EXPECT_THAT(counts.said(), testing::HasSubstr("sizes")) << counts.said();
}

TEST(DisagreementTest, CountsOfABroadcastOnATree) {
  const Calls calls(OnTree(Operation::kBroadcast), [](std::uint32_t task, CollectiveCall& call) {
    if (task == 2) call.bytes = 16;
  });
  EXPECT_THAT(calls.said(),
              testing::HasSubstr("task 2 got 8 bytes and expects 16: the counts disagree"));
  EXPECT_EQ(calls.done(), 3);
}

TEST(DisagreementTest, TwoRootsAndNoRootOfABroadcastOnATree) {
  const Calls two(OnTree(Operation::kBroadcast),
                  [](std::uint32_t task, CollectiveCall& call) { call.root = task == 3 ? 3 : 0; });
  EXPECT_THAT(two.said(), testing::HasSubstr("multicast")) << two.said();
  // Task 0 takes 1 for the root, and 1 takes 0: nobody sends.
  const Calls none(OnTree(Operation::kBroadcast),
                   [](std::uint32_t task, CollectiveCall& call) { call.root = task == 0; });
  EXPECT_EQ(none.done(), 0);
  EXPECT_THAT(none.waits(), testing::HasSubstr("task 1 waits in multicast 0 of tree 0"));
}

TEST(DisagreementTest, AnOperationThatTheCauDoesNotHave) {
  const Calls calls(OnTree(Operation::kReduce),
                    [](std::uint32_t, CollectiveCall& call) { call.op = ReduceOp::kProd; });
  EXPECT_THAT(calls.said(), testing::HasSubstr("a CAU does not support prod of int64 operands"));
  EXPECT_EQ(calls.done(), 0);
}

TEST(DisagreementTest, RootsAndCountsOfMessages) {
  const Calls roots(ByMessages(Operation::kReduce),
                    [](std::uint32_t task, CollectiveCall& call) { call.root = task == 3; });
  EXPECT_THAT(roots.said() + roots.waits(), testing::HasSubstr("task"));
  EXPECT_LT(roots.done(), 4);
  const Calls counts(ByMessages(Operation::kBroadcast),
                     [](std::uint32_t task, CollectiveCall& call) {
                       if (task == 2) call.bytes = 16;
                     });
  EXPECT_THAT(counts.said(), testing::HasSubstr("it expects 16 bytes: the counts disagree"));
}

}  // namespace
}  // namespace percs
