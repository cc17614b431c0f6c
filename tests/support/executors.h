// Executors of the tests; a real one lives in client/lib.
#pragma once

#include <thread>
#include <vector>

#include "emulator/sim/fabric.h"

namespace percs::test {

// Parts one after the other, the last one first: no order may matter.
inline const Executor kBackwards = [](int count, ExecutorStep first, ExecutorStep second) {
  for (const ExecutorStep step : {first, second}) {
    for (int i = count - 1; i >= 0; --i) step(i);
  }
};

// A thread for each part.
inline const Executor kThreads = [](int count, ExecutorStep first, ExecutorStep second) {
  for (const ExecutorStep step : {first, second}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([i, step] { step(i); });
    for (std::thread& thread : threads) thread.join();
  }
};

}  // namespace percs::test
