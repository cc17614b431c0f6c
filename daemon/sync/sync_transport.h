// How a daemon reaches its controller: gRPC, or the simulator's network.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/stream/streams.h"
#include "percs/v1/sync.pb.h"
#include "proto/security/credentials.h"

namespace percs {

// THREAD: guarded by the process's lock, with which it also calls back.
class SyncTransport {
 public:
  using Stream = DialledStream<v1::DaemonMessage, v1::ControllerMessage>;
  using Joined = std::function<void(const absl::Status& status, const v1::JoinReply& reply)>;
  virtual ~SyncTransport() = default;

  // `done` is called once, also when no answer comes.
  virtual void Join(const v1::JoinRequest& request, Joined done) = 0;
  // A stream that waits until there is a connection.
  virtual Stream* Open() = 0;

  // Over gRPC.
  static std::unique_ptr<SyncTransport> Real(ProcessLock* lock, const std::string& controller,
                                             const Credentials& credentials);
};

}  // namespace percs
