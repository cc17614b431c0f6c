// Executors of the tests; a real one lives in client/lib.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

#include "emulator/sim/fabric.h"

namespace percs::test {

// Parts one after the other, the last one first: no order may matter.
inline const Executor kBackwards = [](int count, ExecutorStep first, ExecutorTurn second) {
  for (bool again = true; again;) {
    for (int i = count - 1; i >= 0; --i) first(i);
    again = false;
    for (int i = count - 1; i >= 0; --i) again = second(i);
  }
};

// A thread for each part, which waits for the others only where it has to.
inline const Executor kThreads = [](int count, ExecutorStep first, ExecutorTurn second) {
  std::barrier all(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&all, i, first, second] {
      do {
        first(i);
        all.arrive_and_wait();
      } while (second(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
};

}  // namespace percs::test
