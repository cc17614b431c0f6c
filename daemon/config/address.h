// Addresses as users write them: `unix:PATH` or `HOST:PORT`, port 0 for any free one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/security/credentials.h"

namespace percs {

inline constexpr int kControllerPort = 18515;

struct SocketAddress {
  std::string unix_path;  // set: a Unix socket
  std::string host;
  int port = 0;
  bool is_unix() const { return !unix_path.empty(); }
  // Processes of other machines may reach it.
  bool leaves_machine() const;
  std::string ToString() const;  // as gRPC takes it
};

// Whether an IPv4 or IPv6 address in numbers is of this machine or of a network that no router of
// the Internet leads to (loopback, link-local, RFC 1918, 4193 and 6598): those of containers and
// pods. Not: every address of a host.
bool IsPrivateAddress(const std::string& numeric);

// `tcp` alone is every interface with `default_port`. INVALID_ARGUMENT says what would be right.
absl::StatusOr<SocketAddress> ParseAddress(const std::string& text, int default_port);

// As flags give it.
struct SecurityOptions {
  std::string tls;                    // folder of the process's identity; "": plaintext
  bool plaintext = false;             // without it, also listen where other machines reach it
  double requests_per_second = 2000;  // of one address (stream/rate_limit.h)
};

// Encryption of a process. Without it, a process listens only where this machine alone reaches it,
// unless plaintext is allowed.
struct TransportSecurity {
  Credentials credentials;
  bool plaintext_allowed = false;
};
// INVALID_ARGUMENT and others: the folder has no identity of that role.
absl::StatusOr<TransportSecurity> LoadSecurity(const SecurityOptions& options, Role role);

// FAILED_PRECONDITION if other machines could reach `address` without proving their role; the
// message names `flag`, which gave the address.
absl::Status CheckExposure(const SocketAddress& address, const TransportSecurity& security,
                           const char* flag);

// Binds and starts. FAILED_PRECONDITION by CheckExposure; ALREADY_EXISTS names the process that has
// the address now; INVALID_ARGUMENT or UNAVAILABLE why it cannot be bound. `address.port` becomes
// the one bound.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder* builder,
                                                          const TransportSecurity& security,
                                                          SocketAddress* address);

}  // namespace percs
