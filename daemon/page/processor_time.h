// Processor time of a thread.
#pragma once

#include <chrono>
#include <ctime>

namespace percs {

// Of the calling thread, since it began; without what it waited.
inline std::chrono::nanoseconds ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace percs
