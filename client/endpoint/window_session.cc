#include "client/endpoint/window_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "proto/process/grpc_status.h"
#include "proto/security/channel.h"
#include "proto/window/endpoint_codec.h"

namespace percs::client {
namespace {

constexpr std::chrono::milliseconds kDialAgain(50);
// Of one message to the hub.
constexpr int kOperationsAtOnce = 256;
constexpr std::size_t kBytesAtOnce = 1 << 20;
// In flight at the hub, which has room for twice that and must answer with as much in one message.
constexpr std::uint64_t kBytesUnderWayMax = 32 << 20;
constexpr std::uint64_t kAcknowledgeEvery = 16;
constexpr std::size_t kTokenBytes = 16;

// Identifies this program.
std::string NewToken() {
  std::random_device device;
  std::string token;
  while (token.size() < kTokenBytes) token.push_back(static_cast<char>(device() & 0xff));
  return token;
}

// REQUIRES: packets travel by `op`, or it changes memory of another window.
Transfer TransferOf(WindowOp op) {
  switch (op) {
    case WindowOp::kImmediateSend:
      return Transfer::kImmediateSend;
    case WindowOp::kIpSend:
      return Transfer::kIpSend;
    case WindowOp::kRdmaWrite:
      return Transfer::kRdmaWrite;
    case WindowOp::kRdmaRead:
      return Transfer::kRdmaRead;
    case WindowOp::kAtomic:
      return Transfer::kAtomic;
    default:
      return Transfer::kFifoSend;
  }
}

// Whether the same program may be let in if it dials again.
bool MayComeBack(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace

// One connection. gRPC's reactions take the session's lock; it deletes itself when gRPC is done
// with it.
class WindowSession::Stream final : public grpc::ClientBidiReactor<v1::FromProgram, v1::FromHub> {
 public:
  explicit Stream(WindowSession* session) : session_(session) { context_.set_wait_for_ready(true); }
  grpc::ClientContext* context() { return &context_; }
  void Start(std::shared_ptr<v1::FromProgram> hello) {
    StartRead(&in_);
    Write(std::move(hello));
    StartCall();
  }
  void Write(std::shared_ptr<v1::FromProgram> message) {
    out_ = std::move(message);
    StartWrite(out_.get());
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    const Lock lock(session_->mutex_);
    if (!ok) {
      // OnDone has the reason. From here on gRPC may be done with this at any time: no write may
      // begin.
      if (session_->stream_ == this) session_->stream_ready_ = false;
      return;
    }
    if (session_->stream_ == this) {
      if (in_.has_hello()) {
        session_->OnHello(in_.hello());
      } else {
        session_->OnMessage(in_);
      }
    }
    StartRead(&in_);
  }
  void OnWriteDone(bool ok) override {
    const Lock lock(session_->mutex_);
    if (!ok || session_->stream_ != this) return;
    session_->writing_ = false;
    session_->Pump();
  }
  void OnDone(const grpc::Status& status) override {
    WindowSession* const session = session_;
    {
      const Lock lock(session->mutex_);
      if (session->stream_ == this) session->OnStreamEnded(status);
    }
    delete this;
    // Only now may the session go: the context has a share in the channel, whose last share must
    // not be given up on a thread of gRPC.
    const Lock lock(session->mutex_);
    --session->streams_;
    session->changed_.notify_all();
  }

 private:
  WindowSession* const session_;
  grpc::ClientContext context_;
  std::shared_ptr<v1::FromProgram> out_;
  v1::FromHub in_;
};

WindowSession::WindowSession(EndpointOptions options, std::string address,
                             const Credentials& credentials)
    : options_(std::move(options)),
      address_(std::move(address)),
      token_(NewToken()),
      stub_(v1::Endpoint::NewStub(MakeChannel(address_, credentials, Role::kDaemon))),
      thread_([this] { RunThread(); }) {}

WindowSession::~WindowSession() { Close(); }

void WindowSession::Close() {
  {
    Lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
    Fail(absl::CancelledError("the endpoint was closed"));
    if (stream_ != nullptr) stream_->Cancel();
    while (streams_ != 0) changed_.wait(mutex_);
    work_.notify_all();
  }
  thread_.join();
}

// --- The stream ----------------------------------------------------------------------------------

void WindowSession::Dial() {
  if (stream_ != nullptr || ended_ || closing_) return;
  auto hello = std::make_shared<v1::FromProgram>();
  v1::EndpointHello* h = hello->mutable_hello();
  h->set_version(kEndpointVersion);
  h->set_received(received_);
  h->set_token(token_);
  h->set_resume(heard_);
  h->set_hub(options_.hub);
  h->set_job(options_.job);
  if (options_.window != kAnyWindow) h->set_window(options_.window);
  h->set_mode(options_.mode == Mode::kExclusive ? v1::ATTACH_MODE_EXCLUSIVE
                                                : v1::ATTACH_MODE_SHARED);
  h->set_name(options_.name);
  h->set_keep_wall_ms(static_cast<std::uint64_t>(options_.reattach.count()));
  stream_ = new Stream(this);
  ++streams_;
  ++dials_;
  writing_ = true;
  stream_ready_ = false;
  unsent_ = 0;
  stub_->async()->Attach(stream_->context(), stream_);
  stream_->Start(std::move(hello));
}

void WindowSession::OnHello(const v1::EndpointHello& hello) {
  heard_ = true;
  while (!sent_.empty() && sent_.front().sequence <= hello.received()) sent_.pop_front();
  unsent_ = 0;
  stream_ready_ = true;
  give_up_at_.reset();
  Pump();
}

void WindowSession::OnStreamEnded(const grpc::Status& status) {
  stream_ = nullptr;
  stream_ready_ = writing_ = false;
  changed_.notify_all();
  if (ended_ || closing_) return;
  last_trouble_ = status.error_message();
  const bool knocked_at_the_wrong_door =
      !heard_ && status.error_code() != grpc::StatusCode::UNAVAILABLE;
  const bool limited = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && heard_;
  if (knocked_at_the_wrong_door || (!MayComeBack(status.error_code()) && !limited)) {
    if (detaching_ && status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return Fail(absl::AbortedError("the window was detached"));
    }
    const std::string where = fmt::format("{} at {}", hub(), address_);
    return Fail(status.ok() ? absl::UnavailableError(where + ": the stream was closed")
                            : FromGrpc(status, where));
  }
  const Clock::time_point now = Clock::now();
  dial_at_ = now + kDialAgain;
  if (!give_up_at_) give_up_at_ = now + options_.reattach;
  work_.notify_all();
}

bool WindowSession::MaySend(const Waiting& next) const {
  if (!next.counts) return true;
  return counted_ < options_.under_way &&
         (counted_ == 0 || bytes_under_way_ + next.bytes <= kBytesUnderWayMax);
}

std::shared_ptr<v1::FromProgram> WindowSession::BuildMessage() {
  auto message = std::make_shared<v1::FromProgram>();
  std::size_t bytes = 0;
  while (attached_ && !waiting_.empty() && MaySend(waiting_.front()) &&
         message->operations_size() < kOperationsAtOnce && bytes < kBytesAtOnce) {
    Waiting& next = waiting_.front();
    next.message.set_id(++last_id_);
    bytes += next.message.data().size();
    counted_ += next.counts;
    bytes_under_way_ += next.bytes;
    const bool returns = next.message.op() == v1::EndpointOperation::OP_RETURN_SPACE;
    under_way_[last_id_] = {std::move(next.state), next.offset, next.counts, next.bytes,
                            returns ? next.message.count() : 0};
    message->add_operations()->Swap(&next.message);
    waiting_.pop_front();
  }
  if (wants_to_wait_ && (waiting_.empty() || !MaySend(waiting_.front()))) {
    wants_to_wait_ = false;
    waits_after_ = events_;
    message->set_waits_after(events_);
  }
  if (detaching_ && !detach_sent_) {
    detach_sent_ = true;
    message->set_detach(true);
  }
  const bool empty =
      message->operations().empty() && !message->has_waits_after() && !message->detach();
  return empty ? nullptr : message;
}

void WindowSession::Pump() {
  if (stream_ == nullptr || !stream_ready_ || writing_) return;
  if (unsent_ == sent_.size()) {
    if (auto message = BuildMessage()) {
      message->set_sequence(++sequence_);
      sent_.push_back({std::move(message), sequence_});
    }
  }
  std::shared_ptr<v1::FromProgram> next;
  if (unsent_ < sent_.size()) {
    next = sent_[unsent_++].message;
  } else if (received_ - acknowledged_ >= kAcknowledgeEvery) {
    next = std::make_shared<v1::FromProgram>();
  } else {
    return;
  }
  acknowledged_ = received_;
  next->set_acknowledged(received_);
  writing_ = true;
  stream_->Write(std::move(next));
}

// --- What comes ----------------------------------------------------------------------------------

void WindowSession::OnMessage(const v1::FromHub& message) {
  while (!sent_.empty() && sent_.front().sequence <= message.acknowledged()) {
    sent_.pop_front();
    if (unsent_ > 0) --unsent_;
  }
  if (message.sequence() == 0 || message.sequence() <= received_) return Pump();
  if (message.sequence() != received_ + 1)
    return stream_->Cancel();  // dials again, and receives what is missing
  ++received_;
  now_ = std::max(now_, message.issued_at());
  if (message.has_attached()) {
    attached_ = true;
    node_ = message.attached().node();
    window_ = static_cast<WindowId>(message.attached().window());
    now_ = std::max(now_, message.attached().at());
  }
  for (const v1::EndpointRefusal& refusal : message.refusals()) {
    Completion completion;
    completion.status =
        absl::Status(static_cast<absl::StatusCode>(refusal.code()), refusal.message());
    Complete(refusal.id(), std::move(completion));
  }
  for (const v1::EndpointEvent& event : message.events()) OnEvent(event);
  events_ = std::max(events_, message.events_so_far());
  if (message.has_ended()) {
    const v1::EndpointEnded& ended = message.ended();
    Fail(ended.code() == 0
             ? absl::AbortedError("the window was detached")
             : absl::Status(static_cast<absl::StatusCode>(ended.code()),
                            fmt::format("{} window {}: {}", hub(), window_, ended.message())));
  }
  changed_.notify_all();
  Pump();
}

void WindowSession::OnEvent(const v1::EndpointEvent& message) {
  auto event = EventFromProto(message);
  if (!event.ok()) return Fail(event.status());
  now_ = std::max(now_, event->at);
  switch (event->kind) {
    case WindowEvent::Kind::kCompletion: {
      Completion completion;
      completion.status = ToStatus(event->op, event->status);
      if (event->status != WindowStatus::kOk) completion.reason = WindowStatusName(event->status);
      completion.at = event->at;
      completion.bytes = event->bytes;
      completion.peer = event->peer;
      completion.peer_window = event->peer_window;
      completion.data = std::move(event->data);
      completion.values = std::move(event->values);
      return Complete(event->id, std::move(completion));
    }
    case WindowEvent::Kind::kReceived: {
      Packet packet{event->at,          TransferOf(event->op), event->peer,
                    event->peer_window, event->offset,         std::move(event->data)};
      if (!on_packet_) return packets_.push_back(std::move(packet));
      TookPacket();
      return Post(
          [call = on_packet_, packet = std::move(packet)]() mutable { call(std::move(packet)); });
    }
    case WindowEvent::Kind::kNotification: {
      const Notification notification{event->at, TransferOf(event->op), event->peer,
                                      event->peer_window, event->bytes};
      if (!on_notification_) return notifications_.push_back(notification);
      return Post([call = on_notification_, notification] { call(notification); });
    }
  }
}

// Slots of the receive FIFO go back many at a time: each time is an operation.
void WindowSession::TookPacket() {
  if (++space_to_return_ < std::max<std::uint32_t>(options_.receive_slots / 2, 1)) return;
  Waiting back;
  back.message.set_op(v1::EndpointOperation::OP_RETURN_SPACE);
  back.message.set_count(std::exchange(space_to_return_, 0));
  back.counts = false;
  waiting_.push_front(std::move(back));
}

void WindowSession::Complete(std::uint64_t id, Completion completion) {
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) return;
  const UnderWay done = std::move(found->second);
  under_way_.erase(found);
  counted_ -= done.counts;
  bytes_under_way_ -= done.bytes;
  // Refused, because nothing more can be journalled: the slots are returned later, with the next
  // ones.
  if (!completion.status.ok()) space_to_return_ += done.slots;
  if (done.state) FinishPiece(done.state, done.offset, std::move(completion));
}

void WindowSession::FinishPiece(const State& state, std::uint64_t offset, Completion piece) {
  const MutexLock guard(state->mutex);
  if (state->done) return;
  Completion& whole = state->completion;
  if (whole.status.ok() && !piece.status.ok()) {
    whole.status = piece.status;
    whole.reason = piece.reason;
  }
  whole.at = std::max(whole.at, piece.at);
  whole.bytes += piece.bytes;
  whole.peer = piece.peer;
  whole.peer_window = piece.peer_window;
  if (offset == 0 && whole.data.empty()) {
    whole.data = std::move(piece.data);
  } else if (!piece.data.empty()) {
    whole.data.resize(std::max<std::size_t>(whole.data.size(), offset + piece.data.size()));
    std::copy(piece.data.begin(), piece.data.end(),
              whole.data.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  whole.values.insert(whole.values.end(), piece.values.begin(), piece.values.end());
  if (--state->pieces > 0) return;
  state->done = true;
  if (state->then) {
    Post([then = std::move(state->then), done = state->completion] { then(done); });
  }
  changed_.notify_all();
}

void WindowSession::FinishAll(const State& state, const absl::Status& why) {
  if (!state) return;
  {
    const MutexLock guard(state->mutex);
    if (state->done) return;
    state->pieces = 1;
    state->completion = {};
  }
  Completion completion;
  completion.status = why;
  FinishPiece(state, 0, std::move(completion));
}

void WindowSession::Fail(const absl::Status& why) {
  if (ended_) return;
  ended_ = why;
  for (const auto& [id, operation] : std::exchange(under_way_, {})) FinishAll(operation.state, why);
  for (const Waiting& operation : std::exchange(waiting_, {})) FinishAll(operation.state, why);
  counted_ = 0;
  bytes_under_way_ = 0;
  sent_.clear();
  unsent_ = 0;
  dial_at_.reset();
  give_up_at_.reset();
  if (stream_ != nullptr) stream_->Cancel();
  changed_.notify_all();
}

// --- The thread ----------------------------------------------------------------------------------

void WindowSession::Post(std::function<void()> callback) {
  callbacks_.push_back(std::move(callback));
  work_.notify_all();
}

void WindowSession::RunThread() {
  Lock lock(mutex_);
  while (true) {
    if (!callbacks_.empty()) {
      const std::function<void()> callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      in_callback_ = true;
      lock.unlock();
      callback();
      lock.lock();
      in_callback_ = false;
      changed_.notify_all();
      continue;
    }
    if (closing_) return;
    const Clock::time_point now = Clock::now();
    if (give_up_at_ && now >= *give_up_at_) {
      Fail(absl::UnavailableError(fmt::format(
          "{}: its percsd at {} does not answer{}{}; if the percsd has exited, the hub is lost",
          hub(), address_, last_trouble_.empty() ? "" : ": ", last_trouble_)));
      continue;
    }
    if (dial_at_ && now >= *dial_at_) {
      dial_at_.reset();
      Dial();
      continue;
    }
    const Clock::time_point never = Clock::time_point::max();
    const Clock::time_point next = std::min(dial_at_.value_or(never), give_up_at_.value_or(never));
    if (next == never) {
      work_.wait(mutex_);
    } else {
      work_.wait_until(mutex_, next);
    }
  }
}

}  // namespace percs::client
