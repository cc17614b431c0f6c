// A gRPC service of something that the process's lock guards.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "daemon/stream/endpoint.h"
#include "daemon/stream/process_lock.h"
#include "daemon/stream/streams.h"
#include "grpcpp/grpcpp.h"
#include "proto/process/grpc_status.h"

namespace percs {

// `Base`: the callback service that protoc wrote. Its methods take the lock.
template <typename Base, typename Owner>
class LockedService : public Base {
 public:
  // `admit`: whether a peer, as gRPC names it, may make another request. THREAD: any.
  LockedService(ProcessLock* lock, std::function<absl::Status(const std::string& peer)> admit,
                Owner* owner)
      : lock_(lock), admit_(std::move(admit)), owner_(owner) {}

 protected:
  // Of a unary method: what `body` returns, with the lock held; what `admit` says of the caller if
  // it is refused.
  template <typename Body>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, Body body) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::Status status = admit_(context->peer());
    if (status.ok()) {
      const LockGuard guard(lock_->mutex());
      status = body();
    }
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

  // Of a method that opens a stream for a session. `path`: of the method, for the call's meter.
  template <typename Out, typename In>
  grpc::ServerBidiReactor<In, Out>* Open(grpc::CallbackServerContext* context, const char* path) {
    const absl::Status admitted = admit_(context->peer());
    const LockGuard guard(lock_->mutex());
    auto* stream = new ServerStream<Out, In>(lock_, context, path);
    stream->Start(std::make_unique<SessionListener<Out, In>>(stream, owner_));
    if (!admitted.ok()) stream->Refuse(admitted);
    return stream;
  }

  ProcessLock* const lock_;
  const std::function<absl::Status(const std::string& peer)> admit_;
  Owner* const owner_ PERCS_PT_GUARDED;
};

}  // namespace percs
