// What both programs do before anything else.
#pragma once

namespace percs {

// Small memory arenas, quiet gRPC, log to stderr, end signals kept for OnEndSignal.
void SetUpProcess(const char* name);

}  // namespace percs
