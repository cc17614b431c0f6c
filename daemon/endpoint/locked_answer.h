// How the unary methods of a percsd's services for programs answer.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "daemon/stream/process_lock.h"
#include "grpcpp/grpcpp.h"
#include "proto/process/grpc_status.h"

namespace percs {

// What `body` returns, with the process lock held; what `admit` says of the caller if it is
// refused.
template <typename Body>
grpc::ServerUnaryReactor* AnswerLocked(
    ProcessLock* lock, const std::function<absl::Status(const std::string& peer)>& admit,
    grpc::CallbackServerContext* context, Body body) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::Status status = admit(context->peer());
  if (status.ok()) {
    const LockGuard guard(lock->mutex());
    status = body();
  }
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace percs
