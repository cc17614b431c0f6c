#include "daemon/config/probe.h"

#include <chrono>

#include "fmt/format.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

constexpr std::chrono::seconds kPatience(4);
constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kServing[] = {8, 1};  // HealthCheckResponse{status: SERVING}
constexpr char kServiceTag = 10;     // HealthCheckRequest.service

// Debian has no generated code of the health service; its messages have one field each.
grpc::ByteBuffer Question(const std::string& service) {
  std::string bytes;
  if (!service.empty())
    bytes = std::string{kServiceTag, static_cast<char>(service.size())} + service;
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

bool Serves(const grpc::ByteBuffer& answer) {
  grpc::Slice slice;
  return answer.DumpToSingleSlice(&slice).ok() &&
         std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()) ==
             std::string(kServing, sizeof(kServing));
}

}  // namespace

absl::Status Probe(const std::string& address, const std::string& service, const std::string& tls) {
  Credentials credentials;
  if (!tls.empty()) {
    auto loaded = Credentials::Load(tls, RoleSet(Role::kDaemon, Role::kController));
    if (!loaded.ok()) return loaded.status();
    credentials = *std::move(loaded);
  }
  grpc::GenericStub stub(MakeChannel(address, credentials, credentials.role()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  grpc::ByteBuffer answer;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, kCheck, Question(service), &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool good = false;
  queue.Next(&tag, &good);
  if (!status.ok()) {
    return absl::UnavailableError(
        fmt::format("{} does not answer: {}", address, status.error_message()));
  }
  if (Serves(answer)) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{} answers that {} is not serving", address, service.empty() ? "it" : service));
}

}  // namespace percs
