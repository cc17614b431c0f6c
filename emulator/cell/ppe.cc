#include "emulator/cell/ppe.h"

#include <utility>

#include "fmt/format.h"

namespace percs::cell {

Ppe::Ppe(int cell, BladeContext* context, MainMemory* memory, std::array<Spe*, kSpes>* spes)
    : Processor(kSpes + cell, fmt::format("PPE {}", cell), context), memory_(memory), spes_(spes) {}

bool Ppe::Reaches(int spe, const char* rule) {
  if (spe < 0 || spe >= kSpes) {
    Fail(absl::InvalidArgumentError(
        fmt::format("{} rule: SPE {}; a blade has SPEs 0 to {}", rule, spe, kSpes - 1)));
    return false;
  }
  if (context_->spes_down & (1u << spe)) {
    Fail(absl::InvalidArgumentError(fmt::format("{} rule: SPE {} is down", rule, spe)));
    return false;
  }
  return true;
}

Processor::Slow Ppe::AskMailbox(Operation::Kind kind, int spe, Mailbox& (Spe::*mailbox)(),
                                std::uint32_t value, const char* waits_for) {
  Operation op;
  if (Reaches(spe, "mailbox")) {
    op.kind = kind;
    op.mailbox = &((*spes_)[spe]->*mailbox)();
    op.operand = value;
  }
  return Ask(op, context_->parameters.ppe_access, waits_for);
}

Processor::Slow Ppe::WriteInMbox(int spe, std::uint32_t value) {
  return AskMailbox(Operation::Kind::kMailboxWrite, spe, &Spe::inbound, value,
                    "room in an inbound mailbox");
}

Processor::Slow Ppe::ReadOutMbox(int spe) {
  return AskMailbox(Operation::Kind::kMailboxRead, spe, &Spe::outbound, 0,
                    "a message in an outbound mailbox");
}

Processor::Slow Ppe::ReadOutIntrMbox(int spe) {
  return AskMailbox(Operation::Kind::kMailboxRead, spe, &Spe::outbound_interrupt, 0,
                    "a message in an outbound interrupt mailbox");
}

Processor::Slow Ppe::SendSignal(int spe, int signal_register, std::uint32_t value) {
  Operation op;
  if (signal_register < 1 || signal_register > 2) {
    Fail(absl::InvalidArgumentError(
        fmt::format("signal rule: register {}; an SPE has registers 1 and 2", signal_register)));
  } else if (Reaches(spe, "signal")) {
    op.kind = Operation::Kind::kSignal;
    op.target_spe = spe;
    op.signal_register = signal_register;
    op.operand = value;
  }
  return Ask(op, context_->parameters.ppe_access, "a signal to be written");
}

Processor::Slow Ppe::Atomic(AtomicOp atomic, EffectiveAddress ea, std::uint32_t operand,
                            std::uint32_t comparand) {
  return AskAtomic(atomic, *memory_, ea, operand, comparand);
}

Ppe::Started Ppe::StartSpe(int spe, SpeProgram program) {
  if (Reaches(spe, "program")) {
    Spe& target = *(*spes_)[spe];
    if (target.unfinished()) {
      Fail(absl::InvalidArgumentError(
          fmt::format("program rule: SPE {} already runs a program; join it first", spe)));
    } else {
      clock_ += context_->parameters.ppe_access;
      target.Run(std::move(program), clock_);
    }
  }
  return {this};
}

Ppe::Join Ppe::JoinSpe(int spe) {
  if (spe < 0 || spe >= kSpes) {
    Reaches(spe, "program");
    return {this, (*spes_)[0]};
  }
  return {this, (*spes_)[spe]};
}

void Ppe::AwaitEnd(std::coroutine_handle<> h, Spe* spe) {
  Suspend(h);
  if (state_ == State::kFailed) return;
  waits_for_ = "an SPE's program to end";
  if (spe->unfinished()) {
    spe->TellEnd(this);
  } else {
    WakeAt(clock_);
  }
}

void Ppe::Store(int spe, LsAddress ls, const void* data, std::uint32_t bytes) {
  PERCS_CHECK(ls <= kLocalStoreBytes && bytes <= kLocalStoreBytes - ls);
  if (context_->spes_down & (1u << spe)) return;
  Spe& target = *(*spes_)[spe];
  if (bytes > 0) std::memcpy(target.local_store().at(ls), data, bytes);
  context_->Fold(0x700 + static_cast<std::uint64_t>(spe), std::uint64_t{ls} << 32 | bytes);
  context_->digest.Add(HashBytes(data, bytes));
  target.OnStored();
}

void Ppe::AwaitEvent(std::coroutine_handle<> h) {
  Suspend(h);
  waits_for_ = "an event from outside the blade";
  if (events_.empty()) {
    waits_for_event_ = true;
  } else {
    WakeAt(clock_);
  }
}

std::uint64_t Ppe::TakeEvent() {
  const std::uint64_t token = events_.front();
  events_.pop_front();
  return token;
}

void Ppe::OnEvent(std::uint64_t token) {
  events_.push_back(token);
  if (std::exchange(waits_for_event_, false)) WakeAfter(0);
}

}  // namespace percs::cell
