#include "daemon/config/signals.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace percs {
namespace {

sigset_t EndSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void BlockEndSignals() {
  const sigset_t set = EndSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

EndSignalWatch::EndSignalWatch(std::function<void()> then)
    : thread_([this, then = std::move(then)] {
        const sigset_t set = EndSignals();
        int signal = 0;
        while (sigwait(&set, &signal) != 0) {
        }
        if (!over_) then();
      }) {}

EndSignalWatch::~EndSignalWatch() {
  over_ = true;
  // Wakes it if nothing did. The signal is blocked, so that it ends nothing.
  pthread_kill(thread_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  thread_.join();
}

}  // namespace percs
