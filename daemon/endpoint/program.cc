#include "daemon/endpoint/program.h"

#include <algorithm>
#include <utility>

#include "daemon/endpoint/programs.h"
#include "fmt/format.h"
#include "proto/window/endpoint_codec.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Most memory that a program takes that reads nothing.
constexpr std::size_t kUntakenMessagesMax = 1024;
constexpr std::uint64_t kUntakenBytesMax =
    (64 << 20) + kProgramBytesMax;  // what it asked to read comes in one message
// Memory of an event besides its data.
constexpr std::uint64_t kEventBytes = 64;
// From its last message until its stream is ended for it.
constexpr std::chrono::milliseconds kLinger(2000);

}  // namespace

Program::Program(Programs* programs, ProcessLock* lock, ProgramIdentity identity)
    : Endpoint(kUntakenMessagesMax + 1),
      programs_(programs),
      identity_(std::move(identity)),
      lost_(lock),
      linger_(lock) {
  AskForWindow(WindowOp::kReserve, kReserveId);
}

void Program::FillHello(v1::EndpointHello* hello) const {
  hello->set_version(kEndpointVersion);
  hello->set_token(identity_.token);
  hello->set_hub(identity_.hub);
  hello->set_job(identity_.job);
}

void Program::OnReached() {
  lost_.Cancel();
  if (reconnects() > 0) ++programs_->stats().reattached;
  Tell();
}

void Program::OnLost(const absl::Status&) {
  if (over()) return programs_->Remove(identity_.number);
  lost_.Set(identity_.keep, [this] {
    Release(absl::AbortedError("the program was disconnected for longer than its window is kept"));
    programs_->Submit();
  });
}

absl::Status Program::OnMessage(v1::FromProgram& message) {
  CountAcknowledged();
  if (over()) return absl::OkStatus();  // it will be notified
  absl::Status status;
  if (static_cast<std::size_t>(message.operations_size()) > kProgramOperationsMax) {
    status =
        absl::InvalidArgumentError(fmt::format("{} operations in one message; at most {}",
                                               message.operations_size(), kProgramOperationsMax));
    message.clear_operations();
  }
  for (v1::EndpointOperation& operation : *message.mutable_operations()) {
    status = Take(operation);
    if (!status.ok()) break;
  }
  if (status.ok() && message.has_waits_after()) {
    waits_after_ = std::max(waits_after_, message.waits_after());
    if (waits_after_ > events_) {
      status = absl::InvalidArgumentError(fmt::format(
          "waits_after = {}, but only {} events were sent so far", waits_after_, events_));
    }
  }
  if (!status.ok()) {
    ++programs_->stats().refused[static_cast<std::size_t>(EndpointRefusal::kMalformed)];
    Release(status);
  } else if (message.detach()) {
    Release(absl::OkStatus());
  }
  Tell();  // refusals need no virtual time
  programs_->Submit();
  return status;
}

absl::Status Program::Take(v1::EndpointOperation& message) {
  if (message.id() != taken_ + 1 || message.id() >= kReleaseId) {
    return absl::InvalidArgumentError(fmt::format(
        "operation id {} after {} operations; ids are 1, 2, ...", message.id(), taken_));
  }
  ++taken_;
  EndpointRefusal reason = EndpointRefusal::kMalformed;
  absl::Status status = Admit(message, &reason);
  if (status.ok()) {
    message.set_window(window_);
    message.set_job(identity_.job);
    message.clear_data_hash();  // is the journal's
    message.DiscardUnknownFields();
    auto operation = OperationFromProto(message);
    if (operation.ok()) {
      Ask(*std::move(operation), std::move(message));
      return absl::OkStatus();
    }
    status = operation.status();
    if (absl::IsResourceExhausted(status)) reason = EndpointRefusal::kTooLarge;
  }
  Refuse(taken_, reason, status);
  return absl::OkStatus();
}

absl::Status Program::Admit(const v1::EndpointOperation& message, EndpointRefusal* reason) const {
  if (state_ != State::kOpen) {
    *reason = EndpointRefusal::kClosed;
    return absl::FailedPreconditionError(state_ == State::kReserving
                                             ? "the window is not reserved yet; wait for `attached`"
                                             : "the window no longer belongs to the program");
  }
  if (message.op() == v1::EndpointOperation::OP_RESERVE ||
      message.op() == v1::EndpointOperation::OP_RELEASE) {
    return absl::InvalidArgumentError(
        "a program attaches and detaches; it cannot reserve or release windows");
  }
  // Slots of the receive FIFO are returned whatever else is in progress; without them nothing could
  // be received any more.
  const bool returns = message.op() == v1::EndpointOperation::OP_RETURN_SPACE;
  const std::size_t most = returns ? 2 * kProgramOperationsMax : kProgramOperationsMax;
  if (outstanding_.size() >= most || (!returns && bytes_outstanding_ > kProgramBytesMax)) {
    *reason = EndpointRefusal::kTooMany;
    return absl::ResourceExhaustedError(fmt::format(
        "{} operations with {} bytes are in flight; a program may have {} operations with {} "
        "bytes; wait for completions",
        outstanding_.size(), bytes_outstanding_, kProgramOperationsMax, kProgramBytesMax));
  }
  return absl::OkStatus();
}

Program::Bytes Program::BytesOf(const WindowOperation& operation) {
  return operation.data.size() + (operation.op == WindowOp::kReadMemory ? operation.bytes : 0) +
         operation.segments.size() * sizeof(MemorySegment) +
         operation.updates.size() * sizeof(AtomicUpdate);
}

void Program::Ask(WindowOperation operation, v1::EndpointOperation message) {
  const std::uint64_t id = operation.id;
  operation.id = identity_.number << kIdBits | id;
  message.set_id(operation.id);
  const Bytes bytes = BytesOf(operation);
  outstanding_.emplace_back(id, bytes);
  bytes_outstanding_ += bytes;
  asked_.bytes += bytes;
  programs_->stats().operation_bytes += operation.data.size();
  if (asked_.empty()) {
    asked_.message.set_node(identity_.node);
    asked_.message.set_window(state_ == State::kReserving ? identity_.window : window_);
    asked_.message.set_program(identity_.number);
  }
  *asked_.message.add_operations() = std::move(message);
  asked_.operations.push_back(std::move(operation));
}

void Program::AskForWindow(WindowOp op, std::uint64_t id) {
  WindowOperation operation;
  operation.op = op;
  operation.id = id;
  operation.window = op == WindowOp::kReserve ? identity_.window : window_;
  operation.job = identity_.job;
  v1::EndpointOperation message;
  OperationToProto(operation, &message);
  Ask(std::move(operation), std::move(message));
}

v1::FromHub& Program::Next() {
  if (!next_) next_ = session().Prepare();
  return *next_;
}

void Program::Refuse(std::uint64_t id, EndpointRefusal reason, const absl::Status& why) {
  ++programs_->stats().refused[static_cast<std::size_t>(reason)];
  v1::EndpointRefusal* refusal = Next().add_refusals();
  refusal->set_id(id);
  refusal->set_code(static_cast<std::uint32_t>(why.raw_code()));
  refusal->set_message(std::string(why.message()));
  next_bytes_ += kEventBytes + why.message().size();
  ++events_;
}

void Program::OnIssued(std::uint64_t last, Time at) {
  const std::uint64_t id = last & kReleaseId;
  if (id == kReserveId || id == kReleaseId || over()) return;
  issued_ = id;
  Next().set_issued(id);
  Next().set_issued_at(at);
}

void Program::OnEnded(std::uint64_t id) {
  const auto done = std::find_if(outstanding_.begin(), outstanding_.end(),
                                 [id](const auto& o) { return o.first == id; });
  if (done == outstanding_.end()) return;
  bytes_outstanding_ -= done->second;
  outstanding_.erase(done);
}

void Program::OnRefused(std::uint64_t process_id, const absl::Status& why) {
  if (over()) return;
  const std::uint64_t id = process_id & kReleaseId;
  OnEnded(id);
  if (id == kReserveId || id == kReleaseId) return Finish(why);
  Refuse(id, EndpointRefusal::kJournal, why);
}

void Program::OnEvent(const WindowEvent& event) {
  if (over()) return;
  const std::uint64_t id = event.id & kReleaseId;
  if (event.kind == WindowEvent::Kind::kCompletion) {
    OnEnded(id);
    if (id == kReserveId) return OnReserved(event);
    if (id == kReleaseId) return Finish(released_why_);
  }
  v1::EndpointEvent* message = Next().add_events();
  EventToProto(event, message);
  if (event.kind == WindowEvent::Kind::kCompletion) message->set_id(id);
  next_bytes_ += kEventBytes + event.data.size();
  ++events_;
  ++programs_->stats().events;
}

void Program::OnReserved(const WindowEvent& event) {
  if (event.status != WindowStatus::kOk) return Finish(ToStatus(event.op, event.status));
  window_ = event.window;
  state_ = State::kOpen;
  ++events_;
  ++programs_->stats().attached;
  v1::EndpointAttached* attached = Next().mutable_attached();
  attached->set_node(identity_.node);
  attached->set_window(window_);
  attached->set_at(event.at);
  programs_->OnOpen(*this, attached);
  if (release_wanted_) Release(released_why_);
}

void Program::CountAcknowledged() {
  while (untaken_.size() > session().unacknowledged()) {
    untaken_bytes_ -= untaken_.front();
    untaken_.pop_front();
  }
}

void Program::Tell() {
  if (!next_) return;
  CountAcknowledged();
  const bool last = next_->has_ended();
  if (!last && (untaken_.size() >= kUntakenMessagesMax - 1 ||
                untaken_bytes_ + next_bytes_ > kUntakenBytesMax)) {
    ++programs_->stats().refused[static_cast<std::size_t>(EndpointRefusal::kSlow)];
    next_ = nullptr;
    next_bytes_ = 0;
    if (state_ == State::kOpen) {
      Release(absl::ResourceExhaustedError(fmt::format(
          "the program has not read {} messages with {} bytes", untaken_.size(), untaken_bytes_)));
    }
    return;
  }
  if (!last && !connected()) return;  // one message when it is there again
  next_->set_events_so_far(events_);
  untaken_.push_back(next_bytes_);
  untaken_bytes_ += next_bytes_;
  next_bytes_ = 0;
  session().Send(std::move(next_));
  if (last) linger_.Set(kLinger, [this] { programs_->Remove(identity_.number); });
}

void Program::Release(const absl::Status& why) {
  if (state_ == State::kOver || state_ == State::kReleasing) return;
  released_why_ = why;
  if (state_ == State::kReserving) {  // it is released as soon as there is something to release
    if (!std::exchange(release_wanted_, true)) programs_->OnGivenUp();
    return;
  }
  if (!why.ok())
    spdlog::info("program {} loses window {} of {}: {}", identity_.name, window_, identity_.hub,
                 std::string(why.message()));
  state_ = State::kReleasing;
  AskForWindow(WindowOp::kRelease, kReleaseId);
}

void Program::Finish(const absl::Status& why) {
  if (over()) return;
  state_ = State::kOver;
  programs_->OnClosed(*this);
  v1::EndpointEnded* ended = Next().mutable_ended();
  ended->set_code(static_cast<std::uint32_t>(why.raw_code()));
  ended->set_message(std::string(why.message()));
  ++events_;
  outstanding_.clear();
  bytes_outstanding_ = 0;
  asked_ = {};
}

}  // namespace percs
