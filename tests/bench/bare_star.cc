// What windows over daemons cost at least: a star of processes that does nothing but exchange. The
// middle sends each a message of 64 bytes, and the next one when all have answered with as many.
// Streams are as those of Sync: one for each process, gRPC's callback API, a Unix socket.
//
//     bare_star PROCESSES SECONDS        prints rounds per second
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "grpcpp/grpcpp.h"
#include "percs/v1/link.grpc.pb.h"
#include "proto/process/temporary_folder.h"

namespace percs {
namespace {

constexpr std::size_t kBytes = 64;
constexpr int kProcessesMax = 1024;

v1::LinkMessage SmallMessage() {
  v1::LinkMessage message;
  message.set_batch(std::string(kBytes, 'x'));
  return message;
}

// One end of a stream. gRPC takes a message when it has handed over the one before.
template <typename Reactor>
class End : public Reactor {
 public:
  void Write() {
    const std::lock_guard guard(mutex_);
    if (writing_) {
      waits_ = true;
      return;
    }
    writing_ = true;
    this->StartWrite(&out_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard guard(mutex_);
    writing_ = waits_ && ok;
    waits_ = false;
    if (writing_) this->StartWrite(&out_);
  }
  void Read() { this->StartRead(&in_); }

 private:
  std::mutex mutex_;
  bool writing_ = false, waits_ = false;
  const v1::LinkMessage out_ = SmallMessage();
  v1::LinkMessage in_;
};

class Middle final : public v1::Link::CallbackService {
 public:
  explicit Middle(std::size_t processes) : processes_(processes) {}

  grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>* Exchange(
      grpc::CallbackServerContext*) override {
    auto* arm = new Arm(this);
    arm->Read();
    const std::lock_guard guard(mutex_);
    arms_.push_back(arm);
    if (arms_.size() == processes_) BeginRound();
    return arm;
  }

  // Rounds in that time, which begins when all processes are there.
  std::uint64_t Count(std::chrono::duration<double> time) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rounds_ > 0; });
    const std::uint64_t before = rounds_;
    changed_.wait_for(lock, time, [] { return false; });
    return rounds_ - before;
  }

 private:
  class Arm final : public End<grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>> {
   public:
    explicit Arm(Middle* middle) : middle_(middle) {}
    void OnReadDone(bool ok) override {
      if (!ok) return;
      Read();
      middle_->OnAnswer();
    }
    void OnDone() override {}  // the process ends

   private:
    Middle* const middle_;
  };

  void OnAnswer() {
    const std::lock_guard guard(mutex_);
    if (++answers_ == processes_) BeginRound();
  }

  // With the lock held.
  void BeginRound() {
    answers_ = 0;
    if (++rounds_ == 1) changed_.notify_all();
    for (Arm* arm : arms_) arm->Write();
  }

  const std::size_t processes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arm*> arms_;
  std::size_t answers_ = 0;
  std::uint64_t rounds_ = 0;
};

class Outer final : public End<grpc::ClientBidiReactor<v1::LinkMessage, v1::LinkMessage>> {
 public:
  explicit Outer(v1::Link::Stub* stub) {
    context_.set_wait_for_ready(true);
    stub->async()->Exchange(&context_, this);
    Read();
    StartCall();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    Read();
    Write();
  }
  void OnDone(const grpc::Status&) override { _exit(0); }

 private:
  grpc::ClientContext context_;
};

[[noreturn]] void RunOuter(const std::string& address) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto stub =
      v1::Link::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  Outer outer(stub.get());
  while (true) pause();
}

int Measure(const std::string& address, int processes, double seconds) {
  for (int i = 0; i < processes; ++i) {  // before gRPC has threads
    const pid_t child = fork();
    if (child < 0) {
      std::perror("bare_star: fork");
      return 1;
    }
    if (child == 0) RunOuter(address);
  }
  static Middle middle(static_cast<std::size_t>(processes));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&middle);
  static const auto server = builder.BuildAndStart();
  if (!server) return 1;
  const std::uint64_t rounds = middle.Count(std::chrono::duration<double>(seconds));
  fmt::print("{{\"rounds_per_second\": {:.1f}}}\n", static_cast<double>(rounds) / seconds);
  return 0;
}

int Main(int processes, double seconds) {
  const auto folder = TemporaryFolder::MakeForSockets("percs-star-");
  if (!folder.ok()) {
    fmt::print(stderr, "bare_star: {}\n", std::string(folder.status().message()));
    return 1;
  }
  return Measure("unix:" + folder->path() + "/star", processes, seconds);
}

}  // namespace
}  // namespace percs

int main(int argc, char** argv) {
  const int processes = argc == 3 ? std::atoi(argv[1]) : 0;
  const double seconds = argc == 3 ? std::atof(argv[2]) : 0;
  if (processes < 1 || processes > percs::kProcessesMax || !(seconds > 0)) {
    fmt::print(stderr, "usage: bare_star PROCESSES SECONDS    1 to {} processes\n",
               percs::kProcessesMax);
    return 2;
  }
  const int code = percs::Main(processes, seconds);
  std::fflush(stdout);
  _exit(code);  // in the middle of a round, which no other process waits for
}
