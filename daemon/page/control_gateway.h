// Methods of the Control service by name, with their messages as JSON (protobuf's mapping). They go
// through gRPC inside this process, so that callers get the same checks, code and errors as
// percsctl.
//
// THREAD: may be called from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/process/mutex.h"

namespace percs {

class ControlGateway {
 public:
  using Done = std::function<void(absl::StatusOr<std::string> json)>;

  explicit ControlGateway(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
  ~ControlGateway() { Cancel(); }

  // Whether there is a method of this name with one request and one answer. NOT_FOUND lists some.
  static absl::Status CheckMethod(const std::string& method);
  // REQUIRES: CheckMethod. `json` is the request, "" for an empty one. Calls back once, from a
  // thread of gRPC's or before it returns.
  void Call(const std::string& method, const std::string& json, Done done);
  // Ends all calls under way and those to come, and returns when all have called back.
  void Cancel();

 private:
  struct Pending;
  void Finish(Pending* pending, absl::StatusOr<std::string> json);

  const std::shared_ptr<grpc::Channel> channel_;
  Mutex mutex_;
  std::condition_variable_any none_;
  std::set<grpc::ClientContext*> under_way_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace percs
