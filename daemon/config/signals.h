// SIGTERM and SIGINT as a call on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace percs {

// Blocks both signals in every thread started later: call before gRPC starts any.
void BlockEndSignals();

// Calls `then` once, when one of them arrives. Afterwards they have no effect while this object
// exists. After its destruction `then` does not run any more: what it uses can be destroyed.
class EndSignalWatch {
 public:
  explicit EndSignalWatch(std::function<void()> then);
  ~EndSignalWatch();
  EndSignalWatch(const EndSignalWatch&) = delete;
  EndSignalWatch& operator=(const EndSignalWatch&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace percs
