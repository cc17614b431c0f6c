// The virtual clock of a rank. The library that is preloaded owns it, because it is loaded first
// and seen by all others; the provider finds it there by name, and has one of its own without it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "client/ofi/channel.h"

namespace percs::mpi {

struct VirtualClock {
  std::atomic<std::int64_t> now{0};        // picoseconds, without what runs since `cpu_since`
  std::atomic<std::int64_t> computed{0};   // part of it
  std::atomic<int> testing{0};             // inside MPI_Test or its like: a poll returns at once
  std::atomic<bool> attached{false};       // to a fabric
  char hub[kHubNameBytes] = {};            // its name, before `attached`
  std::atomic<bool> running{false};        // between MPI_Init and MPI_Finalize
  std::atomic<std::int64_t> scale{0};      // virtual picoseconds per 1,024 ns of CPU time
  std::atomic<std::int64_t> cpu_since{0};  // CPU time, nanoseconds
  std::atomic<std::uint64_t> reads{0};     // of the clock, one after the other
  // Open MPI's progress: a pass looks once at each of its parts, of which the provider is one. What
  // a part has to do may follow from another part, so that a rank has nothing to do only after
  // some passes in which no rank did anything.
  std::atomic<int> parts{0};    // registered
  std::atomic<int> passing{0};  // passes that have begun and not ended, each inside the one before
  std::atomic<std::uint64_t> quiet{0};  // passes since the rank called, or something came
  std::atomic<std::uint64_t> acts{0};   // calls, and what came
  // Where Open MPI has not registered the provider yet: what a pass calls in its place; else null.
  std::atomic<void (*)()> look{nullptr};
};
inline constexpr const char* kClockSymbol = "percs_virtual_clock";

inline void NoteAct(VirtualClock& clock) {
  ++clock.acts;
  clock.quiet = 0;
}

inline std::int64_t CpuNanoseconds() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// The program has computed until now: its CPU time becomes virtual time.
inline void ChargeComputing(VirtualClock& clock) {
  const std::int64_t scale = clock.scale.load(std::memory_order_relaxed);
  if (scale == 0 || !clock.running.load(std::memory_order_relaxed)) return;
  const std::int64_t cpu = CpuNanoseconds();
  const std::int64_t spent = cpu - clock.cpu_since.exchange(cpu);
  if (spent <= 0) return;
  const std::int64_t time = spent * scale / 1024;
  clock.now += time;
  clock.computed += time;
}

// ... and from now on what it computes counts again.
inline void ComputeFromNow(VirtualClock& clock) {
  if (clock.scale.load(std::memory_order_relaxed) != 0) clock.cpu_since.store(CpuNanoseconds());
}

}  // namespace percs::mpi
