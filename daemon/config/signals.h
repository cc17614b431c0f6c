// SIGTERM and SIGINT as a call on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace percs {

// Blocks both signals in every thread started later: call before gRPC starts any.
void BlockEndSignals();

// Calls `then` when one of them comes, once. Afterwards, and as long as this is there, they do
// nothing. When it is gone, `then` is not running and never will: what it uses can go.
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
