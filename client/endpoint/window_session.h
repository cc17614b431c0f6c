// The program's side of a stream of the Endpoint service, over as many connections as it takes:
// numbers requests, sends them again after a break, and delivers events (percs/v1/endpoint.proto).
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
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/endpoint/endpoint.h"
#include "emulator/scenario/window_operation.h"
#include "percs/v1/endpoint.grpc.pb.h"
#include "proto/process/mutex.h"
#include "proto/security/credentials.h"

namespace percs::client {

// Shared by all who wait for one operation. Its mutex is taken after the session's, or alone.
struct PendingState {
  PendingState(std::weak_ptr<WindowSession> of, int of_pieces)
      : session(std::move(of)), pieces(of_pieces) {}

  Mutex mutex;
  bool done ABSL_GUARDED_BY(mutex) = false;
  Completion completion ABSL_GUARDED_BY(mutex);
  std::function<void(const Completion&)> then ABSL_GUARDED_BY(mutex);
  const std::weak_ptr<WindowSession> session;  // when it is gone, this is done
  int pieces ABSL_GUARDED_BY(mutex) = 1;       // operations on the wire that it still consists of
};

// WIDE: one session with a daemon has one lock, and nearly all of these members are what that lock
// guards: the stream, what waits for an answer, and the window as the program sees it.
class WindowSession : public std::enable_shared_from_this<WindowSession> {
 public:
  using Clock = std::chrono::steady_clock;

  WindowSession(EndpointOptions options, std::string address, const Credentials& credentials);
  ~WindowSession();
  // Ends all operations in flight, and the thread. Code that waits for an operation may have a
  // share in the session longer than its Endpoint, so this is not left to the destructor. REQUIRES:
  // not called from a callback.
  void Close();

  const EndpointOptions& options() const { return options_; }
  // Blocks until the window is reserved.
  absl::Status Open(Clock::time_point until);
  absl::Status Detach(Clock::time_point until);

  // One operation, or several that are one to the caller; of reads, the bytes of all in their
  // order.
  Pending Ask(const std::vector<WindowOperation>& operations);
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
  using Lock = MutexLock<Mutex>;
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

  void Dial() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<v1::FromProgram> BuildMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As messages name it.
  std::string hub() const { return options_.hub.empty() ? "its first hub" : options_.hub; }
  bool MaySend(const Waiting& next) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnHello(const v1::EndpointHello& hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(const v1::FromHub& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnEvent(const v1::EndpointEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnStreamEnded(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complete(std::uint64_t id, Completion completion) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishPiece(const State& state, std::uint64_t offset, Completion completion)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishAll(const State& state, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TookPacket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Post(std::function<void()> callback) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until `there` is true. In a callback: FAILED_PRECONDITION.
  absl::Status WaitUntil(std::optional<Clock::time_point> until, absl::FunctionRef<bool()> there)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Clock::time_point> Until(std::optional<Duration> deadline) const;
  void Withdraw();
  void RunThread();

  const EndpointOptions options_;
  const std::string address_;
  const std::string token_;
  std::unique_ptr<v1::Endpoint::Stub> stub_;

  mutable Mutex mutex_;
  std::condition_variable_any changed_, work_;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;  // that gRPC still has
  bool stream_ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t dials_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Clock::time_point> dial_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> give_up_at_ ABSL_GUARDED_BY(mutex_);
  std::string last_trouble_ ABSL_GUARDED_BY(mutex_);

  bool heard_ ABSL_GUARDED_BY(mutex_) = false;  // of the hub, which knows the token
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;
  bool detaching_ ABSL_GUARDED_BY(mutex_) = false;
  bool detach_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);  // why the window was lost
  NodeId node_ ABSL_GUARDED_BY(mutex_) = 0;
  WindowId window_ ABSL_GUARDED_BY(mutex_) = kAnyWindow;
  Time now_ ABSL_GUARDED_BY(mutex_) = 0;

  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, UnderWay> under_way_ ABSL_GUARDED_BY(mutex_);
  std::uint32_t counted_ ABSL_GUARDED_BY(mutex_) = 0;  // of under_way_, those that count
  std::uint64_t bytes_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);   // and not acknowledged
  std::size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, the next one on this stream
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;

  std::uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;       // received
  std::uint64_t waits_after_ ABSL_GUARDED_BY(mutex_) = 0;  // that the hub knows
  bool wants_to_wait_ ABSL_GUARDED_BY(mutex_) = false;

  std::deque<Packet> packets_ ABSL_GUARDED_BY(mutex_);
  std::deque<Notification> notifications_ ABSL_GUARDED_BY(mutex_);
  std::function<void(Packet)> on_packet_ ABSL_GUARDED_BY(mutex_);
  std::function<void(Notification)> on_notification_ ABSL_GUARDED_BY(mutex_);
  std::uint32_t space_to_return_ ABSL_GUARDED_BY(mutex_) = 0;

  std::deque<std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
  bool in_callback_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace percs::client
