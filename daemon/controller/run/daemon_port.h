// How a run reaches the daemons.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "percs/v1/sync.pb.h"

namespace percs {

// THREAD: guarded by the process's lock.
class DaemonPort {
 public:
  virtual ~DaemonPort() = default;
  virtual std::unique_ptr<v1::ControllerMessage> Prepare(std::uint32_t process) = 0;
  virtual void Send(std::uint32_t process, std::unique_ptr<v1::ControllerMessage> message) = 0;
  virtual v1::Peer Describe(std::uint32_t process) const = 0;
  // A daemon has the place, and a session.
  virtual bool Present(std::uint32_t process) const = 0;
  // The session has a stream now.
  virtual bool Connected(std::uint32_t process) const = 0;
  // For a daemon that does not answer or has no connection: its name, since when, and when it is
  // lost.
  virtual std::optional<std::string> Missing(std::uint32_t process) const = 0;
};

}  // namespace percs
