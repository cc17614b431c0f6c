// SIGTERM and SIGINT as a call on a thread of its own.
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace percs {

// Blocks both signals in every thread started later: call before gRPC starts any.
void BlockEndSignals();
// Calls `then` when one of them comes; for the rest of the process.
void OnEndSignal(std::function<void(int signal)> then);

}  // namespace percs
