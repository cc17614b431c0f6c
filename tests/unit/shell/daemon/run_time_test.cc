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

  static inline ManualClock clock_;
  v1::ApplyRequest request_;
  std::vector<v1::JournalRecord> kept_;
};

TEST_F(RunTimeTest, TheNextControllerContinuesNoEarlierThanTheLastCommandTookEffect) {
  Begin(10 * kMicrosecond);
  clock_.Pass(std::chrono::seconds(2));
  run_->Trace({}, [](absl::StatusOr<Time>) {});
  clock_.Pass(milliseconds(10));
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_GT(kept_[0].at(), kMicrosecond) << "between two windows";
  v1::SavedRun saved;
  run_->Save(&saved);
  EXPECT_EQ(saved.commands(), 1u);
  request_.mutable_scenario()->mutable_topology()->set_drawers(1);
  request_.mutable_scenario()->mutable_topology()->set_hubs(2);
  auto next = FabricRun::Create(kRun, request_, 2, &lock_, &port_, Events());
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ((*next)->Restore(saved, run_->manager_log().new_steps(), kept_), absl::OkStatus());
  (*next)->TakeUp();
  EXPECT_GE((*next)->virtual_time(), kept_[0].at());
}

}  // namespace
}  // namespace percs
