#include "proto/process/single_poller.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "proto/process/mutex.h"

namespace percs {
namespace {

// As gRPC names them (CallbackAlternativeCQ of 1.51), of which there are two at least.
constexpr char kPollerName[] = "nexting_thread";
// A thread has the name of the one that made it until it has begun.
constexpr std::chrono::milliseconds kLook(1);
constexpr int kLooksMax = 100;
// Shorter than the second after which gRPC's poller sleeps.
constexpr std::chrono::milliseconds kAwake(500);

std::string NameOfThisThread() {
  char name[16] = "";  // what the kernel keeps
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

using Threads = std::set<std::filesystem::path>;  // in /proc

Threads ThreadsOfThisProcess() {
  std::error_code error;
  Threads threads;
  std::filesystem::directory_iterator task("/proc/self/task", error);
  for (; !error && task != end(task); task.increment(error)) threads.insert(task->path());
  return threads;
}

// The name of each that was not there before.
std::multiset<std::string> NamesOfNewThreads(const Threads& before) {
  std::multiset<std::string> names;
  for (const std::filesystem::path& thread : ThreadsOfThisProcess()) {
    if (before.contains(thread)) continue;
    std::ifstream comm(thread / "comm");
    if (std::string name; std::getline(comm, name)) names.insert(std::move(name));
  }
  return names;
}

}  // namespace

struct SinglePoller::FailingCall {
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1}, reply;
};

struct SinglePoller::State {
  Mutex mutex;
  std::condition_variable_any changed;
  int calls ABSL_GUARDED_BY(mutex) = 0;            // that have failed
  bool next_holds ABSL_GUARDED_BY(mutex) = false;  // the thread that reports the next one
  int held ABSL_GUARDED_BY(mutex) = 0;
  bool over ABSL_GUARDED_BY(mutex) = false;

  void Failed() {
    const MutexLock lock(mutex);
    ++calls;
    changed.notify_all();
    if (!std::exchange(next_holds, false) || NameOfThisThread() != kPollerName) return;
    ++held;
    while (!over) changed.wait(mutex);
    --held;
    changed.notify_all();
  }
};

SinglePoller::SinglePoller()
    : state_(std::make_shared<State>()), channel_(grpc::CreateChannel("", nullptr)) {
  HoldOthers();
  keeps_awake_ = std::thread([this] { KeepAwake(); });
}

void SinglePoller::HoldOthers() {
  const std::string ours = NameOfThisThread();
  const Threads before = ThreadsOfThisProcess();  // some of which may be ending
  Call(/*hold=*/false);                           // gRPC makes its threads
  for (int look = 0; look < kLooksMax; ++look) {
    const std::multiset<std::string> names = NamesOfNewThreads(before);
    const auto pollers = static_cast<int>(names.count(kPollerName));
    while (held() < pollers - 1) {
      if (!Call(/*hold=*/true)) return;
    }
    if (pollers > 1 && !names.contains(ours)) return;
    std::this_thread::sleep_for(kLook);
  }
}

// Returns whether one more thread is held.
bool SinglePoller::Call(bool hold) {
  auto call = std::make_unique<FailingCall>();
  MutexLock lock(state_->mutex);
  const int held = state_->held, calls = state_->calls;
  state_->next_holds = hold;
  lock.unlock();
  grpc::GenericStub(channel_).UnaryCall(&call->context, "/none", {}, &call->request, &call->reply,
                                        [state = state_](const grpc::Status&) { state->Failed(); });
  lock.lock();
  while (state_->calls == calls) state_->changed.wait(state_->mutex);
  if (state_->held == held) return false;
  held_calls_.push_back(std::move(call));
  return true;
}

void SinglePoller::KeepAwake() {
  MutexLock lock(state_->mutex);
  while (!state_->over) {
    state_->changed.wait_for(state_->mutex, kAwake);
    if (state_->over) return;
    lock.unlock();
    Call(/*hold=*/false);
    lock.lock();
  }
}

SinglePoller::~SinglePoller() {
  MutexLock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  lock.unlock();
  keeps_awake_.join();
  lock.lock();
  while (state_->held > 0) state_->changed.wait(state_->mutex);
}

int SinglePoller::held() const {
  const MutexLock lock(state_->mutex);
  return state_->held;
}

}  // namespace percs
