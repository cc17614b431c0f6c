// A world for processes of a fabric that are objects of one process: what happens in it happens at
// a simulated wall time, one event after the other, and a seed decides when. Nothing in it looks at
// the machine's clock, so the same seed gives the same history, event by event.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/stream/process_lock.h"
#include "emulator/base/random.h"

namespace percs::sim {

using Wall = std::chrono::nanoseconds;  // since the world began
using std::chrono::milliseconds;

inline Wall Drawn(RandomStream& random, Wall least, Wall most) {
  return least +
         Wall(static_cast<Wall::rep>(random.Unit() * static_cast<double>((most - least).count())));
}

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed, "world"), trace_(seed) {}

  Wall now() const { return now_; }
  RandomStream& random() { return random_; }
  // Uniform, ends included.
  Wall Between(Wall least, Wall most);
  bool Chance(double probability) { return random_.Unit() <= probability; }

  void After(Wall delay, std::function<void()> event);
  // The next event; false if there is none.
  bool Step();

  // What tells one history from another.
  void Trace(std::uint64_t value) { trace_ = Mix64(trace_ ^ value); }
  std::uint64_t trace() const { return trace_; }
  // For people.
  void Log(const std::string& line);
  const std::vector<std::string>& log() const { return log_; }

 private:
  std::map<std::pair<Wall, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t number_ = 0;
  Wall now_{0};
  RandomStream random_;
  std::uint64_t trace_;
  std::vector<std::string> log_;
};

// One life of a process: its clock, and what the world may do to it. Everything in it runs in Run.
// Once it is dead nothing of it leaves, and what was to happen in it does not.
class Process final : public WallClock, public std::enable_shared_from_this<Process> {
 public:
  Process(World* world, std::string name);

  World& world() { return *world_; }
  const std::string& name() const { return name_; }
  bool alive() const { return alive_; }
  // The lock under which it runs; there is one while it is alive.
  void Guard(ProcessLock* lock) { lock_ = lock; }

  // As soon as it is not paused, if it is alive then.
  void Run(std::function<void()> what);
  // It does nothing until then.
  void PauseUntil(Wall until) { paused_until_ = std::max(paused_until_, until); }
  bool paused() const { return paused_until_ > world_->now(); }
  // Until then it takes so much time each time it looks at the clock.
  void SlowUntil(Wall until, Wall look) {
    slow_until_ = until;
    look_ = look;
  }
  bool slow() const { return slow_until_ > world_->now(); }
  // After so many more things that leave it, it is dead, in the middle of what it does.
  void DieAfter(std::uint64_t effects) { dies_after_ = effects; }
  void Kill();
  void Die() { alive_ = false; }  // of itself
  // Called for what leaves it, to a disk or a network; false: it is dead, and nothing leaves.
  bool Affects();

  Point Now() const override;
  std::unique_ptr<Alarm> Set(ProcessLock* lock, std::chrono::nanoseconds after,
                             std::function<void()> then) override;

 private:
  World* const world_;
  const std::string name_;
  const double rate_;  // of its clock
  const Wall offset_;
  ProcessLock* lock_ = nullptr;
  bool alive_ = true;
  Wall paused_until_{0}, slow_until_{0}, look_{0};
  mutable Wall spent_{0};  // in the event at hand
  std::uint64_t dies_after_ = 0;
};

}  // namespace percs::sim
