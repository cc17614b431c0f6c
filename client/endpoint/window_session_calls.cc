// The part of WindowSession that the program calls.
#include <algorithm>
#include <chrono>
#include <utility>

#include "client/endpoint/window_session.h"
#include "fmt/format.h"
#include "proto/process/grpc_status.h"
#include "proto/window/endpoint_codec.h"

namespace percs::client {
namespace {

constexpr std::chrono::milliseconds kWithdraw(1'000);

}  // namespace

std::optional<WindowSession::Clock::time_point> WindowSession::Until(
    std::optional<Duration> deadline) const {
  return Clock::now() + deadline.value_or(options_.deadline);
}

absl::Status WindowSession::WaitUntil(std::optional<Clock::time_point> until,
                                      absl::FunctionRef<bool()> there) {
  if (!there() && std::this_thread::get_id() == thread_.get_id()) {
    return absl::FailedPreconditionError(
        "a callback may not wait: the result would be delivered only after the callback returns");
  }
  while (!there()) {
    const bool idle = callbacks_.empty() && !in_callback_;
    if (options_.mode == Mode::kExclusive && attached_ && idle && waits_after_ != events_) {
      wants_to_wait_ = true;
      Pump();
    }
    if (!until) {
      changed_.wait(mutex_);
    } else if (changed_.wait_until(mutex_, *until) == std::cv_status::timeout && !there()) {
      wants_to_wait_ = false;
      return absl::DeadlineExceededError("the deadline passed; the operation continues");
    }
  }
  wants_to_wait_ = false;
  return absl::OkStatus();
}

absl::Status WindowSession::Open(Clock::time_point until) {
  Lock lock(mutex_);
  give_up_at_ = until;
  Dial();
  work_.notify_all();
  const absl::Status status = WaitUntil(
      until, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return attached_ || ended_; });
  if (!status.ok()) {
    lock.unlock();
    Withdraw();
    return status;
  }
  return ended_ ? *ended_ : absl::OkStatus();
}

// The hub has to know that no call waits for the window any more, or it would count for
// `--wait-endpoints`.
void WindowSession::Withdraw() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kWithdraw);
  v1::DetachRequest request;
  v1::DetachReply reply;
  request.set_token(token_);
  stub_->Detach(&context, request, &reply)
      .error_code();  // a hub that does not answer gives it up by itself
}

Pending WindowSession::Ask(const std::vector<WindowOperation>& operations) {
  const auto state =
      std::make_shared<PendingState>(weak_from_this(), static_cast<int>(operations.size()));
  const Lock lock(mutex_);
  if (ended_ || detaching_) {
    FinishAll(state, ended_ ? *ended_ : absl::AbortedError("the window is being detached"));
    return Pending(state);
  }
  std::uint64_t offset = 0;
  for (const WindowOperation& operation : operations) {
    Waiting& next = waiting_.emplace_back();
    OperationToProto(operation, &next.message);
    next.state = state;
    next.offset = offset;
    next.counts = operation.op != WindowOp::kIpReceive;
    next.bytes =
        operation.data.size() + (operation.op == WindowOp::kReadMemory ? operation.bytes : 0);
    if (operation.op == WindowOp::kReadMemory) offset += operation.bytes;
  }
  Pump();
  return Pending(state);
}

void WindowSession::Cancel(const State& state) {
  const Lock lock(mutex_);
  std::erase_if(waiting_, [&](const Waiting& operation) { return operation.state == state; });
  for (auto& [id, operation] : under_way_) {
    if (operation.state == state) operation.state = nullptr;
  }
  FinishAll(state,
            absl::CancelledError("cancelled; operations already sent continue in the fabric"));
}

void WindowSession::Then(const State& state, std::function<void(const Completion&)> then) {
  const Lock lock(mutex_);
  const MutexLock guard(state->mutex);
  if (!state->done) {
    state->then = std::move(then);
  } else {
    Post([then = std::move(then), completion = state->completion] { then(completion); });
  }
}

absl::Status WindowSession::Wait(const State& state, std::optional<Duration> deadline) {
  Lock lock(mutex_);
  return WaitUntil(Until(deadline), [&] {
    const MutexLock guard(state->mutex);
    return state->done;
  });
}

absl::Status WindowSession::WaitAll(std::optional<Duration> deadline) {
  Lock lock(mutex_);
  const absl::Status status =
      WaitUntil(Until(deadline), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        const auto asked = [](const auto& operation) { return operation.state != nullptr; };
        return std::none_of(waiting_.begin(), waiting_.end(), asked) &&
               std::none_of(under_way_.begin(), under_way_.end(),
                            [&](const auto& entry) { return asked(entry.second); });
      });
  return status.ok() && ended_ ? *ended_ : status;
}

absl::StatusOr<Packet> WindowSession::Receive(std::optional<Duration> deadline) {
  Lock lock(mutex_);
  const absl::Status status = WaitUntil(
      Until(deadline),
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !packets_.empty() || ended_; });
  if (!status.ok()) return status;
  if (packets_.empty()) return *ended_;
  Packet packet = std::move(packets_.front());
  packets_.pop_front();
  TookPacket();
  Pump();
  return packet;
}

absl::StatusOr<Notification> WindowSession::WaitNotification(std::optional<Duration> deadline) {
  Lock lock(mutex_);
  const absl::Status status = WaitUntil(
      Until(deadline),
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !notifications_.empty() || ended_; });
  if (!status.ok()) return status;
  if (notifications_.empty()) return *ended_;
  const Notification notification = notifications_.front();
  notifications_.pop_front();
  return notification;
}

void WindowSession::OnPacket(std::function<void(Packet)> callback) {
  const Lock lock(mutex_);
  on_packet_ = std::move(callback);
  for (Packet& packet : std::exchange(packets_, {})) {
    TookPacket();
    Post([call = on_packet_, packet = std::move(packet)]() mutable { call(std::move(packet)); });
  }
  Pump();
}

void WindowSession::OnNotification(std::function<void(Notification)> callback) {
  const Lock lock(mutex_);
  on_notification_ = std::move(callback);
  for (const Notification& notification : std::exchange(notifications_, {})) {
    Post([call = on_notification_, notification] { call(notification); });
  }
}

absl::Status WindowSession::Detach(Clock::time_point until) {
  Lock lock(mutex_);
  if (!ended_ && !detaching_) {
    detaching_ = true;
    for (const Waiting& operation : std::exchange(waiting_, {})) {
      FinishAll(operation.state, absl::AbortedError("the window is being detached"));
    }
    Pump();
  }
  const absl::Status status = WaitUntil(
      until, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_.has_value(); });
  if (!status.ok()) return status;
  return absl::IsAborted(*ended_) ? absl::OkStatus() : *ended_;
}

absl::StatusOr<NodeId> WindowSession::FindNode(const std::string& name) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options_.deadline);
  v1::FindNodesRequest request;
  v1::FindNodesReply reply;
  request.add_names(name);
  const grpc::Status status = stub_->FindNodes(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status, fmt::format("the percsd at {}", address_));
  if (reply.nodes_size() != 1)
    return absl::InternalError("the percsd answered with another number of nodes");
  return reply.nodes(0);
}

NodeId WindowSession::node() const {
  const Lock lock(mutex_);
  return node_;
}

WindowId WindowSession::window() const {
  const Lock lock(mutex_);
  return window_;
}

Time WindowSession::now() const {
  const Lock lock(mutex_);
  return now_;
}

absl::Status WindowSession::status() const {
  const Lock lock(mutex_);
  return ended_ ? *ended_ : absl::OkStatus();
}

std::uint64_t WindowSession::reconnects() const {
  const Lock lock(mutex_);
  return dials_ > 0 ? dials_ - 1 : 0;
}

}  // namespace percs::client
