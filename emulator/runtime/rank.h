// One task of a parallel program on one hardware thread: its program (a coroutine), what its thread
// has to do next, and its work queue (PAMI's context, paper 003 sections 3.1 and 3.2).
//
// The thread does one thing at a time. Whatever comes in (a message, a completion) queues behind
// what it is at; between two things it looks at the work queue, as PAMI_Context_advance does.
// Waiting costs nothing: the thread polls.
#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/base/ring.h"
#include "emulator/base/task.h"
#include "emulator/base/time.h"

namespace percs {

class NodeRuntime;
class Rank;

// A function on the work queue that is tried again until what it waits for is there.
class Work {
 public:
  virtual ~Work() = default;
  // True if it can be done now; `ready_at` is then when its thread has read all that it needs.
  // False: some flag it looked at has the rank as its watcher.
  virtual bool Check(Rank& rank, Time* ready_at) = 0;
  virtual void Run(Rank& rank) = 0;
  // What it copies once its thread has read all that it needs: the time that takes alone, and the
  // bytes that the node's memory moves.
  struct Copies {
    Time cost = 0;
    std::uint64_t bytes = 0;
  };
  virtual Copies copies(const Rank& rank) const { return {}; }
};

class Rank {
 public:
  using Function = void (*)(void* object, std::uint64_t argument);

  Rank(NodeRuntime& node, std::uint32_t number, std::uint32_t local, int core, int siblings);

  NodeRuntime& node() { return node_; }
  std::uint32_t number() const { return number_; }
  std::uint32_t local() const { return local_; }  // from 0, on its node
  int core() const { return core_; }
  int siblings() const { return siblings_; }
  FramePool& frames() { return frames_; }
  Time now() const;

  // Has the thread spend `cost`, after what it already has to do, and then call `run`.
  void Do(Time cost, Function run, void* object, std::uint64_t argument = 0);
  template <auto kMember, typename T>
  void Do(Time cost, T* object, std::uint64_t argument = 0) {
    Do(
        cost, [](void* o, std::uint64_t a) { (static_cast<T*>(o)->*kMember)(a); }, object,
        argument);
  }
  // The same for a copy after `cost`: it takes `copy` alone, and longer while others of the node
  // ask for much; `bytes` is what the node's memory moves for it.
  template <auto kMember, typename T>
  void Copy(Time cost, Time copy, std::uint64_t bytes, T* object, std::uint64_t argument = 0) {
    Append({cost + CopyShared(copy), bytes,
            [](void* o, std::uint64_t a) { (static_cast<T*>(o)->*kMember)(a); }, object, argument});
  }
  // Software's time on a core that it shares with other tasks: their threads take its slots also
  // while they poll.
  Time Shared(Time cost) const;

  // Work queue. A blocking function keeps messages waiting until it is done.
  void Post(Work* work, bool blocking = false);
  // A flag that it watches was written, now.
  void Wake();

  void Run(Task<> program);
  bool done() const { return program_.done(); }

  // --- For its program.
  // Until `*flag`; a completion sets it while this thread advances.
  auto Until(const bool* flag) {
    struct Awaiter {
      Rank& rank;
      const bool* flag;
      bool await_ready() const { return *flag; }
      void await_suspend(std::coroutine_handle<> h) {
        rank.waiting_ = h;
        rank.until_ = flag;
      }
      void await_resume() const {}
    };
    return Awaiter{*this, flag};
  }
  auto Compute(Time time) {
    struct Awaiter {
      Rank& rank;
      Time time;
      bool await_ready() const { return time <= 0; }
      void await_suspend(std::coroutine_handle<> h) {
        rank.Do(
            rank.Shared(time),
            [](void* frame, std::uint64_t) {
              std::coroutine_handle<>::from_address(frame).resume();
            },
            h.address());
      }
      void await_resume() const {}
    };
    return Awaiter{*this, time};
  }

  // --- For its node.
  void OnTimer();
  Time next_miss = 0;                          // its thread can wait for one more cache line then
  Time busy() const { return busy_; }          // time spent so far
  Time finished() const { return finished_; }  // of its program; kNever while it runs

 private:
  struct Action {
    Time cost = 0;
    std::uint64_t bytes = 0;  // that the node's memory moves
    Function run = nullptr;
    void* object = nullptr;
    std::uint64_t argument = 0;
  };
  struct Queued {
    Work* work = nullptr;
    Time since = 0;
    bool blocking = false;
  };
  void Append(const Action& action);
  // A copy waits for memory most of the time, so only a thread that is busy, too, slows it.
  Time CopyShared(Time cost) const;
  void Advance();
  bool TryWork();
  void RunWork(std::uint64_t work) { reinterpret_cast<Work*>(work)->Run(*this); }

  NodeRuntime& node_;
  const std::uint32_t number_, local_;
  const int core_, siblings_;  // other tasks on the core
  FramePool frames_;
  Ring<Action> actions_;
  std::vector<Queued> work_;
  bool running_ = false;  // inside an action: what it asks for comes after it
  bool timed_ = false;    // the front action takes time, and a timer runs
  std::coroutine_handle<> waiting_;
  const bool* until_ = nullptr;
  Task<> program_;
  Time busy_ = 0, finished_ = kNever;
};

}  // namespace percs
