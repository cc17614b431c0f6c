// What a controller keeps of windows: a log that is read up to the first record that is not whole
// or of an earlier state, and a run that is the same after it has repeated its record. Method: a
// log on the simulated disk, and a run whose daemons are played by the test.
#include "daemon/controller/store/window_log.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/link/codec.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/world.h"
#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

class WindowLogTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  WindowLogTest() : world_(GetParam()), disk_(&world_) {
    StartProcess();
    EXPECT_TRUE(log_.Open("/state", 1).ok());
  }
  void StartProcess() {
    process_ = std::make_shared<sim::Process>(&world_, "c");
    disk_.Mount(process_);
  }
  static v1::SavedSteps StepsTo(Time end) {
    v1::SavedSteps steps;
    steps.add_steps()->set_opened(end);
    return steps;
  }
  bool Append(Time end) {
    v1::SavedSteps steps = StepsTo(end);
    return log_.Append(&steps);
  }
  std::uint64_t SaveState() {
    const std::uint64_t state = log_.NextState();
    log_.Committed(true);
    return state;
  }
  // As another controller finds it.
  std::vector<Time> Read(std::uint64_t state) {
    WindowLog log(&disk_);
    EXPECT_TRUE(log.Open("/state", 2).ok());
    const auto windows = log.Read(state);
    EXPECT_TRUE(windows.ok()) << windows.status();
    std::vector<Time> ends;
    for (const v1::SavedSteps& steps : *windows) ends.push_back(steps.steps(0).opened());
    return ends;
  }

  sim::World world_;
  sim::SimulatedDisk disk_;
  std::shared_ptr<sim::Process> process_;
  WindowLog log_{&disk_};
};

TEST_P(WindowLogTest, WhatWasAppendedAfterAStateIsReadUntilTheNextState) {
  EXPECT_FALSE(Append(5)) << "after no state";
  const std::uint64_t first = SaveState();
  EXPECT_TRUE(Append(10));
  EXPECT_TRUE(Append(11));
  EXPECT_EQ(Read(first), (std::vector<Time>{10, 11}));
  EXPECT_EQ(Read(0), std::vector<Time>());
  const std::uint64_t second = SaveState();
  EXPECT_EQ(Read(second), std::vector<Time>());
  EXPECT_TRUE(Append(20));  // over the first one; the record behind it is of the first state
  EXPECT_EQ(Read(second), std::vector<Time>{20});
  EXPECT_EQ(Read(first), std::vector<Time>());
}

TEST_P(WindowLogTest, AStateThatWasNotSavedChangesNothing) {
  const std::uint64_t first = SaveState();
  EXPECT_TRUE(Append(10));
  log_.NextState();
  EXPECT_TRUE(Append(11));
  EXPECT_EQ(Read(first), (std::vector<Time>{10, 11}));
}

TEST_P(WindowLogTest, ALogThatIsLongEnoughAsksForAState) {
  SaveState();
  std::uint64_t appended = 0;
  while (appended < 1'000'000 && Append(kSecond)) ++appended;
  EXPECT_GT(appended, 10'000u);
  EXPECT_LT(disk_.Find("/state/windows")->now.size(), (1u << 20) + 1);
  const std::uint64_t next = SaveState();
  EXPECT_TRUE(Append(10));
  EXPECT_EQ(Read(next), std::vector<Time>{10});
}

TEST_P(WindowLogTest, ALossOfPowerLeavesTheFirstOfThem) {
  const std::uint64_t old = SaveState();
  for (Time end = 1; end <= 40; ++end) EXPECT_TRUE(Append(end));
  const std::uint64_t state = SaveState();
  for (Time end = 101; end <= 130; ++end) EXPECT_TRUE(Append(end));
  process_->Die();
  disk_.LosePower();
  StartProcess();
  for (const auto& [name, first] : {std::pair(old, Time{1}), std::pair(state, Time{101})}) {
    const std::vector<Time> ends = Read(name);
    for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(ends[i], first + Time(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WindowLogTest, ::testing::Range<std::uint64_t>(1, 21));

class WindowRecordTest : public test::PlayedRunTest {
 protected:
  WindowRecordTest() {
    FabricRun::Events events{[](const absl::Status&) {}, [] {}};
    events.record = [](const std::vector<v1::JournalRecord>&) { return absl::OkStatus(); };
    Apply({}, std::move(events), 2, kMicrosecond);
    EXPECT_FALSE(run_->OnlyWindows()) << "nothing was saved yet";
    run_->Save(&before_);
    steps_ = run_->manager_log().new_steps();
    run_->Kept(/*whole=*/true);
  }
  // The process has run its window and sends a batch to the other one.
  v1::DaemonMessage ReportOf(std::uint32_t process) {
    v1::DaemonMessage message;
    v1::WindowReport* report = message.mutable_report();
    report->set_next_event(kMillisecond);
    report->set_unfinished(process == 0 ? 1 : 0);
    report->add_peers(1 - process);
    report->add_batches(0);
    report->add_carried("batch");
    report->add_arrivals(run_->master().window_end(process) + 100 * kNanosecond);
    report->add_credits(kNever);
    return message;
  }
  bool Report() {
    const std::uint32_t process = run_->Awaits(0) ? 0 : 1;
    Hear(process, ReportOf(process));
    return run_->OnlyWindows();
  }
  // But for what TakeUp continues with.
  static std::string StateOf(FabricRun& run) {
    v1::SavedRun saved;
    run.Save(&saved);
    saved.clear_recoveries();
    saved.clear_phase();
    return saved.DebugString();
  }

  v1::SavedRun before_;
  std::vector<v1::ManagerStep> steps_;
};

TEST_F(WindowRecordTest, ARunThatRepeatsItsRecordIsTheSame) {
  std::vector<v1::SavedSteps> records;
  const std::size_t sent_before = port_.messages.size();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Report()) << i;
    EXPECT_EQ(run_->record().reports(), 1u);
    records.push_back(*run_->record().steps());
    run_->Kept(/*whole=*/false);
  }
  const std::vector<v1::ControllerMessage> sent(
      port_.messages.begin() + static_cast<std::ptrdiff_t>(sent_before), port_.messages.end());
  port_.messages.clear();
  v1::ApplyRequest request;
  OfTwoHubs(&request);
  const auto next =
      FabricRun::Create(kRun, request, 2, &lock_, &port_, {[](const absl::Status&) {}, [] {}});
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ((*next)->Restore(before_, steps_, {}), absl::OkStatus());
  EXPECT_NE(StateOf(**next), StateOf(*run_));
  for (const v1::SavedSteps& record : records) {
    for (const v1::SavedStep& step : record.steps())
      ASSERT_EQ((*next)->Repeat(step), absl::OkStatus()) << step.DebugString();
  }
  EXPECT_EQ(StateOf(**next), StateOf(*run_));
  EXPECT_TRUE(
      std::equal(sent.begin(), sent.end(), port_.messages.begin(), port_.messages.end(),
                 [](const auto& a, const auto& b) { return a.DebugString() == b.DebugString(); }));
  EXPECT_FALSE((*next)->OnlyWindows()) << "it was not saved as a whole since";
  v1::SavedStep opened;
  opened.set_opened(kSecond);
  EXPECT_EQ((*next)->Repeat(opened).code(), absl::StatusCode::kDataLoss) << "in the span";
  v1::SavedStep stranger;
  stranger.mutable_report()->set_process(2);
  EXPECT_EQ((*next)->Repeat(stranger).code(), absl::StatusCode::kDataLoss);
}

// Each of these has to be saved as a whole.
TEST_F(WindowRecordTest, ACommandIsMoreThanWindows) {
  ASSERT_TRUE(Report());
  run_->Pause();
  EXPECT_FALSE(run_->OnlyWindows());
}

TEST_F(WindowRecordTest, AReportForNetworkManagementIsMoreThanWindows) {
  v1::DaemonMessage message = ReportOf(0);
  Outbox alert;
  alert.control.emplace_back();
  EncodeOutbox(alert, message.mutable_report()->mutable_management());
  Hear(0, message);
  EXPECT_FALSE(run_->OnlyWindows());
}

TEST_F(WindowRecordTest, ALossIsMoreThanWindows) {
  ASSERT_TRUE(Report());
  run_->Lose(1, "d", 5, "it is away");
  EXPECT_FALSE(run_->OnlyWindows());
}

TEST_F(WindowRecordTest, TheEndIsMoreThanWindows) {
  v1::DaemonMessage done;
  done.mutable_report()->set_next_event(kNever);
  done.mutable_report()->set_unfinished(0);
  Hear(0, done);
  EXPECT_FALSE(run_->OnlyWindows());
}

}  // namespace
}  // namespace percs
