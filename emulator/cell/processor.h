// What SPEs and PPEs have in common: a program, a clock of its own that may run ahead of the blade
// while nothing outside is looked at, and at most one operation that waits.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "emulator/base/task.h"
#include "emulator/cell/blade_context.h"

namespace percs::cell {

class Mailbox;
class MainMemory;

enum class AtomicOp : std::uint8_t { kAdd, kAnd, kOr, kXor, kExchange, kCompareExchange };

// A slow operation on something shared, carried out when it gets there.
struct Operation {
  enum class Kind : std::uint8_t {
    kNone,
    kMailboxRead,
    kMailboxWrite,
    kSignal,
    kAtomic,
  };
  Kind kind = Kind::kNone;
  Mailbox* mailbox = nullptr;
  int target_spe = 0, signal_register = 0;
  EffectiveAddress ea = 0;
  std::uint32_t operand = 0, comparand = 0;
  AtomicOp atomic = AtomicOp::kAdd;
  Time back = 0;  // after it was carried out, until the program continues
};

class Processor {
 public:
  enum class State : std::uint8_t { kIdle, kRunning, kWaiting, kDone, kFailed, kDown };

  Processor(int index, std::string name, BladeContext* context)
      : context_(context), index_(index), name_(std::move(name)) {}
  virtual ~Processor() = default;
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }
  const BladeParameters& parameters() const { return context_->parameters; }
  FramePool& frames() { return frames_; }
  Time time() const { return clock_; }  // the program's own
  State state() const { return state_; }
  bool unfinished() const { return state_ == State::kRunning || state_ == State::kWaiting; }
  // Of the program: OK, or the rule it broke.
  const absl::Status& status() const { return status_; }
  // What a program that does not continue waits for.
  virtual std::string WaitsFor() const { return waits_for_; }

  // Awaitables.
  struct Pause {
    Processor* processor;
    Time until;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { processor->PauseUntil(h, until); }
    void await_resume() const {}
  };
  struct Spend {
    Processor* processor;
    bool await_ready() const { return processor->clock_ - processor->context_->now <= kAheadMax; }
    void await_suspend(std::coroutine_handle<> h) const {
      processor->PauseUntil(h, processor->clock_);
    }
    void await_resume() const {}
  };
  struct Slow {
    Processor* processor;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { processor->Suspend(h); }
    std::uint32_t await_resume() const { return processor->result_; }
  };

  // Ends the program here with this error.
  struct Stop {
    Processor* processor;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { processor->Suspend(h); }
    void await_resume() const {}
  };
  [[nodiscard]] Stop Break(const absl::Status& rule) {
    Fail(rule);
    return {this};
  }
  // Computes for `time`, without looking at anything that others may change.
  Spend Compute(Time time) {
    clock_ += time;
    return {this};
  }
  // Waits until `at` (or not at all if that is past) and lets everything before it happen.
  Pause SleepUntil(Time at) { return {this, std::max(at, clock_)}; }
  Pause Sync() { return {this, clock_}; }

  // For the blade.
  void Start(Task<> program, Time at);
  void TellEnd(Processor* waiting) { waits_for_end_ = waiting; }
  void Resume();
  void FinishOperation(std::uint32_t result, Time service = 0);
  void GoDown();
  const Operation& operation() const { return operation_; }

 protected:
  friend class Mfc;
  static constexpr Time kAheadMax = 100 * kMicrosecond;  // beyond this the blade catches up first

  void Suspend(std::coroutine_handle<> h) {
    resume_ = h;
    if (state_ == State::kRunning) state_ = State::kWaiting;
  }
  void PauseUntil(std::coroutine_handle<> h, Time until) {
    Suspend(h);
    waits_for_ = "a time";
    WakeAt(until);
  }
  // The program continues at `at`; nothing else may wake it before.
  void WakeAt(Time at) {
    context_->queue.Push(at, EventKey(EventClass::kHfi, index_, 0, 0), EventData(this));
  }
  void WakeAfter(Time cost) { WakeAt(std::max(context_->now, clock_) + cost); }
  void OnEnd() {
    if (Processor* p = std::exchange(waits_for_end_, nullptr)) p->WakeAfter(0);
  }
  // The program stops here for good, as the hardware's error interrupt would end it.
  void Fail(const absl::Status& rule);
  Slow Ask(const Operation& operation, Time there, const char* waits_for);
  Slow AskAtomic(AtomicOp op, const MainMemory& memory, EffectiveAddress ea, std::uint32_t operand,
                 std::uint32_t comparand);

  BladeContext* const context_;
  Time clock_ = 0;
  std::coroutine_handle<> resume_;
  State state_ = State::kIdle;
  std::uint32_t result_ = 0;
  const char* waits_for_ = "";

 private:
  Processor* waits_for_end_ = nullptr;  // of this one's program
  const int index_;
  const std::string name_;
  absl::Status status_;
  Operation operation_;
  FramePool frames_;
  Task<> program_;  // after the pool its frame is in
};

}  // namespace percs::cell
