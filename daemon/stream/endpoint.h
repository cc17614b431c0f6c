// One end of a session and the streams that carry it, one after the other. The first message each
// way is a hello with the sender and the number of messages it has received.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "daemon/stream/streams.h"

namespace percs {

template <class Out, class In>
class SessionListener;

template <class Out, class In>
class Endpoint : public std::enable_shared_from_this<Endpoint<Out, In>> {
 public:
  using Hello = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<In>().hello())>>;
  using Listener = SessionListener<Out, In>;

  explicit Endpoint(std::size_t unacknowledged_max) : session_(unacknowledged_max) {}
  virtual ~Endpoint() = default;

  Session<Out, In>& session() { return session_; }
  const Session<Out, In>& session() const { return session_; }
  bool connected() const { return session_.attached(); }
  bool has_stream() const { return stream_ != nullptr; }
  std::uint64_t reconnects() const { return attachments_ > 1 ? attachments_ - 1 : 0; }

  // A server's stream whose hello named us: replaces an older one, once that has closed.
  void Offer(Listener* listener, const Hello& hello);
  // Dialling side.
  void Begin(DialledStream<Out, In>* stream);
  // Ends the stream, as if the network had.
  void Break() {
    if (stream_ != nullptr) stream_->port()->Cancel();
  }
  // Ends the streams; nothing is reported from now on.
  void Leave();
  bool left() const { return left_; }

 protected:
  virtual void FillHello(Hello* hello) const = 0;  // all but `received`
  virtual absl::Status CheckHello(const Hello& hello) const = 0;
  virtual absl::Status OnMessage(In& message) = 0;
  virtual void OnReached() = 0;
  virtual void OnLost(const absl::Status& status) = 0;  // the stream closed and no other waits

 private:
  friend class SessionListener<Out, In>;
  void Closed(Listener* listener, const absl::Status& status);

  Session<Out, In> session_;
  Listener* stream_ = nullptr;  // open or closing
  Listener* next_ = nullptr;    // waits until stream_ has closed
  std::uint64_t attachments_ = 0;
  bool left_ = false;
};

// Decides which endpoint a server's new stream belongs to.
template <class Out, class In>
class HelloDesk {
 public:
  virtual ~HelloDesk() = default;
  // Calls endpoint->Offer(listener), now or later, or returns why not.
  virtual absl::Status OnHello(SessionListener<Out, In>* listener,
                               const typename Endpoint<Out, In>::Hello& hello) = 0;
  // The stream ended before it was offered to a session.
  virtual void OnGone(SessionListener<Out, In>* listener) = 0;
};

template <class Out, class In>
class SessionListener final : public StreamListener<In> {
 public:
  using End = Endpoint<Out, In>;
  using Hello = typename End::Hello;
  SessionListener(StreamPort<Out>* port, HelloDesk<Out, In>* desk) : port_(port), desk_(desk) {}
  SessionListener(StreamPort<Out>* port, std::shared_ptr<End> endpoint)
      : port_(port), endpoint_(std::move(endpoint)) {}

  void SendHello() {
    endpoint_->FillHello(hello_.mutable_hello());
    hello_.mutable_hello()->set_received(endpoint_->session_.keepable());
    port_->Write(hello_);
  }
  StreamPort<Out>* port() { return port_; }

  absl::Status OnMessage(In& message) override {
    if (hello_read_) return endpoint_ ? OnNumbered(message) : TooEarly();
    if (!message.has_hello()) return TooEarly();
    hello_read_ = true;
    peer_received_ = message.hello().received();
    if (desk_ != nullptr) return desk_->OnHello(this, message.hello());
    if (absl::Status status = endpoint_->CheckHello(message.hello()); !status.ok()) return status;
    return TryAttach();
  }
  absl::Status OnWritten() override {
    if (!hello_written_) {
      hello_written_ = true;
      return TryAttach();
    }
    if (attached_) endpoint_->session_.Written();
    return absl::OkStatus();
  }
  void OnBroken() override {
    broken_ = true;
    if (attached_) endpoint_->session_.Broken();
  }
  void OnClosed(const absl::Status& status) override {
    broken_ = true;
    if (attached_) endpoint_->session_.Closed();
    attached_ = false;
    if (endpoint_) {
      endpoint_->Closed(this, status);
    } else if (desk_ != nullptr) {
      desk_->OnGone(this);
    }
  }

 private:
  friend class Endpoint<Out, In>;
  static absl::Status TooEarly() {
    return absl::FailedPreconditionError("the first message of a stream must be a hello");
  }
  absl::Status OnNumbered(In& message) {
    auto fresh = endpoint_->session_.Receive(message);
    if (!fresh.ok()) return fresh.status();
    if (!*fresh || endpoint_->left_) return absl::OkStatus();
    absl::Status status = endpoint_->OnMessage(message);
    endpoint_->session_.AcknowledgeIfDue();
    return status;
  }
  absl::Status TryAttach() {
    if (!hello_read_ || !hello_written_ || broken_ || endpoint_->left_) return absl::OkStatus();
    attached_ = true;
    ++endpoint_->attachments_;
    if (absl::Status status = endpoint_->session_.Attach(port_, peer_received_); !status.ok()) {
      attached_ = false;
      return status;
    }
    endpoint_->OnReached();
    return absl::OkStatus();
  }

  StreamPort<Out>* port_;
  HelloDesk<Out, In>* desk_ = nullptr;
  std::shared_ptr<End> endpoint_;
  Out hello_;
  bool hello_written_ = false, hello_read_ = false, attached_ = false, broken_ = false;
  std::uint64_t peer_received_ = 0;
};

template <class Out, class In>
void Endpoint<Out, In>::Offer(Listener* listener, const Hello& hello) {
  listener->endpoint_ = this->shared_from_this();
  if (stream_ == nullptr) {
    stream_ = listener;
    listener->SendHello();
    return;
  }
  // The other side dials again only after its end has closed: ours is about to.
  stream_->port()->Cancel();
  if (next_ != nullptr) next_->port()->Cancel();
  next_ = listener;
}

template <class Out, class In>
void Endpoint<Out, In>::Begin(DialledStream<Out, In>* stream) {
  auto listener = std::make_unique<Listener>(stream, this->shared_from_this());
  stream_ = listener.get();
  stream_->SendHello();
  stream->Start(std::move(listener));
}

template <class Out, class In>
void Endpoint<Out, In>::Leave() {
  left_ = true;
  if (stream_ != nullptr) stream_->port()->Cancel();
  if (next_ != nullptr) next_->port()->Cancel();
}

template <class Out, class In>
void Endpoint<Out, In>::Closed(Listener* listener, const absl::Status& status) {
  if (listener == next_) next_ = nullptr;
  if (listener != stream_) return;
  stream_ = std::exchange(next_, nullptr);
  // One that has broken meanwhile takes no hello; that it is closed comes, too.
  if (stream_ != nullptr && !left_ && !stream_->broken_) return stream_->SendHello();
  if (!left_ && stream_ == nullptr) OnLost(status);
}

}  // namespace percs
