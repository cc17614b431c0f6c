#include "daemon/stream/call_meter.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "grpcpp/support/server_interceptor.h"
#include "proto/security/roles.h"

namespace percs {
namespace {

namespace experimental = grpc::experimental;
using Hook = experimental::InterceptionHookPoints;

// Lives as long as the process: calls end after everything else.
struct Table {
  std::vector<MethodCalls*> all;
  absl::flat_hash_map<std::string, MethodCalls*> by_path;
  MethodCalls* unknown = nullptr;

  Table() {
    for (const MethodRoles& entry : AllMethodRoles()) {
      const std::string path = entry.method;
      const std::size_t slash = path.rfind('/');
      by_path[path] = Add(path.substr(1, slash - 1), path.substr(slash + 1));
    }
    unknown = Add("unknown", "unknown");
  }
  MethodCalls* Add(std::string service, std::string method) {
    auto* calls = new MethodCalls;
    calls->service = std::move(service);
    calls->method = std::move(method);
    all.push_back(calls);
    return calls;
  }
};

Table& TheTable() {
  static auto* const table = new Table;
  return *table;
}

class Meter final : public experimental::Interceptor {
 public:
  Meter(MethodCalls* calls, CallType type) : record_(calls, type) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(Hook::POST_RECV_MESSAGE) &&
        methods->GetRecvMessage() != nullptr) {
      record_.Received();
    }
    if (methods->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) record_.Sent();
    if (methods->QueryInterceptionHookPoint(Hook::PRE_SEND_STATUS)) {
      record_.Ended(methods->GetSendStatus().error_code());
    }
    methods->Proceed();
  }

 private:
  CallRecord record_;
};

class MeterFactory final : public experimental::ServerInterceptorFactoryInterface {
 public:
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    const std::string path = info->method();
    if (path == kSessionPath || path == kExchangePath || path == kAttachPath) return nullptr;
    return new Meter(&CallsOf(path), static_cast<CallType>(info->type()));
  }
};

static_assert(static_cast<int>(experimental::ServerRpcInfo::Type::UNARY) ==
              static_cast<int>(CallType::kUnary));
static_assert(static_cast<int>(experimental::ServerRpcInfo::Type::BIDI_STREAMING) ==
              static_cast<int>(CallType::kBidiStream));

}  // namespace

const std::array<const char*, kGrpcCodes> kGrpcCodeNames = {
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

const char* CallTypeName(CallType type) {
  constexpr const char* kNames[] = {"unary", "client_stream", "server_stream", "bidi_stream"};
  return kNames[static_cast<std::size_t>(type)];
}

MethodCalls& CallsOf(const std::string& path) {
  const Table& table = TheTable();
  const auto found = table.by_path.find(path);
  return found == table.by_path.end() ? *table.unknown : *found->second;
}

absl::Span<MethodCalls* const> AllCalls() { return TheTable().all; }

CallRecord::CallRecord(MethodCalls* calls, CallType type) : calls_(calls) {
  calls_->type.store(type, std::memory_order_relaxed);
  calls_->started.fetch_add(1, std::memory_order_relaxed);
}

CallRecord::~CallRecord() {
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - from_;
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = static_cast<std::size_t>(
      std::lower_bound(kCallSecondsEdges.begin(), kCallSecondsEdges.end(), seconds) -
      kCallSecondsEdges.begin());
  const std::size_t code = std::min(static_cast<std::size_t>(code_), kGrpcCodes - 1);
  calls_->took[bucket].fetch_add(1, std::memory_order_relaxed);
  calls_->nanoseconds.fetch_add(static_cast<std::uint64_t>(took.count()),
                                std::memory_order_relaxed);
  calls_->handled[code].fetch_add(1, std::memory_order_relaxed);
}

void MeterCalls(grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<experimental::ServerInterceptorFactoryInterface>> creators;
  creators.push_back(std::make_unique<MeterFactory>());
  builder->experimental().SetInterceptorCreators(std::move(creators));
}

}  // namespace percs
