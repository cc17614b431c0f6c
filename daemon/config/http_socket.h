// Sockets of the small HTTP servers (libmicrohttpd): metrics and the page.
#pragma once

#include <microhttpd.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs {

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

// "" if it has none.
std::string MachineName();
// `address` as others reach it: with the name of this machine if it listens on all addresses.
std::string ReachableAddress(const std::string& address);

// MHD_OPTION_ARRAY for TLS 1.2 or 1.3 with the key and certificate in `identity`; clients may show
// certificates of `authority`, unless that is "". Empty for no identity. The strings have to live
// until the server has started.
std::vector<MHD_OptionItem> HttpTlsOptions(const std::string& identity,
                                           const std::string& authority);

int SocketOf(MHD_Connection* connection);

}  // namespace percs
