// Method: hubs with real ISRs and HFIs, trees over them, calls by hand; results against the
// operation applied one by one, and what must be refused or reported.
#include "emulator/cau/cau.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "emulator/cau/cau_reduction.h"
#include "tests/support/seed.h"
#include "tests/unit/emulator/cau/cau_hubs.h"

namespace percs {
namespace {

using test::CauHubs;
using test::PayloadOf;
using test::ValueOf;

constexpr auto kReduce = CauOperation::kReduce;
constexpr auto kMulticast = CauOperation::kMulticast;

CauPayload RandomOperands(RandomStream& random, OperandType type, int bytes) {
  CauPayload payload;
  payload.size = static_cast<std::uint8_t>(bytes);
  for (int i = 0; i < bytes; i += static_cast<int>(OperandBytes(type))) {
    std::uint64_t bits = random.Next();
    if (type == OperandType::kFloat) {
      const float value = static_cast<float>(random.Unit() * 4 - 2);
      std::memcpy(&bits, &value, 4);
    } else if (type == OperandType::kDouble) {
      const double value = random.Unit() * 4 - 2;
      std::memcpy(&bits, &value, 8);
    }
    std::memcpy(payload.bytes.data() + i, &bits, OperandBytes(type));
  }
  return payload;
}

TEST(Cau, EveryOperationOnEveryTypeIsWhatTheOperandsGive) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "cau");
  // Root 0 with seven leaves: its fixed order is that of the hubs.
  CauHubs hubs(8);
  ASSERT_TRUE(hubs.AddTree(3, CauHubs::First(8)).ok());
  std::uint32_t sequence = 0;
  int refused = 0;
  for (int o = 0; o < kReduceOps; ++o) {
    for (int t = 0; t < kOperandTypes; ++t) {
      const ReduceOp op = static_cast<ReduceOp>(o);
      const OperandType type = static_cast<OperandType>(t);
      const int bytes = 8 * (1 + static_cast<int>(random.Below(8)));
      std::vector<CauPayload> given;
      for (NodeId node = 1; node < 8; ++node) {
        given.push_back(RandomOperands(random, type, bytes));
        const absl::Status status = hubs.cau(node).Reduce(3, sequence, 0, op, type, given.back());
        EXPECT_EQ(status.ok(), CheckCauReduction(op, type, bytes).ok());
        refused += !status.ok();
      }
      if (!CheckCauReduction(op, type, bytes).ok()) continue;
      hubs.Run();
      CauPayload right = given[0];
      for (std::size_t i = 1; i < given.size(); ++i) {
        Combine(op, type, right.size / OperandBytes(type), given[i].bytes.data(),
                right.bytes.data());
      }
      ASSERT_TRUE((hubs.ears[0].reduced.contains({3, sequence})));
      EXPECT_EQ((hubs.ears[0].reduced[{3, sequence}].bytes), right.bytes)
          << OpName(op) << " " << TypeName(type);
      EXPECT_EQ((hubs.ears[0].reduced[{3, sequence}].size), bytes);
      EXPECT_EQ(hubs.hub(0).context().stats.CauReduction(op, type), 1u);
      ++sequence;
    }
  }
  EXPECT_EQ(refused, 7 * (2 * 4 + 4));  // nop and bits of floating point, prod of fixed point
  EXPECT_EQ(hubs.unfinished(), 0);
}

TEST(Cau, MulticastsReachAllFromAnyAndComeInOrder) {
  CauHubs hubs(8);
  ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(8, 2)).ok());
  // Far more at once than tree links hold, from two senders in turn.
  for (std::uint32_t n = 0; n < 100; ++n) {
    ASSERT_TRUE(hubs.cau(n % 2 ? 7 : 4).Multicast(0, n, PayloadOf<std::uint64_t>({n, 5 * n})).ok());
  }
  hubs.Run();
  for (NodeId node = 0; node < 8; ++node) {
    const bool sender = node == 4 || node == 7;
    ASSERT_EQ(hubs.ears[node].order.size(), sender ? 50u : 100u);
    EXPECT_TRUE(std::is_sorted(hubs.ears[node].order.begin(), hubs.ears[node].order.end()));
    for (const auto& [key, payload] : hubs.ears[node].multicast) {
      EXPECT_EQ(ValueOf<std::uint64_t>(payload, 1), 5 * key.second);
    }
  }
  EXPECT_EQ(hubs.Count(CauCounter::kPacketsResent), 0u);
  EXPECT_EQ(hubs.unfinished(), 0);
}

TEST(Cau, WhatIsHeldAndWhatNobodyHasAcknowledgedIsToldByVertex) {
  CauHubs hubs(3);
  ASSERT_TRUE(hubs.AddTree(4, CauHubs::First(3)).ok());  // hub 0 above 1 and 2
  const auto in_flight = [&hubs](NodeId node) { return hubs.hub(node).TreesInFlight(); };
  const auto reduce = [&hubs](NodeId node) {
    return hubs.cau(node).Reduce(4, 0, 0, ReduceOp::kSum, OperandType::kInt32,
                                 PayloadOf<std::int32_t>({1, 2}));
  };
  ASSERT_TRUE(reduce(1).ok());
  // What one vertex has said and the one above it has not acknowledged is on its way ...
  const std::vector<TreeInFlight> sent = {{4, 1, 0, {{0, 1}}}};
  bool seen = false;
  for (Time end = 0; end < 2 * kMicrosecond && !seen; end += 10 * kNanosecond) {
    hubs.Run(end);
    seen = in_flight(1) == sent;
  }
  EXPECT_TRUE(seen);
  hubs.Run(20 * kMicrosecond);
  // ... and waits there for the operand of the other one.
  EXPECT_TRUE(in_flight(1).empty());
  EXPECT_EQ(in_flight(0), (std::vector<TreeInFlight>{{4, 0, 1, {}}}));
  ASSERT_TRUE(reduce(2).ok());
  hubs.Run();
  EXPECT_EQ(hubs.ears[0].reduced.size(), 1u);
  for (NodeId node = 0; node < 3; ++node) EXPECT_TRUE(in_flight(node).empty()) << node;
}

TEST(Cau, ManyReducesAtOnceComeInOrderEach) {
  CauHubs hubs(6);
  ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(6, 3)).ok());
  for (std::uint32_t n = 0; n < 200; ++n) {
    for (NodeId node = 0; node < 6; ++node) {
      if (node == 5) continue;
      ASSERT_TRUE(hubs.cau(node)
                      .Reduce(0, n, 5, ReduceOp::kSum, OperandType::kInt32,
                              PayloadOf<std::int32_t>({static_cast<int>(n + node), 1}))
                      .ok());
    }
  }
  hubs.Run();
  ASSERT_EQ(hubs.ears[5].reduced.size(), 200u);
  for (const auto& [key, payload] : hubs.ears[5].reduced) {
    EXPECT_EQ(ValueOf<std::int32_t>(payload), static_cast<int>(5 * key.second + 10));
    EXPECT_EQ(ValueOf<std::int32_t>(payload, 1), 5);
  }
}

TEST(Cau, RelaysWithoutParticipantAndTwoIndexesOfOneCau) {
  CauHubs hubs(7);
  TreeSpec spec{.name = "t", .members = {1, 2, 4, 6}, .relays = {0, 2, 5}, .fan_out = 2};
  ASSERT_TRUE(hubs.AddTree(9, spec).ok());
  EXPECT_EQ(hubs.cau(2).Participants(9), (std::vector<NodeId>{1, 2, 4, 6}));
  test::Ear ear;
  EXPECT_EQ(hubs.cau(0).Attach(9, &ear).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(hubs.cau(1).Attach(9, &ear).code(), absl::StatusCode::kAlreadyExists);
  for (const NodeId root : spec.members) {
    const std::uint32_t n = root / 2;
    for (const NodeId node : spec.members) {
      if (node == root) continue;
      ASSERT_TRUE(hubs.cau(node)
                      .Reduce(9, n, root, ReduceOp::kMax, OperandType::kInt64,
                              PayloadOf<std::int64_t>({-1 - static_cast<int>(node)}))
                      .ok());
    }
    ASSERT_TRUE(hubs.cau(root).Multicast(9, n, CauPayload()).ok());
    hubs.Run();
    EXPECT_EQ(ValueOf<std::int64_t>(hubs.ears[root].reduced[{9, n}]), root == 1 ? -3 : -2);
    for (const NodeId node : spec.members)
      EXPECT_EQ(hubs.ears[node].multicast.contains({9, n}), node != root);
  }
}

// Network management can say both at one instant, and a hub hears of the new tree first.
TEST(Cau, TheEndOfAnEarlierGenerationLeavesTheTreeThatReplacedIt) {
  CauHubs hubs(2);
  ASSERT_TRUE(hubs.AddTree(3, CauHubs::First(2)).ok());
  auto plan = PlanTree(hubs.topology(), CauHubs::First(2), [](NodeId, NodeId) { return true; });
  ASSERT_TRUE(plan.ok());
  plan->id = 3;
  const std::uint32_t before = plan->generation++;
  Cau& cau = static_cast<Cau&>(hubs.cau(0));
  const TreeProblem why{TreeProblem::Code::kNoTree, kReduce, 0, 0};
  ASSERT_TRUE(cau.SetUp(std::make_shared<const TreePlan>(*std::move(plan)), why).ok());
  cau.Start(3, before + 1);
  EXPECT_EQ(hubs.ears[0].up.size(), 1u);
  cau.TakeDown(3, before, why);
  EXPECT_EQ(cau.Participants(3), (std::vector<NodeId>{0, 1}));
  cau.TakeDown(3, before + 1, why);
  EXPECT_EQ(cau.Participants(3), std::vector<NodeId>());
}

// A serial number tells an entry from those that its index held before; events of timers carry it.
TEST(Cau, ATreeThatWasSetUpHundredsOfTimesSendsAgainAndProbesLikeANewOne) {
  CauHubs hubs(2);
  ASSERT_TRUE(hubs.AddTree(3, CauHubs::First(2)).ok());
  auto plan = PlanTree(hubs.topology(), CauHubs::First(2), [](NodeId, NodeId) { return true; });
  ASSERT_TRUE(plan.ok());
  plan->id = 3;
  const TreeProblem why{TreeProblem::Code::kMembersBack, kReduce, 0, 0};
  for (int times = 0; times < 300; ++times) {
    ++plan->generation;
    for (const NodeId node : {NodeId{0}, NodeId{1}}) {
      Cau& cau = static_cast<Cau&>(hubs.cau(node));
      ASSERT_TRUE(cau.SetUp(std::make_shared<const TreePlan>(*plan), why).ok());
      cau.Start(3, plan->generation);
    }
  }
  hubs.SetLink(0, 1, false, 1);
  hubs.SetLink(0, 1, true, 10 * kMicrosecond);
  ASSERT_TRUE(hubs.cau(0).Multicast(3, 0, PayloadOf<int>({1})).ok());
  ASSERT_TRUE(hubs.cau(0).ExpectReduce(3, 0, ReduceOp::kSum, OperandType::kInt32, 4).ok());
  hubs.Run();
  EXPECT_TRUE((hubs.ears[1].multicast.contains({3, 0})));
  EXPECT_GT(hubs.Count(CauCounter::kPacketsResent), 0u);
  EXPECT_GT(hubs.Count(CauCounter::kProbesSent), 0u);
}

TEST(Cau, SixtyFourTreesWorkAtOnceAndThe65thIsRefused) {
  CauHubs hubs(4);
  for (CauTreeId id = 0; id < 64; ++id)
    ASSERT_TRUE(hubs.AddTree(id, CauHubs::First(4, 1 + id % 8)).ok());
  const absl::Status one_more = hubs.AddTree(64, CauHubs::First(4));
  EXPECT_EQ(one_more.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(one_more.message().find("all 64 indexes of the CAU of sn0-d0-h0"), std::string::npos)
      << one_more;
  for (CauTreeId id = 0; id < 64; ++id) {
    for (NodeId node = 0; node < 4; ++node) {
      if (node == id % 4u) continue;
      ASSERT_TRUE(hubs.cau(node)
                      .Reduce(id, 0, id % 4u, ReduceOp::kXor, OperandType::kUint64,
                              PayloadOf<std::uint64_t>({std::uint64_t{1} << node, id}))
                      .ok());
    }
  }
  hubs.Run();
  for (CauTreeId id = 0; id < 64; ++id) {
    const CauPayload& got = hubs.ears[id % 4u].reduced[{id, 0}];
    EXPECT_EQ(ValueOf<std::uint64_t>(got), 15u ^ 1u << id % 4);
    EXPECT_EQ(ValueOf<std::uint64_t>(got, 1), id);
  }
}

TEST(Cau, CallsThatCannotBeAreRefusedWithTheReason) {
  CauHubs hubs(4);
  ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(3)).ok());
  const CauPayload eight = PayloadOf<double>({1});
  CauPayload much;
  much.size = 72;
  const auto reduce = [&](NodeId node, std::uint32_t n, NodeId root, const CauPayload& payload) {
    return hubs.cau(node).Reduce(0, n, root, ReduceOp::kSum, OperandType::kDouble, payload);
  };
  EXPECT_EQ(reduce(0, 0, 1, much).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reduce(0, 0, 3, eight).code(),
            absl::StatusCode::kInvalidArgument);  // root not in the tree
  EXPECT_EQ(reduce(0, 0, 0, eight).code(), absl::StatusCode::kInvalidArgument);  // the root itself
  EXPECT_EQ(reduce(3, 0, 0, eight).code(),
            absl::StatusCode::kFailedPrecondition);  // node not in the tree
  EXPECT_EQ(hubs.cau(0).Multicast(1, 0, eight).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(hubs.cau(0).Multicast(0, 0, much).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(reduce(0, 1, 1, eight).ok());
  EXPECT_EQ(reduce(0, 1, 1, eight).code(), absl::StatusCode::kInvalidArgument);  // out of order
  EXPECT_EQ(reduce(0, 0, 1, eight).code(), absl::StatusCode::kInvalidArgument);
}

// Calls of three participants, and the reason that all of the tree is told.
struct Wrong {
  const char* what;
  std::function<void(CauHubs&)> calls;
};

TEST(Cau, ParticipantsThatDisagreeFailTheTreeWithTheReason) {
  const CauPayload one = PayloadOf<std::int32_t>({1}), two = PayloadOf<std::int32_t>({1, 2});
  const auto give = [&](CauHubs& hubs, NodeId node, NodeId root, ReduceOp op = ReduceOp::kSum,
                        OperandType type = OperandType::kInt32, int operands = 1) {
    ASSERT_TRUE(hubs.cau(node).Reduce(0, 0, root, op, type, operands == 1 ? one : two).ok());
  };
  const auto expect = [](CauHubs& hubs, NodeId node) {
    ASSERT_TRUE(hubs.cau(node).ExpectReduce(0, 0, ReduceOp::kSum, OperandType::kInt32, 4).ok());
  };
  const Wrong wrongs[] = {
      {"different roots", [&](CauHubs& h) { give(h, 0, 2), give(h, 1, 0), expect(h, 2); }},
      {"different roots", [&](CauHubs& h) { expect(h, 0), expect(h, 1), give(h, 2, 0); }},
      {"different roots", [&](CauHubs& h) { expect(h, 0), expect(h, 1), expect(h, 2); }},
      {"different roots", [&](CauHubs& h) { give(h, 0, 1), give(h, 1, 2), give(h, 2, 1); }},
      {"different operations", [&](CauHubs& h) { give(h, 1, 0), give(h, 2, 0, ReduceOp::kMax); }},
      {"different operand types",
       [&](CauHubs& h) { give(h, 1, 0), give(h, 2, 0, ReduceOp::kSum, OperandType::kUint32); }},
      {"different sizes",
       [&](CauHubs& h) { give(h, 1, 0), give(h, 2, 0, ReduceOp::kSum, OperandType::kInt32, 2); }},
      {"only one sender",
       [&](CauHubs& h) {
         ASSERT_TRUE(h.cau(1).Multicast(0, 0, one).ok());
         ASSERT_TRUE(h.cau(2).Multicast(0, 0, one).ok());
       }},
  };
  for (const int fan_out : {1, 8}) {
    for (const Wrong& wrong : wrongs) {
      SCOPED_TRACE(testing::Message() << wrong.what << ", fan-out " << fan_out);
      CauHubs hubs(3);
      ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(3, fan_out)).ok());
      wrong.calls(hubs);
      hubs.Run();
      ASSERT_FALSE(hubs.told.empty());  // so network management tells the others
      const ControlItem& alert = hubs.told.front();
      EXPECT_EQ(alert.kind, ControlItem::Kind::kTreeAlert);
      const absl::Status why = ToStatus(alert.problem, 0, *hubs.hub(0).context().topology);
      EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(why.message().find(wrong.what), std::string::npos) << why;
      bool heard = false;
      for (const test::Ear& ear : hubs.ears) heard |= !ear.failed.empty();
      EXPECT_TRUE(heard);
      for (const test::Ear& ear : hubs.ears) EXPECT_TRUE(ear.reduced.empty());
    }
  }
}

// Then no operand is missing that the root could be waiting for. Participants are refused such
// calls, so an entry by itself is given the operands.
TEST(TreeEntry, AReduceThatEveryNeighbourContributesToFailsNamingTheFirstAndTheLast) {
  const Topology topology = *Topology::Create({.supernodes = 1, .drawers = 1, .hubs = 8});
  for (NodeId hubs = 2; hubs <= 8; ++hubs) {
    const auto plan = PlanTree(topology, CauHubs::First(hubs), [](NodeId, NodeId) { return true; });
    ASSERT_TRUE(plan.ok());
    TreeEntry entry(*plan, 0, 8);  // of hub 0, above all others
    const CauItem item{0, 0, ReduceOp::kSum, OperandType::kInt32, PayloadOf<std::int32_t>({1})};
    entry.links[0].given[static_cast<int>(kReduce)].push_back(item);
    for (std::size_t child = 1; child < hubs; ++child) {
      TreeReceiver& receiver = entry.links[child].channels[static_cast<int>(kReduce)].receiver;
      receiver.Store(0, item);
      receiver.Ready(0);
    }
    Firing firing;
    TreeProblem problem;
    EXPECT_FALSE(entry.Fire(kReduce, &firing, &problem));
    EXPECT_EQ(problem.code, TreeProblem::Code::kRoots);
    EXPECT_EQ(problem.a, 0u);
    EXPECT_EQ(problem.b, hubs - 1);
  }
}

TEST(Cau, LostPacketsAreSentAgainAndNothingComesTwice) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "cau_loss");
  P7ihParameters parameters;
  parameters.retransmit_timeout = 5 * kMicrosecond;
  CauHubs hubs(4, parameters);
  ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(4, 1)).ok());
  // Every link of the chain is down now and then, for a little time. No table changes.
  for (Time at = 0; at < 400 * kMicrosecond;) {
    const NodeId a = random.Below(3);
    at += 1 + random.Below(4'000'000);
    hubs.SetLink(a, a + 1, false, at);
    at += 1 + random.Below(3'000'000);
    hubs.SetLink(a, a + 1, true, at);
  }
  constexpr std::uint32_t kOperations = 400;
  for (std::uint32_t n = 0; n < kOperations; ++n) {
    for (NodeId node = 1; node < 4; ++node) {
      ASSERT_TRUE(hubs.cau(node)
                      .Reduce(0, n, 0, ReduceOp::kSum, OperandType::kUint64,
                              PayloadOf<std::uint64_t>({n * node}))
                      .ok());
    }
    ASSERT_TRUE(hubs.cau(3).Multicast(0, n, PayloadOf<std::uint64_t>({n})).ok());
  }
  hubs.Run();
  ASSERT_EQ(hubs.ears[0].reduced.size(), kOperations);
  for (const auto& [key, payload] : hubs.ears[0].reduced)
    EXPECT_EQ(ValueOf<std::uint64_t>(payload), 6 * key.second);
  for (NodeId node = 0; node < 3; ++node) {
    ASSERT_EQ(hubs.ears[node].order.size(), kOperations);
    EXPECT_TRUE(std::is_sorted(hubs.ears[node].order.begin(), hubs.ears[node].order.end()));
  }
  EXPECT_GT(hubs.Count(CauCounter::kPacketsResent), 0u);
  EXPECT_EQ(hubs.Count(CauCounter::kTreesFailed), 0u);
  // But for the alerts of links, which nobody takes in here.
  EXPECT_EQ(hubs.unfinished(), static_cast<std::int64_t>(hubs.told.size()));
}

TEST(Cau, ALinkThatStaysSilentFailsWhatIsOnItsWay) {
  P7ihParameters parameters;
  parameters.retransmit_tries = 2;
  CauHubs hubs(3, parameters);
  ASSERT_TRUE(hubs.AddTree(0, CauHubs::First(3)).ok());
  hubs.SetLink(0, 1, false, 1);
  ASSERT_TRUE(hubs.cau(0).Multicast(0, 0, PayloadOf<int>({1})).ok());
  hubs.Run();
  EXPECT_TRUE((hubs.ears[2].multicast.contains({0, 0})));
  EXPECT_FALSE((hubs.ears[1].multicast.contains({0, 0})));
  const auto& failed = hubs.ears[0].failed;
  ASSERT_TRUE((failed.contains({0, kMulticast, 1})));
  EXPECT_NE((failed.at({0, kReduce, 0})
                 .message()
                 .find("sn0-d0-h0 received no acknowledgement from sn0-d0-h1")),
            std::string::npos);
  EXPECT_EQ(hubs.cau(0).Multicast(0, 1, CauPayload()).code(),
            absl::StatusCode::kFailedPrecondition);
}

// Bits of a sum of doubles at root 0 when the participants give theirs in that order of time.
std::uint64_t SumBits(OperandOrder order, const std::vector<NodeId>& nodes,
                      const std::vector<double>& values) {
  CauHubs hubs(8);
  TreeSpec spec = CauHubs::First(8);
  spec.order = order;
  EXPECT_TRUE(hubs.AddTree(0, spec).ok());
  Time at = 0;
  for (const NodeId node : nodes) {
    hubs.Run(at += 3 * kMicrosecond);
    EXPECT_TRUE(hubs.cau(node)
                    .Reduce(0, 0, 0, ReduceOp::kSum, OperandType::kDouble,
                            PayloadOf<double>({values[node]}))
                    .ok());
  }
  hubs.Run();
  return ValueOf<std::uint64_t>(hubs.ears[0].reduced.at({0, 0}));
}

TEST(Cau, FixedOrderGivesTheSameBitsWhateverTheOrderOfArrival) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "cau_order");
  // What small ones leave depends on whether the large ones have met before.
  std::vector<double> values = {0, 1e16, 1.25, -1e16, 3, 1e16, random.Unit(), -1e16};
  std::vector<NodeId> nodes = {1, 2, 3, 4, 5, 6, 7};
  std::set<std::uint64_t> fixed, arrival;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = nodes.size(); i > 1; --i) {
      std::swap(nodes[i - 1], nodes[random.Below(static_cast<std::uint32_t>(i))]);
    }
    fixed.insert(SumBits(OperandOrder::kFixed, nodes, values));
    arrival.insert(SumBits(OperandOrder::kArrival, nodes, values));
  }
  EXPECT_EQ(fixed.size(), 1u);
  EXPECT_GT(arrival.size(), 1u);
}

}  // namespace
}  // namespace percs
