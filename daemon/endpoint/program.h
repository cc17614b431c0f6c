// One outside program and its window, over as many streams as it takes.
//
//   hello -> kReserving -> the hub reserved a window -> kOpen -> it detached, or went away ->
//   kReleasing -> kOver
//
// What it asks for waits here until the controller has journalled it and says at which virtual time
// it takes effect; events of its window are sent when the window of virtual time has been reported.
//
// THREAD: guarded by the process's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/endpoint/endpoint_stats.h"
#include "daemon/stream/endpoint.h"
#include "emulator/scenario/window_operation.h"
#include "percs/v1/endpoint.grpc.pb.h"

namespace percs {

class Programs;

// Of a program, asked for and not yet issued, and issued and not yet completed.
inline constexpr std::size_t kProgramOperationsMax = 4096;
inline constexpr std::uint64_t kProgramBytesMax = 64 << 20;  // data to write, and to read

struct ProgramIdentity {
  std::uint64_t number = 0;  // in its daemon, from 1
  std::string token;
  std::string name;
  NodeId node = 0;
  std::string hub;
  JobKey job = 0;
  WindowId window = kAnyWindow;  // asked for
  bool exclusive = false;
  std::chrono::milliseconds keep{0};  // without a stream
};

// What a program asks for at one time.
struct Submission {
  std::vector<WindowOperation> operations;
  v1::EndpointSubmission message;  // the same
  std::uint64_t bytes = 0;         // that they hold
  bool empty() const { return operations.empty(); }
};

class Program final : public Endpoint<v1::FromHub, v1::FromProgram> {
 public:
  Program(Programs* programs, ProcessLock* lock, ProgramIdentity identity);

  const ProgramIdentity& identity() const { return identity_; }
  WindowId window() const { return window_; }
  // It has a window, or has asked for one.
  bool attached() const { return state_ != State::kOver; }
  bool over() const { return state_ == State::kOver; }
  // Virtual time waits for it.
  bool owes() const {
    return identity_.exclusive && state_ == State::kOpen && waits_after_ < events_;
  }
  bool waits() const { return state_ == State::kOpen && waits_after_ >= events_; }
  std::uint64_t operations() const { return issued_; }
  std::uint64_t events() const { return events_; }

  // What it asked for since the last time.
  Submission TakeAsked() { return std::exchange(asked_, {}); }
  bool has_asked() const { return !asked_.empty(); }
  // A submission takes effect at `at`; `last` is the id of its last operation.
  void OnIssued(std::uint64_t last, Time at);
  // An operation never takes effect.
  void OnRefused(std::uint64_t id, const absl::Status& why);
  // Of its window. From within a window of virtual time.
  void OnEvent(const WindowEvent& event);
  // Sends pending events.
  void Tell();
  // Its window is to be released; no further operation is done. `why`: the status that it gets
  // then; OK: it detached.
  void Release(const absl::Status& why);
  // Its window is gone, for whatever reason.
  void Finish(const absl::Status& why);
  void Forget() {
    lost_.Cancel();
    Leave();
  }

  // Ids of operations are of a process: number of the program and of its operation.
  static constexpr int kIdBits = 40;
  static constexpr std::uint64_t kReserveId = 0, kReleaseId = (std::uint64_t{1} << kIdBits) - 1;
  static std::uint64_t ProgramOf(std::uint64_t id) { return id >> kIdBits; }

 private:
  enum class State { kReserving, kOpen, kReleasing, kOver };
  using Bytes = std::uint64_t;

  void FillHello(v1::EndpointHello* hello) const override;
  absl::Status CheckHello(const v1::EndpointHello&) const override { return absl::OkStatus(); }
  absl::Status OnMessage(v1::FromProgram& message) override;
  void OnReached() override;
  void OnLost(const absl::Status& status) override;

  // An error means that the program violated the protocol.
  absl::Status Take(v1::EndpointOperation& message);
  // Why it cannot be requested now.
  absl::Status Admit(const v1::EndpointOperation& message, EndpointRefusal* reason) const;
  void Refuse(std::uint64_t id, EndpointRefusal reason, const absl::Status& why);
  void Ask(WindowOperation operation, v1::EndpointOperation message);
  void AskForWindow(WindowOp op, std::uint64_t id);
  void OnReserved(const WindowEvent& event);
  void OnEnded(std::uint64_t id);
  static Bytes BytesOf(const WindowOperation& operation);
  v1::FromHub& Next();
  void CountAcknowledged();

  Programs* programs_;
  const ProgramIdentity identity_;
  Timer lost_, linger_;
  State state_ = State::kReserving;
  bool release_wanted_ = false;
  absl::Status released_why_;
  WindowId window_ = kAnyWindow;

  std::uint64_t taken_ = 0;   // id of its last operation
  std::uint64_t issued_ = 0;  // of the last one that took effect
  std::uint64_t events_ = 0, waits_after_ = 0;
  Submission asked_;
  std::deque<std::pair<std::uint64_t, Bytes>>
      outstanding_;  // ids not completed yet, with what they hold
  Bytes bytes_outstanding_ = 0;

  std::unique_ptr<v1::FromHub> next_;  // to be sent
  Bytes next_bytes_ = 0;
  std::deque<Bytes> untaken_;  // messages that it has not acknowledged
  Bytes untaken_bytes_ = 0;
};

}  // namespace percs
