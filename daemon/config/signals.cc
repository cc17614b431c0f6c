#include "daemon/config/signals.h"

#include <pthread.h>

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

void OnEndSignal(std::function<void(int signal)> then) {
  std::thread([then = std::move(then)] {
    const sigset_t set = EndSignals();
    int signal = 0;
    while (sigwait(&set, &signal) != 0) {
    }
    then(signal);
  }).detach();
}

}  // namespace percs
