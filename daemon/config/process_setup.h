// What both programs do before anything else.
#pragma once

namespace percs {

// Exit status for flags that cannot be.
inline constexpr int kUsageError = 2;

// Small memory arenas, quiet gRPC, log to stderr, end signals kept for OnEndSignal.
void SetUpProcess(const char* name);

}  // namespace percs
