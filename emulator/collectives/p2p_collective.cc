#include "emulator/collectives/p2p_collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/base/check.h"
#include "emulator/runtime/node_runtime.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Calls use(offset in the piece's buffer, offset in the message, bytes) for every run of the piece.
template <typename Use>
void ForRuns(const Piece& piece, Use use) {
  const std::uint64_t run = piece.run == 0 ? piece.bytes : piece.run;
  std::uint64_t done = 0;
  for (std::uint64_t at = piece.offset; done < piece.bytes; at += piece.stride) {
    const std::uint64_t n = std::min(run, piece.bytes - done);
    use(at, done, n);
    done += n;
  }
}

}  // namespace

P2pCollective::P2pCollective(Rank& rank, const TaskGroup& group, const P2pAlgorithm& algorithm,
                             std::uint8_t channel)
    : P2pCollective(rank, group, algorithm, channel, rank.node().host().eager_limit) {}

P2pCollective::P2pCollective(Rank& rank, const TaskGroup& group, const P2pAlgorithm& algorithm,
                             std::uint8_t channel, std::uint64_t eager_limit)
    : rank_(rank),
      group_(group),
      algorithm_(algorithm),
      channel_(channel),
      eager_limit_(eager_limit) {
  schedule_.size = group.size;
  schedule_.me = group.IndexOf(rank.number());
  rank.node().SetEndpoint(rank, channel, this);
}

P2pCollective::~P2pCollective() { rank_.node().SetEndpoint(rank_, channel_, nullptr); }

void P2pCollective::Reset(const CollectiveCall& call) {
  PERCS_CHECK(state_ == State::kIdle);
  state_ = State::kReset;
  call_ = call;
  schedule_.Clear();
  schedule_.root = call.root;
  schedule_.bytes = call.bytes;
  algorithm_.plan(schedule_);
  if (HasData()) scratch_.resize(schedule_.scratch);
  opened_ = waiting_ = posted_ = 0;
  receiving_.assign(schedule_.phases.size(), false);
}

void P2pCollective::Start() {
  PERCS_CHECK(state_ == State::kReset);
  state_ = State::kRunning;
  const Time copies = Move(schedule_.before);
  rank_.Do<&P2pCollective::Begin>(rank_.Shared(rank_.node().host().collective_entry) + copies,
                                  this);
}

void P2pCollective::Begin(std::uint64_t) { Enter(); }

Envelope P2pCollective::EnvelopeOf(std::size_t phase) const {
  return {channel_, static_cast<std::uint16_t>(sequence_ % kSequences),
          static_cast<std::uint16_t>(phase)};
}

void P2pCollective::Enter() {
  const std::size_t phases = schedule_.phases.size();
  while (waiting_ == 0) {
    if (opened_ == phases) {
      rank_.Do<&P2pCollective::Finish>(Move(schedule_.after), this);
      return;
    }
    const std::size_t first = std::exchange(opened_, schedule_.at_once ? phases : opened_ + 1);
    for (std::size_t i = first; i < opened_; ++i) {
      const Phase& phase = schedule_.phases[i];
      receiving_[i] = phase.from != Phase::kNobody;
      waiting_ += (phase.to != Phase::kNobody) + (phase.from != Phase::kNobody);
    }
    for (std::size_t i = first; i < opened_; ++i) Open(i);
    PostNext();
  }
}

void P2pCollective::PostNext() {
  std::size_t next = opened_;
  while (next < schedule_.phases.size() && schedule_.phases[next].from == Phase::kNobody) ++next;
  if (next == schedule_.phases.size() || !schedule_.phases[next].posted_early) return;
  posted_ = next;
  const Envelope envelope = EnvelopeOf(next);
  const auto it = std::find_if(early_.begin(), early_.end(), [&](const Incoming& m) {
    return m.request && m.envelope == envelope;
  });
  if (it == early_.end()) return;
  const Incoming request = *it;
  early_.erase(it);
  Take(request);
}

void P2pCollective::Open(std::size_t number) {
  PERCS_CHECK(number < kPhases);
  const Phase& phase = schedule_.phases[number];
  if (phase.to != Phase::kNobody) {
    rank_.node().port().Send(rank_, group_.task(static_cast<std::uint32_t>(phase.to)),
                             EnvelopeOf(number), phase.send.bytes, eager_limit_, Pack(phase.send),
                             this);
  }
  if (receiving_[number]) TakeEarly(EnvelopeOf(number));
}

void P2pCollective::TakeEarly(const Envelope& envelope) {
  const auto it = std::find_if(early_.begin(), early_.end(),
                               [&](const Incoming& m) { return m.envelope == envelope; });
  if (it == early_.end()) return;
  const Incoming message = std::move(*it);
  early_.erase(it);
  Take(message);
}

bool P2pCollective::IsOf(const Incoming& message) const {
  return state_ == State::kRunning && sequence_ % kSequences == message.envelope.sequence;
}

bool P2pCollective::Receiving(const Incoming& message) const {
  return IsOf(message) && message.envelope.phase < opened_ && receiving_[message.envelope.phase];
}

void P2pCollective::OnMessage(const Incoming& message) {
  if (!Receiving(message)) {
    const bool posted = message.request && IsOf(message) && message.envelope.phase == posted_ &&
                        posted_ >= opened_ && opened_ > 0;
    if (posted) return Take(message);
    early_.push_back(message);
    return;
  }
  Take(message);
  Enter();
}

void P2pCollective::Take(const Incoming& message) {
  const std::size_t number = message.envelope.phase;
  const Phase& phase = schedule_.phases[number];
  const std::uint32_t from = group_.task(static_cast<std::uint32_t>(phase.from));
  if (message.source != from) {
    return Refuse(message,
                  fmt::format("it expects task {} here: the roots or groups disagree", from));
  }
  if (message.bytes != phase.receive.bytes) {
    return Refuse(message,
                  fmt::format("it expects {} bytes: the counts disagree", phase.receive.bytes));
  }
  if (message.request) return rank_.node().port().Accept(rank_, message);
  if (message.content) Unpack(phase.receive, *message.content, phase.take);
  const bool combines = phase.take != Phase::Take::kCopy;
  const Time time = combines ? rank_.node().host().CombineTime(message.bytes) : 0;
  if (time == 0) return Received(number);
  rank_.Do<&P2pCollective::Combined>(rank_.Shared(time), this, number);
}

void P2pCollective::Combined(std::uint64_t phase) {
  Received(phase);
  Enter();
}

void P2pCollective::Received(std::size_t phase) {
  receiving_[phase] = false;
  --waiting_;
}

void P2pCollective::OnSent(const Envelope&) {
  --waiting_;
  Enter();
}

void P2pCollective::Finish(std::uint64_t) {
  for (const Incoming& message : early_) {
    if (message.envelope.sequence == sequence_ % kSequences) {
      return Refuse(message, "it expects no message here: the roots or groups disagree");
    }
  }
  ++sequence_;
  state_ = State::kIdle;
  call_.done(call_.client);
}

// The operation stays where it is, so the run ends and says why.
void P2pCollective::Refuse(const Incoming& message, const std::string& why) {
  rank_.node().Report(absl::FailedPreconditionError(
      fmt::format("{} {} of operation {}: task {} got {} bytes from task {} in phase {}, but {}",
                  algorithm_.name, OperationName(algorithm_.operation), sequence_, rank_.number(),
                  message.bytes, message.source, message.envelope.phase, why)));
}

std::string P2pCollective::Waits() const {
  if (state_ != State::kRunning) return "";
  if (waiting_ == 0) return fmt::format("task {} ends an operation", rank_.number());
  std::size_t phase = opened_ - 1;
  for (std::size_t i = 0; i < opened_; ++i) {
    if (receiving_[i]) phase = std::min(phase, i);
  }
  return fmt::format(
      "task {} waits in phase {} of {} {} number {} for {}", rank_.number(), phase, algorithm_.name,
      OperationName(algorithm_.operation), sequence_,
      receiving_[phase]
          ? fmt::format("task {}",
                        group_.task(static_cast<std::uint32_t>(schedule_.phases[phase].from)))
          : "its own message to leave");
}

std::uint8_t* P2pCollective::At(Buffer buffer) {
  if (buffer == Buffer::kScratch) return scratch_.data();
  // An input is never written to.
  return buffer == Buffer::kInput ? const_cast<std::uint8_t*>(call_.input) : call_.output;
}

Content P2pCollective::Pack(const Piece& piece) {
  if (!HasData() || piece.bytes == 0) return nullptr;
  auto content = std::make_shared<std::vector<std::uint8_t>>(piece.bytes);
  const std::uint8_t* from = At(piece.buffer);
  ForRuns(piece, [&](std::uint64_t at, std::uint64_t done, std::uint64_t n) {
    std::memcpy(content->data() + done, from + at, n);
  });
  return content;
}

void P2pCollective::Unpack(const Piece& piece, const std::vector<std::uint8_t>& bytes,
                           Phase::Take take) {
  std::uint8_t* into = At(piece.buffer);
  ForRuns(piece, [&](std::uint64_t at, std::uint64_t done, std::uint64_t n) {
    if (take == Phase::Take::kCombineWithInput) std::memmove(into + at, call_.input + at, n);
    if (take != Phase::Take::kCopy) {
      Combine(call_.op, call_.type, n / OperandBytes(call_.type), bytes.data() + done, into + at);
    } else {
      std::memcpy(into + at, bytes.data() + done, n);
    }
  });
}

Time P2pCollective::Move(const std::vector<LocalCopy>& copies) {
  std::uint64_t moved = 0;
  for (const LocalCopy& copy : copies) {
    moved += copy.from.bytes;
    const std::uint8_t* from = HasData() ? At(copy.from.buffer) : nullptr;
    std::uint8_t* into = HasData() ? At(copy.into.buffer) : nullptr;
    if (!from || !into || copy.from.bytes == 0) continue;
    std::memmove(into + copy.into.offset, from + copy.from.offset, copy.from.bytes);
  }
  return rank_.node().host().WriteTime(moved);  // its own data
}

}  // namespace percs
