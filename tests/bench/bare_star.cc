// What windows over daemons cost at least: a star of processes that does nothing but exchange. The
// middle sends each a message of 64 bytes, and the next one when all have answered with as many.
// Streams are as those of Sync: one for each process, gRPC's callback API, a Unix socket.
//
// With BATCH_BYTES there are streams as those of Link, too: in each round every process sends every
// other one a batch of that size, and it begins the next round when it has all batches of this one.
//
//     bare_star PROCESSES SECONDS [BATCH_BYTES]        prints rounds per second
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "grpcpp/grpcpp.h"
#include "percs/v1/link.grpc.pb.h"
#include "proto/process/temporary_folder.h"

namespace percs {
namespace {

constexpr std::size_t kBytes = 64;
constexpr int kProcessesMax = 1024, kBatchBytesMax = 1 << 20;

v1::LinkMessage MessageOf(std::size_t bytes) {
  v1::LinkMessage message;
  message.set_batch(std::string(bytes, 'x'));
  return message;
}

// One end of a stream, whose messages all have `bytes`. gRPC takes a message when it has handed
// over the one before.
template <typename Reactor>
class End : public Reactor {
 public:
  End(std::size_t bytes, std::function<void()> on_message)
      : out_(MessageOf(bytes)), on_message_(std::move(on_message)) {}

  void Write() {
    const std::lock_guard guard(mutex_);
    if (left_++ == 0) this->StartWrite(&out_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard guard(mutex_);
    left_ = ok ? left_ - 1 : 0;
    if (left_ > 0) this->StartWrite(&out_);
  }
  void Read() { this->StartRead(&in_); }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    Read();
    on_message_();
  }

 private:
  std::mutex mutex_;
  int left_ = 0;  // messages to write, the one that gRPC has among them
  const v1::LinkMessage out_;
  v1::LinkMessage in_;
  const std::function<void()> on_message_;
};

class ServerEnd final : public End<grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>> {
 public:
  using End::End;
  void OnDone() override {}  // the process ends
};

class ClientEnd final : public End<grpc::ClientBidiReactor<v1::LinkMessage, v1::LinkMessage>> {
 public:
  ClientEnd(const std::string& address, std::size_t bytes, std::function<void()> on_message)
      : End(bytes, std::move(on_message)),
        stub_(v1::Link::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    context_.set_wait_for_ready(true);
    stub_->async()->Exchange(&context_, this);
    Read();
    StartCall();
  }
  void OnDone(const grpc::Status&) override { _exit(0); }

 private:
  const std::unique_ptr<v1::Link::Stub> stub_;
  grpc::ClientContext context_;
};

// A server whose streams `accept` makes.
class Service final : public v1::Link::CallbackService {
 public:
  Service(const std::string& address, std::function<ServerEnd*()> accept)
      : accept_(std::move(accept)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  bool started() const { return server_ != nullptr; }

  grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>* Exchange(
      grpc::CallbackServerContext*) override {
    ServerEnd* const end = accept_();
    end->Read();
    return end;
  }

 private:
  const std::function<ServerEnd*()> accept_;
  std::unique_ptr<grpc::Server> server_;
};

std::string AddressOf(const std::string& folder, int process) {
  return fmt::format("unix:{}/{}", folder, process);
}

// The middle, which has the address after those of the processes around it.
class Middle {
 public:
  Middle(const std::string& folder, int processes)
      : processes_(static_cast<std::size_t>(processes)),
        service_(AddressOf(folder, processes), [this] { return Accept(); }) {}
  bool started() const { return service_.started(); }

  // Rounds in that time, which begins after the first one: then all streams are there.
  std::uint64_t Count(std::chrono::duration<double> time) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rounds_ > 1; });
    const std::uint64_t before = rounds_;
    changed_.wait_for(lock, time, [] { return false; });
    return rounds_ - before;
  }

 private:
  ServerEnd* Accept() {
    const std::lock_guard guard(mutex_);
    arms_.push_back(new ServerEnd(kBytes, [this] { OnAnswer(); }));
    if (arms_.size() == processes_) BeginRound();
    return arms_.back();
  }

  void OnAnswer() {
    const std::lock_guard guard(mutex_);
    if (++answers_ == processes_) BeginRound();
  }

  // With the lock held.
  void BeginRound() {
    answers_ = 0;
    if (++rounds_ == 2) changed_.notify_all();
    for (ServerEnd* arm : arms_) arm->Write();
  }

  const std::size_t processes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ServerEnd*> arms_;
  std::size_t answers_ = 0;
  std::uint64_t rounds_ = 0;
  Service service_;
};

// A process around the middle, and its streams to the others if they exchange batches.
class Outer {
 public:
  Outer(const std::string& folder, int index, int processes, std::size_t batch_bytes)
      : batch_bytes_(batch_bytes), peers_wanted_(batch_bytes > 0 ? processes - 1 : 0) {
    if (peers_wanted_ > 0) {
      service_.emplace(AddressOf(folder, index), [this] { return Accept(); });
      for (int other = index + 1; other < processes; ++other) Dial(AddressOf(folder, other));
    }
    const std::lock_guard guard(mutex_);  // a grant may come at once
    report_.emplace(AddressOf(folder, processes), kBytes, [this] {
      const std::lock_guard guard(mutex_);
      ++grants_;
      Advance();
    });
  }

 private:
  struct Peer {
    std::function<void()> write;
    std::uint64_t arrived = 0;  // batches
  };

  Peer* AddPeer() {
    const std::lock_guard guard(mutex_);
    return &peers_.emplace_back();
  }

  ServerEnd* Accept() {
    Peer* const peer = AddPeer();
    auto* const end = new ServerEnd(batch_bytes_, [this, peer] { OnBatch(peer); });
    Begin(peer, [end] { end->Write(); });
    return end;
  }

  void Dial(const std::string& address) {
    Peer* const peer = AddPeer();
    auto* const end = new ClientEnd(address, batch_bytes_, [this, peer] { OnBatch(peer); });
    Begin(peer, [end] { end->Write(); });
  }

  void Begin(Peer* peer, std::function<void()> write) {
    const std::lock_guard guard(mutex_);
    peer->write = std::move(write);
    ++peers_there_;
    if (report_) Advance();
  }

  void OnBatch(Peer* peer) {
    const std::lock_guard guard(mutex_);
    ++peer->arrived;
    Advance();
  }

  // With the lock held. As in percsd, the report leaves first.
  void Advance() {
    while (rounds_ < grants_ && peers_there_ == peers_wanted_ &&
           std::all_of(peers_.begin(), peers_.end(),
                       [this](const Peer& peer) { return peer.arrived >= rounds_; })) {
      ++rounds_;
      report_->Write();
      for (const Peer& peer : peers_) peer.write();
    }
  }

  const std::size_t batch_bytes_;
  const int peers_wanted_;
  std::mutex mutex_;
  int peers_there_ = 0;
  std::deque<Peer> peers_;  // whose addresses do not change
  std::uint64_t grants_ = 0, rounds_ = 0;
  std::optional<Service> service_;
  std::optional<ClientEnd> report_;
};

int Measure(const std::string& folder, int processes, double seconds, std::size_t batch_bytes) {
  for (int i = 0; i < processes; ++i) {  // before gRPC has threads
    const pid_t child = fork();
    if (child < 0) {
      std::perror("bare_star: fork");
      return 1;
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Outer outer(folder, i, processes, batch_bytes);
      while (true) pause();
    }
  }
  static Middle middle(folder, processes);
  if (!middle.started()) return 1;
  const std::uint64_t rounds = middle.Count(std::chrono::duration<double>(seconds));
  fmt::print("{{\"rounds_per_second\": {:.1f}}}\n", static_cast<double>(rounds) / seconds);
  return 0;
}

int Main(int processes, double seconds, std::size_t batch_bytes) {
  const auto folder = TemporaryFolder::MakeForSockets("percs-star-");
  if (!folder.ok()) {
    fmt::print(stderr, "bare_star: {}\n", std::string(folder.status().message()));
    return 1;
  }
  return Measure(folder->path(), processes, seconds, batch_bytes);
}

}  // namespace
}  // namespace percs

int main(int argc, char** argv) {
  const bool given = argc == 3 || argc == 4;
  const int processes = given ? std::atoi(argv[1]) : 0;
  const double seconds = given ? std::atof(argv[2]) : 0;
  const int batch_bytes = argc == 4 ? std::atoi(argv[3]) : 0;
  if (processes < 1 || processes > percs::kProcessesMax || !(seconds > 0) || batch_bytes < 0 ||
      batch_bytes > percs::kBatchBytesMax) {
    fmt::print(
        stderr,
        "usage: bare_star PROCESSES SECONDS [BATCH_BYTES]    1 to {} processes, batches of up "
        "to {} bytes\n",
        percs::kProcessesMax, percs::kBatchBytesMax);
    return 2;
  }
  const int code = percs::Main(processes, seconds, static_cast<std::size_t>(batch_bytes));
  std::fflush(stdout);
  _exit(code);  // in the middle of a round, which no other process waits for
}
