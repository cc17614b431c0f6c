#include "emulator/cell/processor.h"

#include "emulator/cell/main_memory.h"
#include "fmt/format.h"

namespace percs::cell {

void Processor::Start(Task<> program, Time at) {
  PERCS_CHECK(!unfinished());
  program_ = std::move(program);
  status_ = absl::OkStatus();
  state_ = State::kRunning;
  PauseUntil(program_.handle(), std::max(at, context_->now));
  waits_for_ = "its start";
}

void Processor::Resume() {
  if (state_ != State::kWaiting) return;  // it went down meanwhile
  clock_ = context_->now;
  state_ = State::kRunning;
  resume_.resume();
  if (state_ == State::kRunning && program_.done()) {
    state_ = State::kDone;
    context_->Fold(0x100 + static_cast<std::uint64_t>(index_), static_cast<std::uint64_t>(clock_));
    context_->last_event = std::max(context_->last_event, clock_);
    OnEnd();
  }
}

void Processor::FinishOperation(std::uint32_t result, Time service) {
  result_ = result;
  WakeAt(context_->now + service + operation_.back);
}

void Processor::GoDown() {
  if (unfinished()) {
    status_ = absl::UnavailableError(fmt::format("{} went down", name_));
  }
  state_ = State::kDown;
  OnEnd();
}

void Processor::Fail(const absl::Status& rule) {
  status_ = absl::Status(
      rule.code(), fmt::format("{} at {} ps: {}", name_, clock_, std::string(rule.message())));
  state_ = State::kFailed;
  context_->Fold(0x200 + static_cast<std::uint64_t>(index_), static_cast<std::uint64_t>(clock_));
  OnEnd();
}

Processor::Slow Processor::Ask(const Operation& operation, Time there, const char* waits_for) {
  ++context_->stats.operations;
  operation_ = operation;
  waits_for_ = waits_for;
  if (state_ == State::kRunning) {
    context_->queue.Push(
        clock_ + there,
        EventKey(EventClass::kTimer, index_, 0, static_cast<std::uint64_t>(BladeTimer::kOperation)),
        EventData(this));
  }
  return {this};
}

Processor::Slow Processor::AskAtomic(AtomicOp atomic, const MainMemory& memory, EffectiveAddress ea,
                                     std::uint32_t operand, std::uint32_t comparand) {
  if (ea % 4 != 0 || !memory.holds(ea, 4)) {
    Fail(absl::InvalidArgumentError(fmt::format(
        "atomic rule: effective address {:#x}; it must be a 32-bit word of main memory ({} bytes)",
        ea, memory.size())));
  }
  Operation op;
  op.kind = Operation::Kind::kAtomic;
  op.atomic = atomic;
  op.ea = ea;
  op.operand = operand;
  op.comparand = comparand;
  op.back = context_->parameters.atomic_travel;
  return Ask(op, context_->parameters.atomic_travel, "an atomic operation on main memory");
}

}  // namespace percs::cell
