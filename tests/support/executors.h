// Executors of the tests; a real one lives in client/lib.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include "emulator/sim/fabric.h"

namespace percs::test {

// Parts one after the other, the last one first: no order may matter.
inline const Executor kBackwards = [](int count, ExecutorStep step) {
  for (bool again = true; again;) {
    again = false;
    for (int i = count - 1; i >= 0; --i) again = step(i);
  }
};

// A thread for each part.
inline const Executor kThreads = [](int count, ExecutorStep step) {
  std::barrier all(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&all, i, step] {
      while (step(i)) all.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
};

}  // namespace percs::test
