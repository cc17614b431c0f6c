// What a run answers when hubs are gone. Method: a run whose daemon is played by the test, and a
// host without hubs; every question must be answered at once.
#include "daemon/controller/run/fabric_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/node/host.h"
#include "proto/convert/counters.h"
#include "proto/convert/node_result.h"
#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

class PausedRunTest : public test::PlayedRunTest {};

TEST_F(PausedRunTest, VirtualTimeOfAPausedRunIsThatOfThePauseAlsoWhenNothingHappenedBefore) {
  Apply({}, {[](const absl::Status&) {}, [] {}}, 1, kNanosecond);
  const Time until = run_->StepBy(10 * kMicrosecond);
  v1::DaemonMessage ran;  // the window; what comes next is beyond the pause
  ran.mutable_report()->set_unfinished(1);
  ran.mutable_report()->set_next_event(kMillisecond);
  run_->OnMessage(0, ran);
  EXPECT_EQ(run_->state(), v1::FABRIC_STATE_PAUSED);
  EXPECT_EQ(run_->virtual_time(), until);
  EXPECT_EQ(run_->StepBy(kMicrosecond), until + kMicrosecond);
  EXPECT_EQ(run_->state(), v1::FABRIC_STATE_PAUSED) << "the next window begins after the step";
  EXPECT_EQ(run_->virtual_time(), until + kMicrosecond);
}

TEST_F(PausedRunTest, ABatchRunHasNoPaceAndNoPaceIsBelowZero) {
  Apply({}, {[](const absl::Status&) {}, [] {}}, 1, kNanosecond);
  const absl::Status batch = run_->SetPace(kMicrosecond).status();
  EXPECT_EQ(batch.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(batch.message(), HasSubstr("run.clock: live"));
  const absl::Status negative = run_->SetPace(-5).status();
  EXPECT_EQ(negative.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(negative.message(), HasSubstr("-5ps/s"));
}

// Nothing to do: one message from the daemon, and it collects results.
class FinishedRunTest : public test::PlayedRunTest {
 protected:
  FinishedRunTest() {
    Apply({});
    v1::DaemonMessage results;
    for (NodeId node : {0, 1}) {
      NodeResult result;
      result.node = node;
      NodeResultToProto(result, results.mutable_results()->add_nodes());
    }
    run_->OnMessage(0, results);
    EXPECT_EQ(run_->state(), v1::FABRIC_STATE_FINISHED);
  }
  absl::Status Ask() {
    answer_ = absl::UnknownError("no answer yet");
    run_->Snapshot(
        {}, [this](absl::StatusOr<std::vector<NodeState>> states) { answer_ = states.status(); });
    return answer_;
  }
  void Fail(const std::string& why) {
    v1::DaemonMessage failure;
    failure.mutable_failure()->set_run(kRun);
    failure.mutable_failure()->set_code(static_cast<std::uint32_t>(absl::StatusCode::kDataLoss));
    failure.mutable_failure()->set_message(why);
    run_->OnMessage(0, failure);
  }

  absl::Status answer_;
};

TEST_F(FinishedRunTest, AnswersAFailureToTheQuestionsThatWaitAndToLaterOnes) {
  EXPECT_EQ(Ask(), absl::UnknownError("no answer yet"));
  EXPECT_TRUE(port_.messages.back().has_collect());
  Fail("a link broke");
  EXPECT_EQ(answer_, absl::DataLossError("process 0: a link broke"));
  EXPECT_EQ(Ask(), absl::DataLossError("process 0: a link broke"));
  EXPECT_TRUE(run_->result().ok()) << "what was measured stays";
}

TEST_F(FinishedRunTest, ASnapshotOfAHubThatTheDaemonDoesNotHaveEndsIt) {
  EXPECT_EQ(Ask(), absl::UnknownError("no answer yet"));
  v1::DaemonMessage snapshot;
  snapshot.mutable_snapshot()->set_query(port_.messages.back().collect().query());
  NodeResult none;
  PackStats(none.stats, snapshot.mutable_snapshot()->add_nodes()->mutable_stats());
  snapshot.mutable_snapshot()->mutable_nodes(0)->set_node(2);
  run_->OnMessage(0, snapshot);
  EXPECT_THAT(std::string(answer_.message()), HasSubstr("process 0 sent a snapshot of node 2"));
}

v1::DaemonMessage SnapshotOf(std::uint64_t query, NodeId node, bool more) {
  v1::DaemonMessage message;
  message.mutable_snapshot()->set_query(query);
  message.mutable_snapshot()->set_more(more);
  v1::NodeSnapshot* snapshot = message.mutable_snapshot()->add_nodes();
  NodeResult none;
  PackStats(none.stats, snapshot->mutable_stats());
  snapshot->set_node(node);
  return message;
}

TEST_F(FinishedRunTest, AnAnswerInPartsIsWholeWithTheLast) {
  EXPECT_EQ(Ask(), absl::UnknownError("no answer yet"));
  const std::uint64_t query = port_.messages.back().collect().query();
  Hear(0, SnapshotOf(query, 0, /*more=*/true));
  EXPECT_EQ(answer_, absl::UnknownError("no answer yet"));
  Hear(0, SnapshotOf(query, 1, /*more=*/false));
  EXPECT_TRUE(answer_.ok()) << answer_;
}

// Two daemons, of which the first has something to do from the start.
class MissingDaemonTest : public test::PlayedRunTest {
 protected:
  void Begin(absl::Status* journal = nullptr) {
    FabricRun::Events events{[](const absl::Status&) {}, [] {}};
    if (journal != nullptr) {
      events.record = [this, journal](const std::vector<v1::JournalRecord>& records) {
        if (journal->ok()) kept_.insert(kept_.end(), records.begin(), records.end());
        return *journal;
      };
    }
    Apply({}, std::move(events), 2, 0);
    EXPECT_TRUE(run_->Awaits(0));
    EXPECT_FALSE(run_->Awaits(1));
  }
  // The run in a controller that takes over, with the commands that were kept.
  std::unique_ptr<FabricRun> Restored(const v1::SavedRun& saved,
                                      const std::vector<v1::ManagerStep>& steps = {}) {
    v1::ApplyRequest request;
    OfTwoHubs(&request);
    auto next =
        FabricRun::Create(kRun, request, 2, &lock_, &port_, {[](const absl::Status&) {}, [] {}});
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next.value()->Restore(saved, steps, kept_), absl::OkStatus());
    return std::move(next).value();
  }
  FabricRun::TimeDone Into(absl::Status* answer) {
    *answer = absl::UnknownError("no answer yet");
    return [answer](absl::StatusOr<Time> at) { *answer = at.status(); };
  }
  void Command(FabricRun::TimeDone done) {
    v1::JournalRecord record;
    record.set_reset_arbiters(true);
    run_->Act(std::move(record), nullptr, std::move(done));
  }
  FabricRun::SnapshotDone Answer(absl::Status* answer) {
    *answer = absl::UnknownError("no answer yet");
    return [answer](absl::StatusOr<std::vector<NodeState>> states) { *answer = states.status(); };
  }

  const absl::Status waits_ = absl::UnavailableError("run 7 waits for d, which is away");
  std::vector<v1::JournalRecord> kept_;
  absl::Status command_, question_;
};

TEST_F(MissingDaemonTest, CommandsAndQuestionsThatWaitForItAreRefusedAndLaterOnesAtOnce) {
  Begin();
  Command(Into(&command_));
  run_->Snapshot({1}, Answer(&question_));
  run_->RefuseWaiting();
  EXPECT_TRUE(absl::IsUnknown(command_) && absl::IsUnknown(question_)) << "nobody is missing";
  port_.missing = 0;
  EXPECT_EQ(run_->Waiting(), waits_);
  run_->RefuseWaiting();
  EXPECT_EQ(command_, waits_);
  EXPECT_EQ(question_, waits_);
  Command(Into(&command_));
  run_->Snapshot({1}, Answer(&question_));
  EXPECT_EQ(command_, waits_);
  EXPECT_EQ(question_, waits_);
  port_.missing.reset();
  run_->Snapshot({1}, Answer(&question_));
  EXPECT_TRUE(absl::IsUnknown(question_)) << "it waits for the window again";
}

TEST_F(MissingDaemonTest, AQuestionThatDoesNotNeedItWaitsForNothingOfIt) {
  Begin();
  port_.missing = 1;
  EXPECT_TRUE(run_->Waiting().ok()) << "virtual time does not wait for it";
  run_->Snapshot({0}, Answer(&question_));
  EXPECT_TRUE(absl::IsUnknown(question_));
  run_->Snapshot({1}, Answer(&question_));
  EXPECT_EQ(question_, waits_);
  run_->Snapshot({}, Answer(&question_));
  EXPECT_EQ(question_, waits_);
}

TEST_F(MissingDaemonTest, HalfTheAnswerOfADaemonThatIsLostIsNone) {
  Begin();
  std::vector<NodeId> told;
  run_->Snapshot({}, [&told](absl::StatusOr<std::vector<NodeState>> states) {
    ASSERT_TRUE(states.ok()) << states.status();
    for (const NodeState& state : *states) told.push_back(state.node);
  });
  v1::DaemonMessage report;
  report.mutable_report()->set_next_event(kMillisecond);
  run_->OnMessage(0, report);
  ASSERT_TRUE(port_.messages.back().has_collect());
  const std::uint64_t query = port_.messages.back().collect().query();
  Hear(0, SnapshotOf(query, 0, /*more=*/true));
  Hear(1, SnapshotOf(query, 1, /*more=*/false));
  EXPECT_TRUE(told.empty());
  run_->Lose(0, "d", 5, "it is away");
  EXPECT_EQ(told, std::vector<NodeId>{1});
}

TEST_F(MissingDaemonTest, ALossThatCannotBeJournalledHoldsVirtualTimeAndIsTakenWithRoom) {
  absl::Status journal = absl::ResourceExhaustedError("no room");
  Begin(&journal);
  run_->Lose(0, "d", 5, "it is away");
  v1::DaemonMessage known;
  known.mutable_peer_lost()->set_process(0);
  run_->OnMessage(1, known);
  EXPECT_EQ(run_->not_journalled(), journal);
  EXPECT_FALSE(run_->ended()) << "the run waits for room";
  EXPECT_TRUE(kept_.empty());
  journal = absl::OkStatus();
  run_->Resume();
  EXPECT_TRUE(run_->not_journalled().ok());
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_EQ(kept_[0].lose().number(), 1u);
  EXPECT_EQ(kept_[0].lose().name(), "d");
}

TEST_F(MissingDaemonTest, WhatASurvivorHasAnsweredIsSavedAndFoundAgain) {
  absl::Status journal = absl::ResourceExhaustedError("no room");
  Begin(&journal);
  run_->Lose(0, "d", 5, "it is away");
  const std::vector<v1::ManagerStep> steps = run_->manager_log().new_steps();
  run_->Kept(/*whole=*/true);
  v1::DaemonMessage known;
  known.mutable_peer_lost()->set_process(0);
  known.mutable_peer_lost()->set_accepted(3);
  run_->OnMessage(1, known);
  EXPECT_TRUE(run_->touched());
  v1::SavedRun saved;
  run_->Save(&saved);
  ASSERT_EQ(saved.losses_size(), 1);
  EXPECT_EQ(saved.losses(0).accepted().at(1), 3u);
  const auto next = Restored(saved, steps);
  v1::SavedRun again;
  next->Save(&again);
  ASSERT_EQ(again.losses_size(), 1);
  EXPECT_EQ(again.losses(0).accepted().at(1), 3u);
}

TEST_F(MissingDaemonTest, ALossThatIsOnlyInTheJournalIsTakenOnce) {
  absl::Status journal;
  Begin(&journal);
  v1::SavedRun saved;  // before the loss
  run_->Save(&saved);
  run_->Lose(0, "d", 5, "it is away");
  v1::DaemonMessage known;
  known.mutable_peer_lost()->set_process(0);
  run_->OnMessage(1, known);
  ASSERT_EQ(kept_.size(), 1u);
  const auto next = Restored(saved);
  port_.absent = 0;
  next->TakeUp();
  EXPECT_TRUE(next->master().IsLost(0));
  EXPECT_TRUE(next->DeclaredLost(0, 5));
  EXPECT_FALSE(next->DeclaredLost(0, 6)) << "another one in its place";
  EXPECT_FALSE(next->Awaits(0));
  EXPECT_FALSE(next->ended());
}

// After a loss of power, what was saved can be many windows older than the journal.
TEST_F(MissingDaemonTest, ACommandInTheJournalTakesEffectAgainWhenVirtualTimeGetsThere) {
  absl::Status journal;
  Begin(&journal);
  v1::SavedRun saved;
  run_->Save(&saved);
  const auto report = [](FabricRun& run, Time next) {
    v1::DaemonMessage message;
    message.mutable_report()->set_next_event(next);
    message.mutable_report()->set_unfinished(1);
    run.OnMessage(0, message);
  };
  v1::JournalRecord cut;
  cut.mutable_create_fault()->set_id("cut");
  cut.mutable_create_fault()->set_link_down("sn0-d0-h0:LL0");
  const Time first = port_.messages.back().grant().end();
  report(*run_, first + kNanosecond);
  const Time at = port_.messages.back().grant().end();
  run_->Act(cut, nullptr, Into(&command_));
  report(*run_, at + kNanosecond);
  ASSERT_EQ(command_, absl::OkStatus());
  ASSERT_EQ(kept_.size(), 1u);
  ASSERT_EQ(kept_[0].at(), at) << "the end of the second span";
  const auto next = Restored(saved);
  next->TakeUp();
  EXPECT_FALSE(next->faults().Get("cut").ok());
  EXPECT_EQ(next->virtual_time(), at) << "commands have taken effect up to there";
  next->Act(cut, nullptr, Into(&command_));
  EXPECT_TRUE(absl::IsUnavailable(command_)) << command_;
  EXPECT_THAT(std::string(command_.message()),
              HasSubstr("1 commands up to " + FormatTime(at) + " take effect"));
  report(*next, first + 2 * kNanosecond);
  EXPECT_FALSE(next->faults().Get("cut").ok());
  EXPECT_EQ(port_.messages.back().grant().end(), at) << "no window goes beyond it";
  report(*next, at + kNanosecond);
  ASSERT_TRUE(next->faults().Get("cut").ok());
  EXPECT_EQ(next->faults().Get("cut")->selected_at, at);
  next->Act(cut, nullptr, Into(&command_));
  EXPECT_FALSE(absl::IsUnavailable(command_)) << command_;
  EXPECT_EQ(kept_.size(), 1u);
}

// Else it stays undelivered, and the run ends as a deadlock.
TEST_F(MissingDaemonTest, ACommandForADaemonThatIsLostIsForgotten) {
  Begin();
  run_->Pause();
  v1::DaemonMessage report;
  report.mutable_report()->set_next_event(kMillisecond);
  report.mutable_report()->set_unfinished(1);
  run_->OnMessage(0, report);
  v1::JournalRecord trace;
  trace.mutable_trace()->set_count(1);
  run_->Act(std::move(trace), nullptr, Into(&command_));
  const auto undelivered = [this] {
    v1::SavedRun saved;
    run_->Save(&saved);
    std::vector<int> commands;
    for (const v1::WindowGrant& grant : saved.pending()) commands.push_back(grant.commands_size());
    return commands;
  };
  EXPECT_TRUE(command_.ok()) << command_;
  EXPECT_EQ(undelivered(), (std::vector<int>{1, 1}));
  run_->Lose(0, "d", 5, "it is away");
  v1::DaemonMessage known;
  known.mutable_peer_lost()->set_process(0);
  run_->OnMessage(1, known);
  EXPECT_EQ(undelivered(), (std::vector<int>{0, 1}));
}

TEST_F(MissingDaemonTest, TheFailureOfAnAttemptThatWasGivenUpIsNothing) {
  Begin();
  run_->Lose(0, "d", 5, "it is away");
  v1::DaemonMessage known;
  known.mutable_peer_lost()->set_process(0);
  run_->OnMessage(1, known);
  ASSERT_FALSE(run_->ended());
  v1::DaemonMessage failure;
  failure.mutable_failure()->set_run(kRun);
  failure.mutable_failure()->set_code(static_cast<std::uint32_t>(absl::StatusCode::kInternal));
  failure.mutable_failure()->set_message("a peer refused");
  failure.mutable_failure()->set_attempt(17);
  run_->OnMessage(0, failure);
  EXPECT_FALSE(run_->ended()) << "process 0 has no part in the run";
  run_->OnMessage(1, failure);
  EXPECT_TRUE(run_->ended() && !run_->result().ok()) << "process 1 has";
}

TEST_F(MissingDaemonTest, DaemonsThatDoNotReachEachOtherAreNamedUntilTheyDo) {
  Begin();
  v1::DaemonMessage message;
  message.mutable_link_state()->set_run(kRun);
  v1::UnreachablePeer* peer = message.mutable_link_state()->add_unreachable();
  peer->set_process(1);
  peer->set_wall_seconds(100);
  peer->set_why("the port is closed");
  Command(Into(&command_));
  run_->OnMessage(0, message);
  EXPECT_THAT(std::string(run_->Waiting().message()),
              HasSubstr("run 7 waits for streams between daemons"));
  EXPECT_THAT(std::string(run_->Waiting().message()), HasSubstr("the port is closed"));
  run_->RefuseWaiting();
  EXPECT_EQ(command_, run_->Waiting());
  EXPECT_FALSE(run_->ended()) << "it began with all of them";
  port_.cut_off = 1;
  EXPECT_TRUE(run_->Waiting().ok()) << "nobody reaches what has no connection";
  port_.missing = 1;
  EXPECT_THAT(std::string(run_->Waiting().message()), HasSubstr("waits for d, which is away"));
  port_.cut_off = 0, port_.missing = std::nullopt;
  EXPECT_TRUE(run_->Waiting().ok()) << "what it said is no longer known to be true";
  port_.cut_off = std::nullopt;
  message.mutable_link_state()->clear_unreachable();
  run_->OnMessage(0, message);
  EXPECT_TRUE(run_->Waiting().ok());
}

TEST_F(MissingDaemonTest, WhoWaitsIsToldWhenAnotherControllerTakesOver) {
  Begin();
  Command(Into(&command_));
  run_->Snapshot({}, Answer(&question_));
  const absl::Status why = absl::UnavailableError("it is ending");
  run_->HandOver(why);
  EXPECT_EQ(command_, why);
  EXPECT_EQ(question_, why);
  EXPECT_FALSE(run_->ended()) << "the next controller goes on with it";
}

TEST(HostTest, AQuestionToAHostWithoutHubsIsAnsweredWithAFailure) {
  ProcessLock lock;
  const LockGuard guard(lock.mutex());
  LinkMesh mesh(&lock, {[] {}, [](const absl::Status&) {}, nullptr});
  Programs programs(&lock, {});
  std::vector<v1::DaemonMessage> sent;
  Host host(&mesh, &programs,
            {[] { return std::make_unique<v1::DaemonMessage>(); },
             [&](std::unique_ptr<v1::DaemonMessage> message) { sent.push_back(*message); }},
            nullptr);
  v1::Collect collect;
  for (const auto what : {v1::Collect::WHAT_SNAPSHOT, v1::Collect::WHAT_RESULTS}) {
    collect.set_what(what);
    sent.clear();
    host.Collect(collect);
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_TRUE(sent[0].has_failure());
    EXPECT_THAT(sent[0].failure().message(), HasSubstr("its hubs no longer exist"));
  }
}

}  // namespace
}  // namespace percs
