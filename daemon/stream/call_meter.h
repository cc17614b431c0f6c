// Calls to the gRPC servers of this process, by method: their number, codes, durations and
// messages. A method that is not in the table of roles counts under the one name `unknown`, so that
// callers cannot make series. A call refused before its method begins is counted as a Refusal
// (credentials.h), not here.
//
// THREAD: everything may be called from any thread; counting takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/status_code_enum.h"

namespace percs {

inline constexpr std::size_t kGrpcCodes = 17;
extern const std::array<const char*, kGrpcCodes> kGrpcCodeNames;
// Upper edges in seconds of how long calls took; one more bucket is beyond them.
inline constexpr std::array<double, 8> kCallSecondsEdges = {0.0005, 0.002, 0.01, 0.05,
                                                            0.25,   1,     5,    30};

enum class CallType : std::uint8_t { kUnary, kClientStream, kServerStream, kBidiStream };
const char* CallTypeName(CallType type);

// One method, since the process began.
struct MethodCalls {
  std::string service, method;
  std::atomic<CallType> type{CallType::kUnary};  // known from the first call on
  std::atomic<std::uint64_t> started{0}, received{0}, sent{0};
  std::array<std::atomic<std::uint64_t>, kGrpcCodes> handled{};  // by code
  std::array<std::atomic<std::uint64_t>, kCallSecondsEdges.size() + 1> took{};
  std::atomic<std::uint64_t> nanoseconds{0};  // of all that were handled
};

// `path` as in HTTP/2's :path.
MethodCalls& CallsOf(const std::string& path);
// All there are, in the order of the table of roles, the unknown ones last.
absl::Span<MethodCalls* const> AllCalls();

// One call from its start to its end, which is that of this.
class CallRecord {
 public:
  CallRecord(MethodCalls* calls, CallType type);
  ~CallRecord();
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  void Received() { calls_->received.fetch_add(1, std::memory_order_relaxed); }
  void Sent() { calls_->sent.fetch_add(1, std::memory_order_relaxed); }
  // The status of the answer; a call without one was cancelled.
  void Ended(grpc::StatusCode code) { code_ = code; }
  grpc::StatusCode code() const { return code_; }

 private:
  MethodCalls* const calls_;
  const std::chrono::steady_clock::time_point from_ = std::chrono::steady_clock::now();
  grpc::StatusCode code_ = grpc::StatusCode::CANCELLED;
};

// Streams that keep a record themselves (ServerStream): an interceptor costs two more turns of
// gRPC's threads per message, and virtual time waits for theirs.
inline constexpr const char* kSessionPath = "/percs.v1.Sync/Session";
inline constexpr const char* kExchangePath = "/percs.v1.Link/Exchange";
inline constexpr const char* kAttachPath = "/percs.v1.Endpoint/Attach";

// Every other call of the server that `builder` makes has a record.
void MeterCalls(grpc::ServerBuilder* builder);

}  // namespace percs
