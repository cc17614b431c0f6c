// Sockets of the small HTTP servers (libmicrohttpd): metrics and the page.
#pragma once

#include <string>

#include "absl/status/statusor.h"

struct MHD_Connection;

namespace percs {

inline constexpr char kHttpTlsVersions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct HttpSocket {
  int fd = -1;
  std::string address;  // HOST:PORT as bound
};

// What a server is for and what makes it safe, in the words of its errors.
struct HttpPurpose {
  const char* what;       // "metrics"
  const char* clients;    // "Prometheus scrapes"
  const char* encrypted;  // "--metrics-tls FILE"
};

// Listens at HOST:PORT, port 0 for any free one. FAILED_PRECONDITION unless `exposure_allowed` if
// other networks could reach it; INVALID_ARGUMENT or UNAVAILABLE says why it cannot listen.
absl::StatusOr<HttpSocket> ListenForHttp(const std::string& address, const HttpPurpose& purpose,
                                         bool exposure_allowed);

// `address` as others reach it: with the name of this machine if it listens on all addresses.
std::string ReachableAddress(const std::string& address);

int SocketOf(MHD_Connection* connection);

}  // namespace percs
