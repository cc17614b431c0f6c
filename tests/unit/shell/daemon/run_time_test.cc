// What a run does later, and after another controller. Method: a run whose daemons are played by
// the test, on a clock that the test moves.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"
#include "tests/unit/shell/daemon/played_run.h"

namespace percs {
namespace {

using std::chrono::milliseconds;

class ManualClock final : public WallClock {
 public:
  Point Now() const override { return now_; }
  std::unique_ptr<Alarm> Set(ProcessLock*, std::chrono::nanoseconds after,
                             std::function<void()> then) override {
    auto alarm = std::make_unique<Waiting>();
    events_.emplace(now_ + after, std::pair(alarm->off, std::move(then)));
    return alarm;
  }
  void Pass(std::chrono::nanoseconds time) {
    const Point end = now_ + time;
    while (!events_.empty() && events_.begin()->first <= end) {
      auto next = events_.extract(events_.begin());
      now_ = next.key();
      if (!*next.mapped().first) next.mapped().second();
    }
    now_ = end;
  }

 private:
  struct Waiting final : Alarm {
    ~Waiting() override { *off = true; }
    std::shared_ptr<bool> off = std::make_shared<bool>(false);
  };
  Point now_{std::chrono::hours(1)};
  std::multimap<Point, std::pair<std::shared_ptr<bool>, std::function<void()>>> events_;
};

class RunTimeTest : public test::PlayedRunTest {
 protected:
  RunTimeTest() : PlayedRunTest(&clock_) {}
  void Begin(Time next) {
    v1::Run* run = request_.mutable_scenario()->mutable_run();
    run->set_clock(v1::CLOCK_LIVE);
    run->set_pace(kMicrosecond);
    Apply(request_, Events(), 2, next);
  }
  FabricRun::Events Events() {
    FabricRun::Events events{[](const absl::Status&) {}, [] {}};
    events.record = [this](const std::vector<v1::JournalRecord>& records) {
      kept_.insert(kept_.end(), records.begin(), records.end());
      return absl::OkStatus();
    };
    return events;
  }

  // Follows packets from now on: a command that changes nothing else.
  void Follow() {
    v1::JournalRecord record;
    record.mutable_trace();
    run_->Act(std::move(record), nullptr, [](absl::StatusOr<Time>) {});
  }
  void ReportFrom(std::uint32_t process, Time next) {
    v1::DaemonMessage message;
    message.mutable_report()->set_next_event(next);
    message.mutable_report()->set_unfinished(1);
    run_->OnMessage(process, message);
  }
  // A run as `saved` and the journal have it.
  std::unique_ptr<FabricRun> AnotherController(const v1::SavedRun& saved) {
    request_.mutable_scenario()->mutable_topology()->set_drawers(1);
    request_.mutable_scenario()->mutable_topology()->set_hubs(2);
    auto next = FabricRun::Create(kRun, request_, 2, &lock_, &port_, Events());
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ((*next)->Restore(saved, run_->manager_log().new_steps(), kept_), absl::OkStatus());
    (*next)->TakeUp();
    return *std::move(next);
  }

  static inline ManualClock clock_;
  v1::ApplyRequest request_;
  std::vector<v1::JournalRecord> kept_;
};

TEST_F(RunTimeTest, TheNextControllerContinuesNoEarlierThanTheLastCommandTookEffect) {
  Begin(10 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(2));
  Follow();
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_GT(kept_[0].at(), kMicrosecond) << "between two windows";
  v1::SavedRun saved;
  run_->Save(&saved);
  EXPECT_EQ(saved.commands(), 1u);
  EXPECT_GE(AnotherController(saved)->virtual_time(), kept_[0].at());
}

TEST_F(RunTimeTest, TheNextControllerPausesNoEarlierThanACommandAfterTheWindowItFindsOpen) {
  Begin(500 * kNanosecond);
  clock_.Pass(std::chrono::seconds(1));
  ASSERT_TRUE(run_->master().IsRunning(0));
  v1::SavedRun saved;
  run_->Save(&saved);
  ReportFrom(0, 10 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(1));
  Follow();
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(kept_.size(), 1u);
  ASSERT_GT(kept_[0].at(), run_->master().now());
  EXPECT_GE(AnotherController(saved)->Pause(), kept_[0].at());
}

TEST_F(RunTimeTest, APaceThatIsSetHoldsAlsoForTheNextController) {
  Begin(100 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(2));
  const auto at = run_->SetPace(5 * kMicrosecond);
  ASSERT_TRUE(at.ok()) << at.status();
  EXPECT_EQ(*at, 2 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(1));
  EXPECT_EQ(run_->virtual_time(), 7 * kMicrosecond);
  v1::SavedRun saved;
  run_->Save(&saved);
  const auto next = AnotherController(saved);
  const Time from = next->virtual_time();
  clock_.Pass(std::chrono::seconds(1));
  EXPECT_EQ(next->virtual_time(), from + 5 * kMicrosecond);
}

TEST_F(RunTimeTest, ACommandThatWaitsWhenAPauseEndsTakesEffectAtThePause) {
  Begin(10 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(2));
  const Time pause = run_->Pause();
  Follow();
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(run_->state(), v1::FABRIC_STATE_PAUSED);
  Follow();
  run_->StepBy(3 * kMicrosecond);
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(kept_.size(), 2u);
  EXPECT_EQ(kept_[1].at(), pause);
}

TEST_F(RunTimeTest, HubsOfADaemonThatIsLostBetweenTwoWindowsDoNothingAfterTheFirst) {
  Begin(10 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(2));
  run_->Lose(0, "d0", 1, "a test");
  v1::DaemonMessage answer;
  answer.mutable_peer_lost()->set_process(0);
  run_->OnMessage(1, answer);
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_GT(kept_[0].at(), kMicrosecond);
  const v1::LostDaemon& lost = kept_[0].lose();
  ASSERT_EQ(lost.severed_size(), 2) << "from the other hub, and from network management";
  for (const v1::SeveredHubs& severed : lost.severed())
    EXPECT_EQ(severed.at(), run_->master().now()) << "where the last window ended";
}

}  // namespace
}  // namespace percs
