#include "daemon/stream/wall_clock.h"

#include <utility>

#include "daemon/stream/process_lock.h"
#include "grpcpp/alarm.h"

namespace percs {
namespace {

class RealAlarm final : public WallClock::Alarm {
 public:
  RealAlarm(ProcessLock* lock, std::chrono::nanoseconds after, std::function<void()> then)
      : off_(std::make_shared<bool>(false)) {
    lock->Add();
    const auto when = std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(after);
    alarm_.Set(when, [lock, off = off_, then = std::move(then)](bool rang) noexcept {
      const LockGuard guard(lock->mutex());  // noexcept: gRPC would swallow what is thrown
      if (rang && !*off) then();
      lock->Remove();
    });
  }
  ~RealAlarm() override { *off_ = true; }

 private:
  std::shared_ptr<bool> off_;
  grpc::Alarm alarm_;
};

class RealClock final : public WallClock {
 public:
  Point Now() const override { return std::chrono::steady_clock::now(); }
  std::unique_ptr<Alarm> Set(ProcessLock* lock, std::chrono::nanoseconds after,
                             std::function<void()> then) override {
    return std::make_unique<RealAlarm>(lock, after, std::move(then));
  }
};

}  // namespace

WallClock& WallClock::Real() {
  static RealClock clock;
  return clock;
}

}  // namespace percs
