// How a process proves its role and checks those of others: mutual TLS with an identity
// (certificate.h), or plaintext without one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/security/certificate.h"

namespace percs {

// Why callers were refused, counted for the whole process.
enum class Refusal : std::uint8_t { kHandshake, kNoCertificate, kCertificate, kRole, kMethod };
inline constexpr const char* kRefusalNames[] = {"handshake", "no_certificate", "certificate",
                                                "role", "method"};
inline constexpr std::size_t kRefusals = std::size(kRefusalNames);
std::uint64_t RefusalCount(Refusal refusal);

class Credentials {
 public:
  Credentials() = default;  // plaintext
  // From a folder as `percsctl ca` makes it, which has to be one of `roles`.
  static absl::StatusOr<Credentials> Load(const std::string& folder, RoleSet roles);

  bool encrypted() const { return identity_ != nullptr; }
  // That it proves; only if encrypted().
  Role role() const { return role_; }
  // For a channel to a server of this role; names the server in the arguments.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(Role server,
                                                       grpc::ChannelArguments* arguments) const;
  // Every call is held to the table of roles: UNAUTHENTICATED without a valid certificate,
  // PERMISSION_DENIED with that of another role.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;

 private:
  std::shared_ptr<const Identity> identity_;
  Role role_ = Role::kViewer;
};

// The answer to a call of `method` by who has `certificate` (PEM, "": none), and counts it if that
// is a refusal.
absl::Status CheckCaller(const std::string& method, const std::string& certificate,
                         const std::string& authority);

}  // namespace percs
