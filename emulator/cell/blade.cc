#include "emulator/cell/blade.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fmt/format.h"

namespace percs::cell {

absl::StatusOr<std::unique_ptr<Blade>> Blade::Create(const BladeParameters& parameters) {
  if (absl::Status s = CheckBladeParameters(parameters); !s.ok()) return s;
  return std::unique_ptr<Blade>(new Blade(parameters));
}

Blade::Blade(const BladeParameters& parameters)
    : context_(parameters),
      memory_(parameters.memory_bytes),
      buses_{Eib(0, &context_), Eib(1, &context_)},
      links_{ChipLink(0, &context_, &buses_[1]), ChipLink(1, &context_, &buses_[0])} {
  for (int c = 0; c < kCells; ++c) buses_[c].Connect(&links_[c]);
  for (int i = 0; i < kSpes; ++i) {
    spe_storage_.push_back(std::make_unique<Spe>(
        i, &context_, std::array<Eib*, kCells>{&buses_[0], &buses_[1]}, &memory_, &spes_));
    spes_[i] = spe_storage_.back().get();
  }
  for (int c = 0; c < kCells; ++c) {
    ppe_storage_.push_back(std::make_unique<Ppe>(c, &context_, &memory_, &spes_));
    ppes_[c] = ppe_storage_.back().get();
  }
}

absl::Status Blade::RunSpe(int spe, SpeProgram program, Time at) {
  if (spe < 0 || spe >= kSpes) {
    return absl::InvalidArgumentError(
        fmt::format("SPE {} does not exist; a blade has SPEs 0 to {}", spe, kSpes - 1));
  }
  const Processor::State state = spes_[spe]->state();
  if (spes_[spe]->unfinished() || state == Processor::State::kDown) {
    return absl::FailedPreconditionError(fmt::format(
        "SPE {} {}", spe, state == Processor::State::kDown ? "is down" : "already runs a program"));
  }
  spes_[spe]->Run(std::move(program), at);
  return absl::OkStatus();
}

absl::Status Blade::RunPpe(int cell, PpeProgram program, Time at) {
  if (cell < 0 || cell >= kCells) {
    return absl::InvalidArgumentError(
        fmt::format("PPE {} does not exist; a blade has PPEs 0 to {}", cell, kCells - 1));
  }
  if (ppes_[cell]->unfinished()) {
    return absl::FailedPreconditionError(fmt::format("PPE {} already runs a program", cell));
  }
  ppes_[cell]->Run(std::move(program), at);
  return absl::OkStatus();
}

void Blade::Run(Time end) {
  EventQueue& queue = context_.queue;
  while (queue.next_time() < end) {
    const Event event = queue.Pop();
    context_.now = event.time;
    Dispatch(event);
    const bool more_inputs =
        queue.next_time() == context_.now &&
        (queue.next_key() >> 56) < static_cast<std::uint64_t>(EventClass::kArbitration);
    if (more_inputs) continue;
    for (Eib& bus : buses_) {
      if (bus.dirty()) bus.Arbitrate();
    }
  }
}

void Blade::Dispatch(const Event& event) {
  switch (event.key.event_class()) {
    case EventClass::kHfi:
      event.object<Processor>()->Resume();
      return;
    case EventClass::kTimer:
      OnTimer(event);
      return;
    case EventClass::kFlit: {
      auto* const transfer = event.object<Transfer>();
      transfer->mfc->OnDone(transfer);
      return;
    }
    case EventClass::kLink:
      links_[event.key.port()].OnArrival(event.object<Transfer>(),
                                         static_cast<int>(event.key.detail()), event.key.vc() != 0);
      return;
    case EventClass::kCommand:
      if (event.key.port() == 0) {
        std::exchange(actions_[event.data], nullptr)();
      } else {
        ppes_[event.key.port() - 1]->OnEvent(event.data);
      }
      return;
    default:
      PERCS_CHECK(false);
  }
}

void Blade::OnTimer(const Event& event) {
  switch (static_cast<BladeTimer>(event.key.detail())) {
    case BladeTimer::kRequest: {
      auto* const transfer = event.object<Transfer>();
      transfer->mfc->OnRequest(transfer);
      return;
    }
    case BladeTimer::kOperation:
      Perform(event.object<Processor>());
      return;
    case BladeTimer::kBusRetry:
      buses_[event.key.port() - 200].OnRetry();
      return;
  }
}

void Blade::Perform(Processor* processor) {
  if (!processor->unfinished()) return;
  const Operation& op = processor->operation();
  switch (op.kind) {
    case Operation::Kind::kNone:
      return;
    case Operation::Kind::kMailboxRead:
      op.mailbox->Read(processor);
      return;
    case Operation::Kind::kMailboxWrite:
      ++context_.stats.mailbox_messages;
      context_.Fold(0x400 + static_cast<std::uint64_t>(processor->index()), op.operand);
      op.mailbox->Write(processor, op.operand);
      return;
    case Operation::Kind::kSignal:
      ++context_.stats.signals;
      context_.Fold(0x500 + static_cast<std::uint64_t>(op.target_spe), op.operand);
      spes_[op.target_spe]->OnSignal(op.signal_register, op.operand);
      processor->FinishOperation(0);
      return;
    case Operation::Kind::kAtomic:
      PerformAtomic(processor);
      return;
  }
}

// The operation takes effect in the order in which requests reach the memory; its cache line makes
// the next one wait.
void Blade::PerformAtomic(Processor* processor) {
  const Operation& op = processor->operation();
  const std::uint32_t old = memory_.Load32(op.ea);
  std::uint32_t value = old;
  switch (op.atomic) {
    case AtomicOp::kAdd:
      value = old + op.operand;
      break;
    case AtomicOp::kAnd:
      value = old & op.operand;
      break;
    case AtomicOp::kOr:
      value = old | op.operand;
      break;
    case AtomicOp::kXor:
      value = old ^ op.operand;
      break;
    case AtomicOp::kExchange:
      value = op.operand;
      break;
    case AtomicOp::kCompareExchange:
      value = old == op.comparand ? op.operand : old;
      break;
  }
  memory_.Store32(op.ea, value);
  ++context_.stats.atomics;
  context_.Fold(0x600 + static_cast<std::uint64_t>(processor->index()), old);
  const Time service = context_.parameters.atomic_service;
  const Time start = memory_.TakeLine(op.ea, context_.now, service);
  processor->FinishOperation(old, start + service - context_.now);
}

std::vector<Processor*> Blade::processors() {
  std::vector<Processor*> all(spes_.begin(), spes_.end());
  all.insert(all.end(), ppes_.begin(), ppes_.end());
  return all;
}

std::vector<SpeInFlight> Blade::InFlight() const {
  std::vector<SpeInFlight> all;
  for (Spe* const spe : spes_) {
    SpeInFlight of = spe->mfc().InFlight();
    if (of.queued > 0 || !of.moves.empty()) all.push_back(std::move(of));
  }
  return all;
}

bool Blade::done() const {
  return std::none_of(spes_.begin(), spes_.end(), [](const Spe* s) { return s->unfinished(); }) &&
         std::none_of(ppes_.begin(), ppes_.end(), [](const Ppe* p) { return p->unfinished(); });
}

BladeResult Blade::Result() {
  BladeResult result;
  result.stats = context_.stats;
  result.last_event = context_.last_event;
  DigestStream digest = context_.digest;
  result.stats.Visit([&digest](const char*, std::uint64_t value) { digest.Add(value); });
  for (Processor* p : processors()) {
    digest.Add(static_cast<std::uint64_t>(p->state()));
    if (result.status.ok() && !p->status().ok()) result.status = p->status();
    if (p->unfinished()) {
      result.blocked.push_back(fmt::format("{} waits for {}", p->name(), p->WaitsFor()));
    }
  }
  result.digest = digest.Finish();
  return result;
}

void Blade::At(Time at, std::function<void()> action) {
  context_.queue.Push(std::max(at, context_.now),
                      EventKey(EventClass::kCommand, 0, 0, actions_.size()), actions_.size());
  actions_.push_back(std::move(action));
}

void Blade::Post(int cell, std::uint64_t token, Time at) {
  PERCS_CHECK(cell >= 0 && cell < kCells);
  context_.queue.Push(std::max(at, context_.now),
                      EventKey(EventClass::kCommand, 1 + cell, 0, token), token);
}

absl::Status Blade::FailSpe(int spe, Time at) {
  if (spe < 0 || spe >= kSpes) {
    return absl::InvalidArgumentError(
        fmt::format("SPE {} does not exist; a blade has SPEs 0 to {}", spe, kSpes - 1));
  }
  At(at, [this, spe] { spes_[spe]->GoDown(); });
  return absl::OkStatus();
}

absl::Status Blade::DegradeChipLink(double share, Time at) {
  if (!(share > 0 && share <= 1)) {
    return absl::InvalidArgumentError(
        fmt::format("share {} of the chip link's rate; it must be above 0 and at most 1", share));
  }
  At(at, [this, share] {
    for (ChipLink& link : links_) link.Degrade(share);
  });
  return absl::OkStatus();
}

absl::Status Blade::LoseRing(int cell, int ring, Time at) {
  if (cell < 0 || cell >= kCells || ring < 0 || ring >= kRings) {
    return absl::InvalidArgumentError(
        fmt::format("EIB ring {} of Cell {} does not exist; Cells 0 and 1 have rings 0 to {}", ring,
                    cell, kRings - 1));
  }
  if (rings_lost_[cell] & (1u << (ring ^ 1))) {
    return absl::FailedPreconditionError(
        fmt::format("EIB ring {} of Cell {} is the last of its direction; without it, some units "
                    "could not reach each other",
                    ring, cell));
  }
  rings_lost_[cell] |= static_cast<std::uint8_t>(1u << ring);
  At(at, [this, cell, ring] { buses_[cell].LoseRing(ring); });
  return absl::OkStatus();
}

}  // namespace percs::cell
