// The commands of a run. Method: a journal that is a vector, and records by hand.
#include "daemon/controller/run/run_commands.h"

#include <gmock/gmock.h>

namespace percs {
namespace {

using testing::HasSubstr;

v1::JournalRecord StopAt(Time at) {
  v1::JournalRecord record;
  record.set_stop(true);
  record.set_at(at);
  return record;
}

v1::JournalRecord LossOf(std::uint32_t process) {
  v1::JournalRecord record;
  record.mutable_lose()->set_process(process);
  return record;
}

v1::JournalRecord RejoinOf(std::uint32_t process) {
  v1::JournalRecord record;
  record.mutable_rejoin()->set_process(process);
  return record;
}

RunCommands::Command Silent(v1::JournalRecord record) { return {std::move(record), nullptr}; }

TEST(RunCommandsTest, AreMadeDurableTogetherWithTheirRunAndTime) {
  std::vector<v1::JournalRecord> journal;
  absl::Status answer;
  RunCommands commands(3,
                       [&](const std::vector<v1::JournalRecord>& records) {
                         if (answer.ok())
                           journal.insert(journal.end(), records.begin(), records.end());
                         return answer;
                       },
                       {});
  EXPECT_TRUE(commands.durable());
  commands.Add(Silent(StopAt(0)));
  commands.Add(Silent(LossOf(1)));
  EXPECT_TRUE(commands.any_waits());
  const auto taken = commands.Take();
  EXPECT_FALSE(commands.any_waits());
  answer = absl::UnavailableError("no disk");
  EXPECT_EQ(commands.Record(taken, 70), answer);
  EXPECT_EQ(commands.recorded(), 0u);
  answer = absl::OkStatus();
  EXPECT_TRUE(commands.Record(taken, 70).ok());
  EXPECT_EQ(commands.recorded(), 2u);
  ASSERT_EQ(journal.size(), 2u);
  EXPECT_EQ(journal[1].run(), 3u);
  EXPECT_EQ(journal[1].at(), 70);
  RunCommands unkept(3, nullptr, {});
  EXPECT_FALSE(unkept.durable());
  EXPECT_TRUE(unkept.Record(taken, 70).ok());
  EXPECT_EQ(unkept.recorded(), 0u);
}

TEST(RunCommandsTest, ADaemonThatRejoinsWaitsForItselfOthersAreAskedFor) {
  RunCommands commands(1, nullptr, {});
  commands.Add(Silent(StopAt(0)));
  commands.Add(Silent(RejoinOf(1)));
  commands.Add(Silent(RejoinOf(2)));
  const auto asked = commands.TakeAsked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_TRUE(asked.front().record.stop());
  commands.ForgetRejoin(2);
  const auto left = commands.Take();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.front().record.rejoin().process(), 1u);
}

TEST(RunCommandsTest, AReplayIsTakenInOrder) {
  RunCommands commands(1, nullptr, {StopAt(10), StopAt(20)});
  EXPECT_FALSE(commands.replay_ended());
  EXPECT_EQ(commands.next_replay(), 10);
  EXPECT_EQ(commands.TakeReplay().at(), 10);
  EXPECT_EQ(commands.TakeReplay().at(), 20);
  EXPECT_TRUE(commands.replay_ended());
}

TEST(RunCommandsTest, APlaceThatIsRejoinedBeforeItIsLostAgainIsNotToBeLostYet) {
  RunCommands commands(1, nullptr, {});
  v1::JournalRecord back;
  back.mutable_rejoin()->set_process(2);
  commands.Restore({}, {LossOf(1), back, LossOf(2), LossOf(3)});
  EXPECT_EQ(commands.PlacesToLose(), (std::set<std::uint32_t>{1, 3}));
  commands.TakeRetaken();
  EXPECT_EQ(commands.PlacesToLose(), (std::set<std::uint32_t>{3}));
  commands.TakeRetaken();
  EXPECT_EQ(commands.PlacesToLose(), (std::set<std::uint32_t>{2, 3}));
}

TEST(RunCommandsTest, AnotherControllerRetakesWhatWasJournalledAndNotSaved) {
  RunCommands before(1, [](const auto&) { return absl::OkStatus(); }, {StopAt(10), StopAt(20)});
  ASSERT_TRUE(before.Record({Silent(before.TakeReplay())}, 10).ok());
  v1::SavedRun saved;
  before.Save(&saved);
  EXPECT_EQ(saved.commands(), 1u);
  EXPECT_EQ(saved.replay_left(), 1u);

  int written = 0;
  RunCommands next(1, [&](const auto&) { return ++written, absl::OkStatus(); },
                   {StopAt(10), StopAt(20)});
  EXPECT_THAT(next.CheckSaved(saved, 0).message(), HasSubstr("journal has only 0"));
  ASSERT_TRUE(next.CheckSaved(saved, 3).ok());
  next.Restore(saved, {StopAt(10), StopAt(20), LossOf(2)});
  EXPECT_EQ(next.next_replay(), 20);
  EXPECT_TRUE(next.RetakesLossOf(2));
  EXPECT_FALSE(next.RetakesLossOf(1));
  EXPECT_EQ(next.retaken().size(), 2u);
  EXPECT_EQ(next.next_retaken(), 20);
  RunCommands::Command again = Silent(next.TakeRetaken());
  EXPECT_TRUE(next.replay_ended()) << "it is not replayed as well";
  again.journalled = true;
  ASSERT_TRUE(next.Record({again}, 20).ok());
  EXPECT_EQ(written, 0) << "the journal has it";
  EXPECT_EQ(next.recorded(), 2u);
  EXPECT_TRUE(next.any_retaken());
  ASSERT_TRUE(next.Record({Silent(StopAt(0))}, 30).ok());
  EXPECT_EQ(written, 1);

  RunCommands shorter(1, nullptr, {});
  EXPECT_THAT(shorter.CheckSaved(saved, 3).message(), HasSubstr("1 commands left to replay"));
}

}  // namespace
}  // namespace percs
