// Lost daemons and those that take their places. Method: four hubs on two or three processes;
// answers of survivors and records of batches by hand, the command for the journal is read back.
#include "daemon/controller/run/run_losses.h"

#include <gmock/gmock.h>

#include "daemon/controller/run/run_rejoin.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Placement FourHubsOfThree() {
  Placement placement;
  placement.process_of_node = {0, 0, 1, 2};
  placement.processes = 4;
  placement.manager_process = 3;
  return placement;
}

v1::SavedLoss DeclaredLossOf(std::uint32_t process, Time window_from) {
  v1::SavedLoss loss;
  loss.set_process(process);
  loss.set_name("p" + std::to_string(process));
  loss.set_incarnation(7);
  loss.set_window_from(window_from);
  loss.set_why("killed");
  return loss;
}

v1::PeerLostReply HasOf(std::uint32_t process, std::uint64_t accepted) {
  v1::PeerLostReply reply;
  reply.set_process(process);
  reply.set_accepted(accepted);
  return reply;
}

TEST(RunLossesTest, SurvivorsAreAwaitedUntilTheyAnswerOrAreLostThemselves) {
  const Placement placement = FourHubsOfThree();
  RunLosses losses(placement);
  EXPECT_FALSE(losses.any_declared());
  losses.Declare(DeclaredLossOf(1, 100), {0, 2});
  EXPECT_TRUE(losses.any_declared());
  EXPECT_TRUE(losses.Awaits(0));
  EXPECT_FALSE(losses.Awaits(1));
  EXPECT_TRUE(losses.OnAnswer(0, HasOf(1, 5)));
  EXPECT_FALSE(losses.OnAnswer(0, HasOf(1, 6))) << "only the first answer counts";
  EXPECT_FALSE(losses.OnAnswer(2, HasOf(0, 1))) << "process 0 is not lost";
  EXPECT_TRUE(losses.awaits_any());
  losses.LoseSurvivor(2);
  EXPECT_FALSE(losses.awaits_any());
}

TEST(RunLossesTest, TheCommandSaysFromWhenOnNothingArrivedAtWhom) {
  const Placement placement = FourHubsOfThree();
  SentBatches batches(3);
  v1::WindowReport sent;
  sent.add_peers(0);
  sent.add_batches(1);
  sent.add_carried("");
  batches.OnReport(1, sent, 40);
  RunLosses losses(placement);
  losses.Declare(DeclaredLossOf(1, 100), {0, 2});
  losses.OnAnswer(0, HasOf(1, 0));  // has not the batch of the window from 40 on
  losses.OnAnswer(2, HasOf(1, 0));  // was sent nothing
  const auto taken = losses.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(losses.any_declared());
  const v1::LostDaemon command = losses.CommandFor(taken.front(), 3, 200, batches);
  EXPECT_EQ(command.number(), 3u);
  EXPECT_EQ(command.incarnation(), 7u);
  EXPECT_EQ(command.why(), "killed");
  EXPECT_THAT(command.nodes(), ElementsAre(2));
  ASSERT_EQ(command.severed_size(), 3);
  EXPECT_EQ(command.severed(0).at(), 40);
  EXPECT_THAT(command.severed(0).to(), ElementsAre(0, 1));
  EXPECT_EQ(command.severed(1).at(), 100);
  EXPECT_THAT(command.severed(1).to(), ElementsAre(3));
  EXPECT_EQ(command.severed(2).at(), 100);
  EXPECT_TRUE(command.severed(2).management());
  const v1::LostDaemon at_once = losses.CommandFor(taken.front(), 3, 100, batches);
  EXPECT_EQ(at_once.severed_size(), 1) << "but for the batch that is missing, all had arrived";
}

TEST(RunLossesTest, WhatTheJournalDoesNotTakeIsDeclaredStill) {
  const Placement placement = FourHubsOfThree();
  RunLosses losses(placement);
  losses.Declare(DeclaredLossOf(1, 100), {});
  losses.Declare(DeclaredLossOf(2, 100), {});
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  const auto taken = losses.Take();
  EXPECT_TRUE(losses.PutBack(taken.front(), full));
  EXPECT_FALSE(losses.PutBack(taken.back(), full)) << "said once";
  EXPECT_EQ(losses.not_journalled(), full);
  EXPECT_EQ(losses.Take().size(), 2u);
  EXPECT_TRUE(losses.not_journalled().ok());
}

TEST(RunLossesTest, PlacesAndHubsAreLostUntilTheyAreGivenAgain) {
  const Placement placement = FourHubsOfThree();
  RunLosses losses(placement), next(placement);
  v1::LostDaemon message;
  message.set_process(1);
  message.set_number(4);
  message.set_incarnation(9);
  message.add_nodes(2);
  losses.TakeEffect(message);
  EXPECT_EQ(losses.count(), 4u);
  EXPECT_THAT(losses.nodes(), ElementsAre(2));
  EXPECT_THAT(losses.places(), ElementsAre(Pair(1, 4)));
  losses.GivePlace(1);
  losses.ReadmitNodes({2});
  EXPECT_THAT(losses.nodes(), IsEmpty());
  EXPECT_THAT(losses.places(), IsEmpty());
  losses.Journalled(message);
  EXPECT_TRUE(losses.WasJournalled(1, 9));
  EXPECT_FALSE(losses.WasJournalled(1, 10)) << "another daemon in the place";
  losses.Declare(DeclaredLossOf(2, 100), {0});
  v1::SavedRun saved;
  losses.Save(&saved);
  next.Restore(saved);
  EXPECT_EQ(next.count(), 4u);
  EXPECT_EQ(next.Take().front().saved.process(), 2u);
}

TEST(RunRejoinTest, ADaemonIsReadyWhenItsStreamsAreOpenAndItWasConfigured) {
  RunRejoin rejoin;
  EXPECT_FALSE(rejoin.under_way());
  EXPECT_FALSE(rejoin.Awaits(1));
  rejoin.Begin(1, 2);
  const std::uint64_t first = rejoin.attempt();
  rejoin.AwaitStream(0);
  EXPECT_TRUE(rejoin.Awaits(0));
  EXPECT_TRUE(rejoin.Awaits(1));
  EXPECT_FALSE(rejoin.OnStream(2, first));
  EXPECT_FALSE(rejoin.streams_open());
  EXPECT_TRUE(rejoin.OnStream(0, first));
  EXPECT_FALSE(rejoin.OnStream(0, first));
  EXPECT_TRUE(rejoin.streams_open());
  EXPECT_FALSE(rejoin.IsReady(first));
  rejoin.Configured();
  EXPECT_TRUE(rejoin.IsReady(first));
  EXPECT_TRUE(rejoin.Refused());
  EXPECT_FALSE(rejoin.Refused());
}

TEST(RunRejoinTest, AnAttemptThatWasGivenUpIsNotHeard) {
  RunRejoin rejoin, of_next_controller;
  rejoin.Begin(1, 0);
  const std::uint64_t first = rejoin.attempt();
  rejoin.AwaitStream(0);
  rejoin.End();
  EXPECT_FALSE(rejoin.OnStream(0, first));
  rejoin.Begin(1, 0);
  rejoin.AwaitStream(0);
  EXPECT_NE(rejoin.attempt(), first);
  EXPECT_FALSE(rejoin.OnStream(0, first));
  EXPECT_FALSE(rejoin.IsReady(first));
  of_next_controller.Begin(1, 1);
  EXPECT_NE(of_next_controller.attempt(), first);
}

}  // namespace
}  // namespace percs
