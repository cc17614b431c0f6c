// What both programs do before anything else.
#pragma once

namespace percs {

// Exit status for wrong flags.
inline constexpr int kUsageError = 2;

// Debian's Abseil, and so gRPC, records the order in which every two of its locks were ever taken,
// in one graph under one lock, to find deadlocks in itself. From now on it does not, in this
// process.
void IgnoreLockOrder();

// IgnoreLockOrder, EndWhenOutOfMemory, small memory arenas, quiet gRPC, log to stderr, end signals
// kept for EndSignalWatch.
void SetUpProcess(const char* name);

}  // namespace percs
