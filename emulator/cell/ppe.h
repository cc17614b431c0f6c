// PowerPC processor element of a Cell: runs one program that starts and joins SPE programs and
// speaks to SPEs through their mailboxes and signal registers, to main memory, and to the outside
// of the blade.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "emulator/base/ring.h"
#include "emulator/cell/processor.h"
#include "emulator/cell/spe.h"

namespace percs::cell {

class Ppe;
using PpeProgram = std::function<Task<>(Ppe&)>;

class Ppe : public Processor {
 public:
  Ppe(int cell, BladeContext* context, MainMemory* memory, std::array<Spe*, kSpes>* spes);

  MainMemory& memory() { return *memory_; }

  // Mailboxes of an SPE, from its other side: the inbound one waits for room, the outbound ones for
  // a message.
  [[nodiscard]] Slow WriteInMbox(int spe, std::uint32_t value);
  [[nodiscard]] Slow ReadOutMbox(int spe);
  [[nodiscard]] Slow ReadOutIntrMbox(int spe);
  [[nodiscard]] Slow SendSignal(int spe, int signal_register, std::uint32_t value);
  [[nodiscard]] Slow Atomic(AtomicOp op, EffectiveAddress ea, std::uint32_t operand,
                            std::uint32_t comparand = 0);

  // Starts a program on an SPE, which must be up and idle.
  struct Started {
    Ppe* ppe;
    bool await_ready() const { return ppe->state_ == State::kRunning; }
    void await_suspend(std::coroutine_handle<> h) const { ppe->Suspend(h); }
    void await_resume() const {}
  };
  [[nodiscard]] Started StartSpe(int spe, SpeProgram program);
  // Waits until the program of an SPE is over: whether it ended well.
  struct Join {
    Ppe* ppe;
    Spe* spe;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { ppe->AwaitEnd(h, spe); }
    bool await_resume() const { return spe->status().ok(); }
  };
  [[nodiscard]] Join JoinSpe(int spe);

  // Writes into an SPE's local store, through its window in memory, at the blade's now: the caller
  // has spent the time and called Sync(). REQUIRES: inside the local store.
  void Store(int spe, LsAddress ls, const void* data, std::uint32_t bytes);

  // The next token posted to this PPE from outside the blade (Blade::Post), in order.
  struct Event {
    Ppe* ppe;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { ppe->AwaitEvent(h); }
    std::uint64_t await_resume() const { return ppe->TakeEvent(); }
  };
  [[nodiscard]] Event WaitEvent() { return {this}; }

  // For the blade.
  void Run(PpeProgram program, Time at) {
    function_ = std::move(program);
    Start(function_(*this), at);
  }
  void OnEvent(std::uint64_t token);

 private:
  bool Reaches(int spe, const char* rule);
  Slow AskMailbox(Operation::Kind kind, int spe, Mailbox& (Spe::*mailbox)(), std::uint32_t value,
                  const char* waits_for);
  void AwaitEnd(std::coroutine_handle<> h, Spe* spe);
  void AwaitEvent(std::coroutine_handle<> h);
  std::uint64_t TakeEvent();

  PpeProgram function_;
  MainMemory* const memory_;
  std::array<Spe*, kSpes>* const spes_;
  Ring<std::uint64_t> events_;
  bool waits_for_event_ = false;
};

}  // namespace percs::cell
