#include "emulator/cell/spe.h"

#include "fmt/format.h"

namespace percs::cell {

Spe::Spe(int index, BladeContext* context, std::array<Eib*, kCells> buses, MainMemory* memory,
         std::array<Spe*, kSpes>* all)
    : Processor(index, fmt::format("SPE {}", index), context),
      memory_(memory),
      all_(all),
      mfc_(this, context, buses, memory),
      inbound_(context->parameters.mailbox_depth),
      outbound_(1),
      outbound_interrupt_(1) {}

Spe::Issued Spe::Issue(DmaCommand::Kind kind, LsAddress ls, EffectiveAddress ea, std::uint32_t size,
                       int tag, DmaOrder order) {
  DmaCommand c;
  c.kind = kind;
  c.order = order;
  c.tag = static_cast<std::uint8_t>(tag >= 0 && tag < kTags ? tag : kTags);
  c.ls = ls;
  c.ea = ea;
  c.size = size;
  return IssueCommand(c);
}

Spe::Issued Spe::IssueList(DmaCommand::Kind kind, LsAddress ls, EffectiveAddress ea, LsAddress list,
                           std::uint32_t elements, int tag, DmaOrder order) {
  DmaCommand c;
  c.kind = kind;
  c.order = order;
  c.tag = static_cast<std::uint8_t>(tag >= 0 && tag < kTags ? tag : kTags);
  c.ls = ls;
  c.ea = ea;
  c.list = list;
  c.size = elements <= kDmaListElementsMax ? elements * sizeof(DmaListElement) : ~std::uint32_t{0};
  return IssueCommand(c);
}

Spe::Issued Spe::SendSignal(int target_spe, int signal_register, std::uint32_t value, int tag,
                            DmaOrder order) {
  DmaCommand c;
  c.kind = DmaCommand::Kind::kSignal;
  c.order = order;
  c.tag = static_cast<std::uint8_t>(tag >= 0 && tag < kTags ? tag : kTags);
  c.target_spe =
      static_cast<std::uint8_t>(target_spe >= 0 && target_spe < kSpes ? target_spe : kSpes);
  c.signal_register = static_cast<std::uint8_t>(signal_register);
  c.value = value;
  return IssueCommand(c);
}

Spe::Issued Spe::IssueCommand(const DmaCommand& command) {
  ++context_->stats.operations;
  if (absl::Status s = mfc_.Check(command); !s.ok()) {
    Fail(s);
    return {this};
  }
  clock_ += context_->parameters.issue;
  if (mfc_.full()) {
    held_ = command;
    queue_full_ = true;
  } else {
    mfc_.Enqueue(command, clock_);
  }
  return {this};
}

void Spe::OnCommandComplete() {
  if (queue_full_) {
    queue_full_ = false;
    clock_ = std::max(clock_, context_->now);
    mfc_.Enqueue(held_, clock_);
    WakeAt(clock_);
    return;
  }
  if (state_ != State::kWaiting) return;
  const bool done = waiting_ == Waiting::kTagsAll   ? (mfc_.outstanding() & awaited_tags_) == 0
                    : waiting_ == Waiting::kTagsAny ? (~mfc_.outstanding() & awaited_tags_) != 0
                                                    : false;
  if (!done) return;
  waiting_ = Waiting::kNothing;
  WakeAfter(context_->parameters.tag_status);
}

bool Spe::TagsIdle(std::uint32_t mask) {
  ++context_->stats.operations;
  if ((mfc_.outstanding() & mask) != 0) return false;
  clock_ += context_->parameters.tag_status;
  return clock_ - context_->now <= kAheadMax;
}

void Spe::AwaitTags(std::coroutine_handle<> h, std::uint32_t mask, bool all) {
  Suspend(h);
  const std::uint32_t idle = mask & ~mfc_.outstanding();
  if (all && idle == mask) {
    WakeAt(clock_);
  } else if (!all && (idle != 0 || mask == 0)) {
    WakeAfter(context_->parameters.tag_status);
  } else {
    waiting_ = all ? Waiting::kTagsAll : Waiting::kTagsAny;
    awaited_tags_ = mask;
  }
}

Spe::SignalRead Spe::ReadSignal(int signal_register) {
  ++context_->stats.operations;
  if (signal_register < 1 || signal_register > 2) {
    Fail(absl::InvalidArgumentError(
        fmt::format("signal rule: register {}; an SPE has registers 1 and 2", signal_register)));
    return {this, 0};
  }
  return {this, signal_register - 1};
}

void Spe::SetSignalMode(int signal_register, SignalMode mode) {
  PERCS_CHECK(signal_register == 1 || signal_register == 2);
  signals_[signal_register - 1].SetMode(mode);
}

void Spe::AwaitSignal(std::coroutine_handle<> h, int index) {
  Suspend(h);
  if (state_ == State::kFailed) return;
  if (signals_[index].waiting()) {
    WakeAt(clock_ + context_->parameters.signal_read);
  } else {
    waiting_ = Waiting::kSignal;
    awaited_signal_ = index;
  }
}

void Spe::OnSignal(int signal_register, std::uint32_t value) {
  signals_[signal_register - 1].Arrive(value);
  if (waiting_ != Waiting::kSignal || awaited_signal_ != signal_register - 1) return;
  if (state_ != State::kWaiting) return;
  waiting_ = Waiting::kNothing;
  WakeAfter(context_->parameters.signal_read);
}

void Spe::AwaitStore(std::coroutine_handle<> h, const std::string* what) {
  Suspend(h);
  waiting_ = Waiting::kStore;
  awaited_store_ = what;
}

void Spe::OnStored() {
  if (waiting_ != Waiting::kStore || state_ != State::kWaiting) return;
  waiting_ = Waiting::kNothing;
  WakeAfter(0);
}

Processor::Slow Spe::ReadInMbox() {
  Operation op;
  op.kind = Operation::Kind::kMailboxRead;
  op.mailbox = &inbound_;
  return Ask(op, context_->parameters.mailbox_access, "a message in its inbound mailbox");
}

Processor::Slow Spe::Write(Mailbox& mailbox, std::uint32_t value, const char* waits_for) {
  Operation op;
  op.kind = Operation::Kind::kMailboxWrite;
  op.mailbox = &mailbox;
  op.operand = value;
  return Ask(op, context_->parameters.mailbox_access, waits_for);
}

Processor::Slow Spe::WriteOutMbox(std::uint32_t value) {
  return Write(outbound_, value, "room in its outbound mailbox");
}

Processor::Slow Spe::WriteOutIntrMbox(std::uint32_t value) {
  return Write(outbound_interrupt_, value, "room in its outbound interrupt mailbox");
}

Processor::Slow Spe::WriteInMbox(int target_spe, std::uint32_t value) {
  Operation op;
  if (target_spe < 0 || target_spe >= kSpes || target_spe == index()) {
    Fail(absl::InvalidArgumentError(
        fmt::format("mailbox rule: {} writes to SPE {}; the target is another one of 0 to {}",
                    name(), target_spe, kSpes - 1)));
  } else if (context_->spes_down & (1u << target_spe)) {
    Fail(absl::InvalidArgumentError(fmt::format("target rule: SPE {} is down", target_spe)));
  } else {
    op.kind = Operation::Kind::kMailboxWrite;
    op.mailbox = &other(target_spe).inbound();
    op.operand = value;
  }
  return Ask(op, context_->parameters.mailbox_send, "room in another SPE's inbound mailbox");
}

Processor::Slow Spe::Atomic(AtomicOp atomic, EffectiveAddress ea, std::uint32_t operand,
                            std::uint32_t comparand) {
  return AskAtomic(atomic, *memory_, ea, operand, comparand);
}

std::string Spe::WaitsFor() const {
  if (queue_full_) return "room in the queue of its MFC";
  switch (waiting_) {
    case Waiting::kTagsAll:
    case Waiting::kTagsAny:
      return fmt::format("DMA of tags {:#x}", awaited_tags_ & mfc_.outstanding());
    case Waiting::kSignal:
      return fmt::format("signal register {}", awaited_signal_ + 1);
    case Waiting::kStore:
      return *awaited_store_;
    case Waiting::kNothing:
      return Processor::WaitsFor();
  }
  return {};
}

void Spe::GoDown() {
  Processor::GoDown();
  context_->spes_down |= 1u << index();
  queue_full_ = false;
  mfc_.GoDown();
}

}  // namespace percs::cell
