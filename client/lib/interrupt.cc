#include "client/lib/interrupt.h"

#include <signal.h>

namespace percs {
namespace {

volatile sig_atomic_t raised_flag = 0;

void OnSignal(int signal_number) {
  raised_flag = 1;
  signal(signal_number, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  raised_flag = 0;
  signal(SIGINT, OnSignal);
  signal(SIGTERM, OnSignal);
}

InterruptGuard::~InterruptGuard() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::raised() { return raised_flag != 0; }

}  // namespace percs
