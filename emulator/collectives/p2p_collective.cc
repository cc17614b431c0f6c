#include "emulator/collectives/p2p_collective.h"

#include <algorithm>
#include <cstring>

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
  phase_ = 0;
}

void P2pCollective::Start() {
  PERCS_CHECK(state_ == State::kReset);
  state_ = State::kRunning;
  const Time copies = Move(schedule_.before);
  rank_.Do<&P2pCollective::Begin>(rank_.Shared(rank_.node().host().collective_entry) + copies,
                                  this);
}

void P2pCollective::Begin(std::uint64_t) { Enter(); }

void P2pCollective::Enter() {
  for (; phase_ < schedule_.phases.size(); ++phase_) {
    const Phase& phase = schedule_.phases[phase_];
    sending_ = phase.to != Phase::kNobody;
    receiving_ = phase.from != Phase::kNobody;
    if (!sending_ && !receiving_) continue;
    PERCS_CHECK(phase_ < kPhases);
    const Envelope envelope{channel_, static_cast<std::uint16_t>(sequence_ % kSequences),
                            static_cast<std::uint16_t>(phase_)};
    if (sending_) {
      rank_.node().port().Send(rank_, group_.task(static_cast<std::uint32_t>(phase.to)), envelope,
                               phase.send.bytes, eager_limit_, Pack(phase.send), this);
    }
    if (receiving_) TakeEarly(envelope);
    if (sending_ || receiving_) return;
  }
  rank_.Do<&P2pCollective::Finish>(Move(schedule_.after), this);
}

void P2pCollective::TakeEarly(const Envelope& envelope) {
  const auto it = std::find_if(early_.begin(), early_.end(),
                               [&](const Incoming& m) { return m.envelope == envelope; });
  if (it == early_.end()) return;
  const Incoming message = std::move(*it);
  early_.erase(it);
  Take(message);
}

void P2pCollective::OnMessage(const Incoming& message) {
  const bool expected = state_ == State::kRunning && receiving_ &&
                        phase_ == message.envelope.phase &&
                        sequence_ % kSequences == message.envelope.sequence;
  if (expected) {
    Take(message);
    StepDone();
  } else {
    early_.push_back(message);
  }
}

void P2pCollective::Take(const Incoming& message) {
  const Phase& phase = schedule_.phases[phase_];
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
  receiving_ = false;
  if (message.content) Unpack(phase.receive, *message.content, phase.take);
}

void P2pCollective::OnSent(const Envelope&) {
  sending_ = false;
  StepDone();
}

void P2pCollective::StepDone() {
  if (sending_ || receiving_) return;
  ++phase_;
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
  receiving_ = true;
  rank_.node().Report(absl::FailedPreconditionError(
      fmt::format("{} {} of operation {}: task {} got {} bytes from task {} in phase {}, but {}",
                  algorithm_.name, OperationName(algorithm_.operation), sequence_, rank_.number(),
                  message.bytes, message.source, message.envelope.phase, why)));
}

std::string P2pCollective::Waits() const {
  if (state_ != State::kRunning) return "";
  if (phase_ == schedule_.phases.size())
    return fmt::format("task {} ends an operation", rank_.number());
  const Phase& phase = schedule_.phases[phase_];
  return fmt::format(
      "task {} waits in phase {} of {} {} number {} for {}", rank_.number(), phase_,
      algorithm_.name, OperationName(algorithm_.operation), sequence_,
      receiving_ ? fmt::format("task {}", group_.task(static_cast<std::uint32_t>(phase.from)))
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
