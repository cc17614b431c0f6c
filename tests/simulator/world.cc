#include "tests/simulator/world.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs::sim {
namespace {

constexpr std::size_t kLogMax = 4000;

class SimulatedAlarm final : public WallClock::Alarm {
 public:
  SimulatedAlarm() : off_(std::make_shared<bool>(false)) {}
  ~SimulatedAlarm() override { *off_ = true; }
  std::shared_ptr<bool> off() const { return off_; }

 private:
  std::shared_ptr<bool> off_;
};

}  // namespace

Wall World::Between(Wall least, Wall most) {
  return least +
         Wall(static_cast<Wall::rep>(random_.Unit() * static_cast<double>((most - least).count())));
}

void World::After(Wall delay, std::function<void()> event) {
  events_.emplace(std::pair(now_ + std::max(delay, Wall(0)), ++number_), std::move(event));
}

bool World::Step() {
  if (events_.empty()) return false;
  auto next = events_.extract(events_.begin());
  now_ = next.key().first;
  Trace(static_cast<std::uint64_t>(now_.count()));
  Trace(next.key().second);
  next.mapped()();
  return true;
}

void World::Log(const std::string& line) {
  if (log_.size() < kLogMax)
    log_.push_back(fmt::format("{:9.3f} s  {}", static_cast<double>(now_.count()) / 1e9, line));
}

Process::Process(World* world, std::string name)
    : world_(world),
      name_(std::move(name)),
      rate_(0.95 + 0.1 * world->random().Unit()),
      offset_(world->Between(std::chrono::hours(1), std::chrono::hours(1000))) {}

void Process::Run(std::function<void()> what) {
  if (!alive_) return;
  if (paused()) {
    world_->After(paused_until_ - world_->now(),
                  [self = shared_from_this(), what = std::move(what)] { self->Run(what); });
    return;
  }
  spent_ = Wall(0);
  {
    const LockGuard guard(lock_->mutex());
    what();
  }
  if (spent_ > Wall(0)) PauseUntil(world_->now() + std::exchange(spent_, Wall(0)));
}

void Process::Kill() {
  if (!alive_) return;
  alive_ = false;
  world_->Log(name_ + " is killed");
}

bool Process::Affects() {
  if (alive_ && dies_after_ > 0 && --dies_after_ == 0) Kill();
  return alive_;
}

WallClock::Point Process::Now() const {
  if (slow_until_ > world_->now()) spent_ += look_;
  const Wall local = world_->now() + spent_;
  return Point(std::chrono::duration_cast<Point::duration>(
      offset_ + Wall(static_cast<Wall::rep>(static_cast<double>(local.count()) * rate_))));
}

std::unique_ptr<WallClock::Alarm> Process::Set(ProcessLock*, std::chrono::nanoseconds after,
                                               std::function<void()> then) {
  auto alarm = std::make_unique<SimulatedAlarm>();
  const Wall delay(static_cast<Wall::rep>(static_cast<double>(after.count()) / rate_));
  world_->After(spent_ + delay,
                [self = shared_from_this(), off = alarm->off(), then = std::move(then)] {
                  if (*off) return;
                  self->Run([off, then] {
                    if (!*off) then();
                  });
                });
  return alarm;
}

}  // namespace percs::sim
