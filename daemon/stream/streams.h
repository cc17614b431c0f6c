// gRPC streams of either side as a StreamPort: they take the process's lock, hand what happens to
// their listener and delete themselves when gRPC is done with them.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "daemon/stream/call_meter.h"
#include "daemon/stream/process_lock.h"
#include "daemon/stream/session.h"
#include "grpcpp/client_context.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/server_callback.h"
#include "proto/process/grpc_status.h"

namespace percs {

// THREAD: all calls come with the lock held.
template <class In>
class StreamListener {
 public:
  virtual ~StreamListener() = default;
  // An error ends the stream; a server's client sees it as the stream's status.
  virtual absl::Status OnMessage(In& message) = 0;
  virtual absl::Status OnWritten() = 0;  // likewise
  // The last message was read; writes would fail.
  virtual void OnBroken() = 0;
  // Nothing comes after this: the stream is gone when the call returns. OK on a server.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// A stream that this process has opened. What is written before Start leaves with it.
template <class Out, class In>
class DialledStream : public StreamPort<Out> {
 public:
  // Owns the listener, and itself from then on.
  virtual void Start(std::unique_ptr<StreamListener<In>> listener) = 0;
};

// What gRPC calls is noexcept: it would swallow what is thrown, and the conversation would stand
// still (EndWhenOutOfMemory ends the process with a message).
template <class Out, class In>
class ClientStream final : public grpc::ClientBidiReactor<Out, In>, public DialledStream<Out, In> {
 public:
  ClientStream(ProcessLock* lock) : lock_(lock) {
    lock_->Add();
    context_.set_wait_for_ready(true);
  }
  grpc::ClientContext* context() { return &context_; }
  // After the stub has bound this reactor.
  void Start(std::unique_ptr<StreamListener<In>> listener) PERCS_LOCKED override {
    listener_ = std::move(listener);
    this->StartRead(&in_);
    this->StartCall();
  }
  void Write(const Out& message) override { this->StartWrite(&message); }
  void Cancel() override { context_.TryCancel(); }

  void OnReadDone(bool ok) noexcept override {
    const LockGuard guard(lock_->mutex());
    if (!ok) return listener_->OnBroken();
    if (error_.ok()) error_ = listener_->OnMessage(in_);
    if (!error_.ok()) context_.TryCancel();
    this->StartRead(&in_);
  }
  void OnWriteDone(bool ok) noexcept override {
    const LockGuard guard(lock_->mutex());
    if (!ok) return;  // the read fails as well and OnClosed follows
    if (absl::Status status = listener_->OnWritten(); error_.ok()) error_ = status;
    if (!error_.ok()) context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) noexcept override {
    ProcessLock* const lock = lock_;
    {
      const LockGuard guard(lock->mutex());
      listener_->OnClosed(error_.ok() ? FromGrpc(status) : error_);
      listener_.reset();  // may be the last to hold its endpoint, which goes with the lock held
    }
    delete this;
    // Only now may the process end. The context has a share in the channel, and the last share in
    // gRPC's threads must not be given up on one of them: it could not wait for itself, and would
    // continue with destroyed objects.
    const LockGuard guard(lock->mutex());
    lock->Remove();
  }

 private:
  ProcessLock* lock_;
  std::unique_ptr<StreamListener<In>> listener_ PERCS_GUARDED;
  grpc::ClientContext context_;
  absl::Status error_ PERCS_GUARDED;
  In in_;
};

template <class Out, class In>
class ServerStream final : public grpc::ServerBidiReactor<In, Out>, public StreamPort<Out> {
 public:
  ServerStream(ProcessLock* lock, grpc::CallbackServerContext* context, const char* path)
      : lock_(lock), context_(context), record_(&CallsOf(path), CallType::kBidiStream) {
    lock_->Add();
  }
  // Owns the listener.
  void Start(std::unique_ptr<StreamListener<In>> listener) PERCS_LOCKED {
    listener_ = std::move(listener);
    this->StartRead(&in_);
  }
  void Write(const Out& message) PERCS_LOCKED override {
    record_.Sent();
    this->StartWrite(&message);
  }
  void Cancel() override { context_->TryCancel(); }

  void OnReadDone(bool ok) noexcept override {
    const LockGuard guard(lock_->mutex());
    if (!ok) {
      listener_->OnBroken();
      if (!finished_) End(grpc::Status::OK);
      return;
    }
    record_.Received();
    if (!finished_) {
      if (absl::Status status = listener_->OnMessage(in_); !status.ok()) {
        listener_->OnBroken();
        return End(ToGrpc(status));
      }
    }
    this->StartRead(&in_);
  }
  void OnWriteDone(bool ok) noexcept override {
    const LockGuard guard(lock_->mutex());
    if (!ok) return;
    if (const absl::Status status = listener_->OnWritten(); !status.ok()) Refuse(status);
  }
  // Ends a stream whose end is decided outside of OnMessage.
  void Refuse(const absl::Status& status) PERCS_LOCKED {
    if (finished_) return;
    listener_->OnBroken();
    End(ToGrpc(status));
  }
  void OnDone() noexcept override {
    {
      const LockGuard guard(lock_->mutex());
      listener_->OnClosed(absl::OkStatus());
      listener_.reset();
      lock_->Remove();
    }
    delete this;
  }

 private:
  void End(const grpc::Status& status) PERCS_LOCKED {
    finished_ = true;
    // A client that has disconnected gets an answer, too, but it is lost.
    record_.Ended(status.ok() && context_->IsCancelled() ? grpc::StatusCode::CANCELLED
                                                         : status.error_code());
    this->Finish(status);
  }

  ProcessLock* lock_;
  grpc::CallbackServerContext* context_;
  CallRecord record_ PERCS_GUARDED;
  std::unique_ptr<StreamListener<In>> listener_ PERCS_GUARDED;
  bool finished_ PERCS_GUARDED = false;
  In in_;
};

}  // namespace percs
