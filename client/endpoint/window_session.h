// The program's side of a stream of the Endpoint service, over as many connections as it takes:
// numbers what is asked for, sends it again after a break, and hands out what comes
// (percs/v1/endpoint.proto).
//
// THREAD: everything may be called from any thread. gRPC's threads only move messages; callbacks
// and dialling are done by the session's own thread.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/endpoint/endpoint.h"
#include "emulator/scenario/window_operation.h"
#include "percs/v1/endpoint.grpc.pb.h"
#include "proto/security/credentials.h"

namespace percs::client {

// What all that wait for one operation share. Its mutex is taken after the session's, or alone.
struct PendingState {
  std::mutex mutex;
  bool done = false;
  Completion completion;
  std::function<void(const Completion&)> then;
  std::weak_ptr<WindowSession> session;  // when it is gone, this is done
  int pieces = 1;                        // operations on the wire that it still consists of
};

// WIDE: one session with a daemon has one lock, and nearly all of these members are what that lock
// guards: the stream, what waits for an answer, and the window as the program sees it.
class WindowSession : public std::enable_shared_from_this<WindowSession> {
 public:
  using Clock = std::chrono::steady_clock;

  WindowSession(EndpointOptions options, std::string address, const Credentials& credentials);
  ~WindowSession();
  // Ends everything that is under way, and the thread. Who waits for an operation may have a share
  // in the session longer than its Endpoint, so this is not left to the destructor. REQUIRES: not
  // called from a callback.
  void Close();

  const EndpointOptions& options() const { return options_; }
  // Blocks until the window is reserved.
  absl::Status Open(Clock::time_point until);
  absl::Status Detach(Clock::time_point until);

  // One operation, or several that are one to the caller; of reads, the bytes of all in their
  // order.
  Pending Ask(std::vector<WindowOperation> operations);
  void Cancel(const std::shared_ptr<PendingState>& state);
  void Then(const std::shared_ptr<PendingState>& state,
            std::function<void(const Completion&)> then);
  // OK as soon as it is, DEADLINE_EXCEEDED, FAILED_PRECONDITION in a callback.
  absl::Status Wait(const std::shared_ptr<PendingState>& state, std::optional<Duration> deadline);
  absl::Status WaitAll(std::optional<Duration> deadline);
  absl::StatusOr<Packet> Receive(std::optional<Duration> deadline);
  absl::StatusOr<Notification> WaitNotification(std::optional<Duration> deadline);
  void OnPacket(std::function<void(Packet)> callback);
  void OnNotification(std::function<void(Notification)> callback);
  absl::StatusOr<NodeId> FindNode(const std::string& name);

  NodeId node() const;
  WindowId window() const;
  ContextId context() const { return options_.context.value_or(window()); }
  Time now() const;
  absl::Status status() const;
  std::uint64_t reconnects() const;

 private:
  class Stream;
  using Lock = std::unique_lock<std::mutex>;
  using State = std::shared_ptr<PendingState>;
  struct Waiting {  // to be sent
    v1::EndpointOperation message;
    State state;
    std::uint64_t offset = 0;
    bool counts = true;       // as under way
    std::uint64_t bytes = 0;  // to write or to read
  };
  struct UnderWay {
    State state;
    std::uint64_t offset = 0;
    bool counts = true;
    std::uint64_t bytes = 0;
    std::uint32_t slots = 0;  // of the receive FIFO, that go back with it
  };
  struct Sent {
    std::shared_ptr<v1::FromProgram> message;
    std::uint64_t sequence = 0;
  };

  // With the lock held.
  void Dial();
  void Pump();
  std::shared_ptr<v1::FromProgram> BuildMessage();
  // As messages name it.
  std::string hub() const { return options_.hub.empty() ? "its first hub" : options_.hub; }
  bool MaySend(const Waiting& next) const;
  void OnHello(const v1::EndpointHello& hello);
  void OnMessage(const v1::FromHub& message);
  void OnEvent(const v1::EndpointEvent& event);
  void OnStreamEnded(const grpc::Status& status);
  void Complete(std::uint64_t id, Completion completion);
  void FinishPiece(const State& state, std::uint64_t offset, Completion completion);
  void FinishAll(const State& state, const absl::Status& why);
  void Fail(const absl::Status& why);
  void TookPacket();
  void Post(std::function<void()> callback);
  // Until `there` is true. In a callback: FAILED_PRECONDITION.
  template <typename There>
  absl::Status WaitUntil(Lock& lock, std::optional<Clock::time_point> until, There there);
  std::optional<Clock::time_point> Until(std::optional<Duration> deadline) const;
  void Withdraw();
  void RunThread();

  const EndpointOptions options_;
  const std::string address_;
  const std::string token_;
  std::unique_ptr<v1::Endpoint::Stub> stub_;

  mutable std::mutex mutex_;
  std::condition_variable changed_, work_;
  Stream* stream_ = nullptr;
  int streams_ = 0;  // that gRPC still has
  bool stream_ready_ = false;
  std::uint64_t dials_ = 0;
  std::optional<Clock::time_point> dial_at_, give_up_at_;
  std::string last_trouble_;

  bool heard_ = false;  // of the hub, which knows the token
  bool attached_ = false, detaching_ = false, detach_sent_ = false, closing_ = false;
  std::optional<absl::Status> ended_;  // why the window is not ours any more
  NodeId node_ = 0;
  WindowId window_ = kAnyWindow;
  Time now_ = 0;

  std::deque<Waiting> waiting_;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::uint32_t counted_ = 0;  // of under_way_, those that count
  std::uint64_t bytes_under_way_ = 0;
  std::uint64_t last_id_ = 0;
  std::deque<Sent> sent_;   // and not acknowledged
  std::size_t unsent_ = 0;  // of these, the next one on this stream
  bool writing_ = false;
  std::uint64_t sequence_ = 0, received_ = 0, acknowledged_ = 0;

  std::uint64_t events_ = 0;       // received
  std::uint64_t waits_after_ = 0;  // that the hub knows
  bool wants_to_wait_ = false;

  std::deque<Packet> packets_;
  std::deque<Notification> notifications_;
  std::function<void(Packet)> on_packet_;
  std::function<void(Notification)> on_notification_;
  std::uint32_t space_to_return_ = 0;

  std::deque<std::function<void()>> callbacks_;
  bool in_callback_ = false;
  std::thread thread_;
};

}  // namespace percs::client
