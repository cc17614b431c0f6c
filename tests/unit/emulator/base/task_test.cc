// Method: programs that call others in a loop, which wait, or do not, in turn. This file is
// compiled without optimisation, so a call that kept something on the stack would soon exhaust it.
#include "emulator/base/task.h"

#include <gtest/gtest.h>

namespace percs::task_test {
namespace {

constexpr int kCalls = 200'000;

struct Processor {
  FramePool& frames() { return pool; }
  FramePool pool;
  std::coroutine_handle<> waits;
};

struct Wait {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> h) const { processor->waits = h; }
  void await_resume() const {}
  Processor* processor;
};

Task<int> Number(Processor& p, int number, bool waits) {
  if (waits) co_await Wait{&p};
  co_return number;
}

Task<int> Twice(Processor& p, int number, bool waits) {
  const int first = co_await Number(p, number, waits);
  co_return first + co_await Number(p, number, false);
}

// `every`: the calls that wait; 0: none.
Task<> Sum(Processor& p, int every, std::int64_t* sum) {
  for (int i = 0; i < kCalls; ++i)
    *sum += co_await Twice(p, i, every > 0 && i % every == every - 1);
}

class TaskTest : public testing::TestWithParam<int> {};

TEST_P(TaskTest, ALoopOfCallsNeedsNoMoreOfTheStackThanOne) {
  const int every = GetParam();
  Processor processor;
  std::int64_t sum = 0;
  const Task<> program = Sum(processor, every, &sum);
  int waits = 0;
  program.handle().resume();
  for (; !program.done(); ++waits) processor.waits.resume();
  EXPECT_EQ(sum, std::int64_t{kCalls} * (kCalls - 1));
  EXPECT_EQ(waits, every > 0 ? kCalls / every : 0);
}

INSTANTIATE_TEST_SUITE_P(Waits, TaskTest, testing::Values(0, 1, 2, 1000));

}  // namespace
}  // namespace percs::task_test
