// Programs of the machine's processors (SPEs, PPEs, tasks of a node) as coroutines in virtual time.
// Frames come from a pool of the processor they run on, so that a program which calls others in a
// loop allocates nothing in a steady state.
//
//   Task<> Half(Spe& spe) { co_await spe.Compute(kMicrosecond); }
//   Task<int> Program(Spe& spe) { co_await Half(spe); co_return 1; }
//
// The first parameter of every such function (after the object of a member function) is the
// processor; that is how its frame finds the pool.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/base/check.h"

namespace percs {

// Blocks in size classes of 64 bytes, kept for the next one of their size.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() {
    for (auto& list : free_) {
      for (void* block : list) ::operator delete(block);
    }
  }
  static void* Take(FramePool& pool, std::size_t size) {
    const std::size_t index = (size + sizeof(Header) + kStep - 1) / kStep;
    void* block;
    if (index < kClasses && !pool.free_[index].empty()) {
      block = pool.free_[index].back();
      pool.free_[index].pop_back();
    } else {
      block = ::operator new(index* kStep);
    }
    auto* header = new (block) Header{&pool, index};
    return header + 1;
  }
  static void Give(void* frame) {
    Header* header = static_cast<Header*>(frame) - 1;
    const std::size_t index = header->index;
    if (index < kClasses) {
      header->pool->free_[index].push_back(header);
    } else {
      ::operator delete(header);
    }
  }

 private:
  struct alignas(std::max_align_t) Header {
    FramePool* pool;
    std::size_t index;
  };
  static constexpr std::size_t kStep = 64, kClasses = 64;
  std::array<std::vector<void*>, kClasses> free_;
};

namespace internal {

// Pool of the frame: asked of the first parameter, or of the second for member functions.
template <typename First, typename... Rest>
FramePool& PoolOf(First& first, Rest&... rest) {
  if constexpr (requires { first.frames(); }) {
    return first.frames();
  } else {
    return PoolOf(rest...);
  }
}

struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
    if (!h.promise().called) h.promise().continuation.resume();
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  // Its caller is below it on the stack, and continues by itself.
  bool called = false;
  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() { PERCS_CHECK(false); }  // programs do not throw
  template <typename... Args>
  static void* operator new(std::size_t size, Args&... args) {
    return FramePool::Take(PoolOf(args...), size);
  }
  static void operator delete(void* frame) { FramePool::Give(frame); }
};

// Runs what `caller` calls until it waits or ends; false: it has ended. A caller whose calls never
// wait so needs no more of the stack for many of them than for one, whether or not the compiler
// makes jumps of calls (which sanitizers and builds without optimisation prevent).
template <typename Promise>
bool Call(std::coroutine_handle<Promise> called, std::coroutine_handle<> caller) noexcept {
  called.promise().continuation = caller;
  called.promise().called = true;
  called.resume();
  if (called.done()) return false;
  called.promise().called = false;
  return true;
}

}  // namespace internal

template <typename T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : internal::PromiseBase {
    T value{};
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    void return_value(T v) { value = std::move(v); }
  };
  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> caller) noexcept {
    return internal::Call(handle_, caller);
  }
  T await_resume() { return std::move(handle_.promise().value); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

template <>
class [[nodiscard]] Task<void> {
 public:
  struct promise_type : internal::PromiseBase {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    void return_void() {}
  };
  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> caller) noexcept {
    return internal::Call(handle_, caller);
  }
  void await_resume() const noexcept {}

  // For the processor that runs a whole program.
  std::coroutine_handle<> handle() const { return handle_; }
  bool done() const { return handle_ && handle_.done(); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace percs
