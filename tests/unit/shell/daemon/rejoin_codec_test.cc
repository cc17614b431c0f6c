// Hubs that come back, on the wire: what a process is told is what network management has. Method:
// one of everything, there and back; then one thing wrong at a time.
#include "daemon/sync/rejoin_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/routing/planner.h"

namespace percs {
namespace {

class RejoinCodec : public testing::Test {
 protected:
  RejoinCodec() : topology_(*Topology::Create({.supernodes = 1, .drawers = 1, .hubs = 4})) {
    const TableSet tables = Planner(topology_).Plan(Failures());
    rejoined_.nodes = {1, 2};
    rejoined_.who = "percsd 1";
    rejoined_.loss = 3;
    rejoined_.incarnation = 2;
    rejoined_.at = 77;
    rejoined_.generation = 9;
    rejoined_.epoch = 4;
    rejoined_.tables = {tables[1], tables[2]};
    FaultAction& action = rejoined_.faults.emplace_back();
    action.at = 77;
    action.fault = 5;
    action.kind = FaultAction::Kind::kLanesLost;
    action.end = {1, 0};
    action.count = 2;
    RejoinToProto(rejoined_, true, &message_);
  }

  const Topology topology_;
  const P7ihParameters parameters_;
  RejoinedHubs rejoined_;
  v1::RejoinCommand message_;
};

TEST_F(RejoinCodec, ThereAndBackItIsTheSame) {
  const auto back = RejoinFromProto(message_, topology_, parameters_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->nodes, rejoined_.nodes);
  EXPECT_EQ(back->who, rejoined_.who);
  EXPECT_EQ(back->loss, 3u);
  EXPECT_EQ(back->incarnation, 2u);
  EXPECT_EQ(back->at, 77);
  EXPECT_EQ(back->generation, 9u);
  EXPECT_EQ(back->epoch, 4u);
  ASSERT_EQ(back->tables.size(), 2u);
  EXPECT_EQ(back->tables[0]->Hash(), rejoined_.tables[0]->Hash());
  EXPECT_EQ(back->tables[1]->Hash(), rejoined_.tables[1]->Hash());
  ASSERT_EQ(back->faults.size(), 1u);
  EXPECT_EQ(back->faults[0].kind, FaultAction::Kind::kLanesLost);
  EXPECT_EQ(back->faults[0].count, 2u);
}

TEST_F(RejoinCodec, OthersAreToldNoMoreThanTheyNeed) {
  v1::RejoinCommand message;
  RejoinToProto(rejoined_, false, &message);
  const auto back = RejoinFromProto(message, topology_, parameters_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->generation, 9u);
  EXPECT_THAT(back->tables, testing::IsEmpty());
  EXPECT_THAT(back->faults, testing::IsEmpty());
}

TEST_F(RejoinCodec, WhatCannotBeIsRefused) {
  const auto code = [this](auto&& change) {
    v1::RejoinCommand message = message_;
    change(message);
    return RejoinFromProto(message, topology_, parameters_).status().code();
  };
  using M = v1::RejoinCommand;
  const auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](M& m) { m.mutable_hubs()->set_nodes(0, 4); }), kBad);
  EXPECT_EQ(code([](M& m) { m.mutable_tables()->RemoveLast(); }), kBad);
  EXPECT_EQ(code([](M& m) { m.mutable_tables(1)->set_hash(1); }), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_kind(14); }), kBad)
      << "what nobody is told, but finds by itself";
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_kind(11); }), kBad)
      << "a cable that is swapped";
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_rate(2); }), kBad);
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_at(76); }), kBad);
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_port(40); }), kBad);
  EXPECT_EQ(code([](M& m) { m.mutable_faults(0)->set_node(9); }), kBad);
}

TEST_F(RejoinCodec, AProcessThatBeginsInTheMiddleKnowsWhoIsLost) {
  LossRecord losses;
  losses.Lose({{1, 2}, "percsd 1", 1, 10}, topology_.nodes());
  losses.Lose({{3}, "percsd 2", 2, 20}, topology_.nodes());
  RejoinedHubs back;
  back.nodes = {3};
  back.loss = 2;
  losses.Rejoin(back);
  v1::Configure message;
  LossesToProto(losses, &message);
  const auto known = LossesFromProto(message, topology_);
  ASSERT_TRUE(known.ok()) << known.status();
  for (NodeId node = 0; node < 4; ++node)
    EXPECT_EQ(known->IsLost(node), losses.IsLost(node)) << node;
  EXPECT_TRUE(known->Severed(1, 0));
  EXPECT_FALSE(known->Severed(3, 0));
  message.mutable_lost(0)->set_nodes(0, 17);
  EXPECT_EQ(LossesFromProto(message, topology_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace percs
