// Synergistic processing element: an SPU that runs one program, a local store, an MFC, mailboxes
// and two signal registers. Programs are coroutines that speak to the MFC in the words of the SDK:
//
//   Task<> Program(Spe& spe) {
//     co_await spe.Get(0x1000, ea, 4096, /*tag=*/3);
//     co_await spe.WaitTagAll(1u << 3);
//     co_await spe.SendSignal(/*spe=*/1, /*register=*/1, 1u << spe.index(), /*tag=*/4);
//     const std::uint32_t bits = co_await spe.ReadSignal(1);
//   }
//
// An operation that breaks a rule ends its program there; status() of the SPE names the rule.
#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <string>

#include "emulator/cell/local_store.h"
#include "emulator/cell/mailbox.h"
#include "emulator/cell/mfc.h"
#include "emulator/cell/processor.h"
#include "emulator/cell/signal.h"

namespace percs::cell {

class Spe;
using SpeProgram = std::function<Task<>(Spe&)>;

class Spe : public Processor {
 public:
  Spe(int index, BladeContext* context, std::array<Eib*, kCells> buses, MainMemory* memory,
      std::array<Spe*, kSpes>* all);

  LocalStore& local_store() { return local_store_; }
  int cell() const { return index() / kSpesPerCell; }
  std::string WaitsFor() const override;

  // A command for the MFC. The program continues once the MFC has it; it waits while the queue is
  // full.
  struct Issued {
    Spe* spe;
    bool await_ready() const { return spe->state_ == State::kRunning && !spe->queue_full_; }
    void await_suspend(std::coroutine_handle<> h) const { spe->Suspend(h); }
    void await_resume() const {}
  };
  // Local store to an effective address: main memory, or another SPE's local store.
  [[nodiscard]] Issued Put(LsAddress ls, EffectiveAddress ea, std::uint32_t size, int tag,
                           DmaOrder order = DmaOrder::kNone) {
    return Issue(DmaCommand::Kind::kPut, ls, ea, size, tag, order);
  }
  [[nodiscard]] Issued Get(LsAddress ls, EffectiveAddress ea, std::uint32_t size, int tag,
                           DmaOrder order = DmaOrder::kNone) {
    return Issue(DmaCommand::Kind::kGet, ls, ea, size, tag, order);
  }
  // `elements` DmaListElements at `list`; the high word of `ea` is that of all of them.
  [[nodiscard]] Issued PutList(LsAddress ls, EffectiveAddress ea, LsAddress list,
                               std::uint32_t elements, int tag, DmaOrder order = DmaOrder::kNone) {
    return IssueList(DmaCommand::Kind::kPutList, ls, ea, list, elements, tag, order);
  }
  [[nodiscard]] Issued GetList(LsAddress ls, EffectiveAddress ea, LsAddress list,
                               std::uint32_t elements, int tag, DmaOrder order = DmaOrder::kNone) {
    return IssueList(DmaCommand::Kind::kGetList, ls, ea, list, elements, tag, order);
  }
  // Sets signal register 1 or 2 of another SPE.
  [[nodiscard]] Issued SendSignal(int target_spe, int signal_register, std::uint32_t value, int tag,
                                  DmaOrder order = DmaOrder::kNone);

  // Until no command of these tags is left; or until one of these tags has none left: which.
  struct TagsAll {
    Spe* spe;
    std::uint32_t mask;
    bool await_ready() const { return spe->TagsIdle(mask); }
    void await_suspend(std::coroutine_handle<> h) const { spe->AwaitTags(h, mask, true); }
    void await_resume() const {}
  };
  struct TagsAny {
    Spe* spe;
    std::uint32_t mask;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { spe->AwaitTags(h, mask, false); }
    std::uint32_t await_resume() const { return mask & ~spe->mfc_.outstanding(); }
  };
  [[nodiscard]] TagsAll WaitTagAll(std::uint32_t mask) { return {this, mask}; }
  [[nodiscard]] TagsAny WaitTagAny(std::uint32_t mask) { return {this, mask}; }

  // Waits until the register has been written, reads it and clears it.
  struct SignalRead {
    Spe* spe;
    int index;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { spe->AwaitSignal(h, index); }
    std::uint32_t await_resume() const { return spe->signals_[index].Take(); }
  };
  [[nodiscard]] SignalRead ReadSignal(int signal_register);
  void SetSignalMode(int signal_register, SignalMode mode);

  // Own mailboxes: the inbound one waits for a message, the outbound ones for room.
  [[nodiscard]] Slow ReadInMbox();
  [[nodiscard]] Slow WriteOutMbox(std::uint32_t value);
  [[nodiscard]] Slow WriteOutIntrMbox(std::uint32_t value);
  // Another SPE's inbound mailbox; waits for room there.
  [[nodiscard]] Slow WriteInMbox(int target_spe, std::uint32_t value);

  // One 32-bit word of main memory; gives its value before.
  [[nodiscard]] Slow Atomic(AtomicOp op, EffectiveAddress ea, std::uint32_t operand,
                            std::uint32_t comparand = 0);
  [[nodiscard]] Slow AtomicAddReturn(EffectiveAddress ea, std::uint32_t addend) {
    return Atomic(AtomicOp::kAdd, ea, addend);
  }

  // Waits until something is stored into its local store from outside, by another SPE's DMA or by a
  // PPE: what a loop that spins on a word there does, without its idle turns. The caller looks at
  // the word again: first after Sync(), then after every wake. `what` it waits for is for reports
  // and outlives the wait.
  struct StoreWait {
    Spe* spe;
    const std::string* what;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { spe->AwaitStore(h, what); }
    void await_resume() const {}
  };
  [[nodiscard]] StoreWait WaitStore(const std::string* what) { return {this, what}; }

  // For the blade, the MFC and the PPEs.
  void Run(SpeProgram program, Time at) {
    function_ = std::move(program);  // its captures outlive the coroutine
    Start(function_(*this), at);
  }
  Spe& other(int index) { return *(*all_)[index]; }
  Mfc& mfc() { return mfc_; }
  Mailbox& inbound() { return inbound_; }
  Mailbox& outbound() { return outbound_; }
  Mailbox& outbound_interrupt() { return outbound_interrupt_; }
  void OnSignal(int signal_register, std::uint32_t value);
  void OnCommandComplete();
  void OnStored();
  void GoDown();

 private:
  enum class Waiting : std::uint8_t { kNothing, kTagsAll, kTagsAny, kSignal, kStore };
  Slow Write(Mailbox& mailbox, std::uint32_t value, const char* waits_for);  // one of its own

  Issued Issue(DmaCommand::Kind kind, LsAddress ls, EffectiveAddress ea, std::uint32_t size,
               int tag, DmaOrder order);
  Issued IssueList(DmaCommand::Kind kind, LsAddress ls, EffectiveAddress ea, LsAddress list,
                   std::uint32_t elements, int tag, DmaOrder order);
  Issued IssueCommand(const DmaCommand& command);
  bool TagsIdle(std::uint32_t mask);
  void AwaitTags(std::coroutine_handle<> h, std::uint32_t mask, bool all);
  void AwaitSignal(std::coroutine_handle<> h, int index);
  void AwaitStore(std::coroutine_handle<> h, const std::string* what);

  SpeProgram function_;
  MainMemory* const memory_;
  std::array<Spe*, kSpes>* const all_;
  LocalStore local_store_;
  Mfc mfc_;
  Mailbox inbound_, outbound_, outbound_interrupt_;
  std::array<SignalRegister, 2> signals_;
  Waiting waiting_ = Waiting::kNothing;
  int awaited_signal_ = 0;
  const std::string* awaited_store_ = nullptr;
  std::uint32_t awaited_tags_ = 0;
  bool queue_full_ = false;
  DmaCommand held_;  // by a program that waits for room in the queue
};

}  // namespace percs::cell
