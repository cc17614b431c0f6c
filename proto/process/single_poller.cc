#include "proto/process/single_poller.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"

namespace percs {
namespace {

// As gRPC names them (callback_common of 1.51: CallbackAlternativeCQ).
constexpr char kPollerName[] = "nexting_thread";
// A thread has the name of the one that made it until it has begun.
constexpr std::chrono::milliseconds kLook(1);
constexpr int kLooksMax = 100;

std::string NameOfThisThread() {
  char name[16] = "";  // what the kernel keeps
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

int ThreadsCalled(const std::string& name) {
  std::error_code error;
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string line;
    std::getline(std::ifstream(task.path() / "comm"), line);
    if (line == name) ++count;
  }
  return count;
}

}  // namespace

struct SinglePoller::FailingCall {
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1}, reply;
};

struct SinglePoller::State {
  std::mutex mutex;
  std::condition_variable changed;
  int called = 0, held = 0;
  bool over = false;
};

SinglePoller::SinglePoller()
    : state_(std::make_shared<State>()), channel_(grpc::CreateChannel("", nullptr)) {
  const std::string ours = NameOfThisThread();
  const int before = ThreadsCalled(ours);
  Call(/*hold=*/false);  // with the first call gRPC makes its threads
  for (int look = 0; look < kLooksMax && ThreadsCalled(ours) > before; ++look)
    std::this_thread::sleep_for(kLook);
  for (int others = ThreadsCalled(kPollerName) - 1; others > 0; --others) {
    if (!Call(/*hold=*/true)) return;
  }
}

// Returns whether one more thread is held.
bool SinglePoller::Call(bool hold) {
  FailingCall* const call = calls_.emplace_back(std::make_unique<FailingCall>()).get();
  std::unique_lock lock(state_->mutex);
  const int called = state_->called, held = state_->held;
  lock.unlock();
  grpc::GenericStub(channel_).UnaryCall(&call->context, "/none", {}, &call->request, &call->reply,
                                        [state = state_, hold](const grpc::Status&) {
                                          std::unique_lock done(state->mutex);
                                          ++state->called;
                                          const bool holds =
                                              hold && NameOfThisThread() == kPollerName;
                                          if (holds) ++state->held;
                                          state->changed.notify_all();
                                          if (!holds) return;
                                          state->changed.wait(done, [&] { return state->over; });
                                          --state->held;
                                          state->changed.notify_all();
                                        });
  lock.lock();
  state_->changed.wait(lock, [&] { return state_->called > called; });
  return state_->held > held;
}

SinglePoller::~SinglePoller() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  state_->changed.wait(lock, [this] { return state_->held == 0; });
}

int SinglePoller::held() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held;
}

}  // namespace percs
