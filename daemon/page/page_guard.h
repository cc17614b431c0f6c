// Access to the page's server: no request from a foreign page or through a name that was pointed at
// this address (DNS rebinding), none without the token of the link, and with TLS only with the
// certificate of a role that may call the method.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/security/roles.h"

namespace percs {

// Headers of a request; "" if there is none of that name.
struct PageRequest {
  std::string host;        // Host
  std::string origin;      // Origin
  std::string fetch_site;  // Sec-Fetch-Site
  std::string token;       // X-Percs-Token
};

class PageGuard {
 public:
  static constexpr char kTokenHeader[] = "X-Percs-Token";

  // `address` is HOST:PORT as bound. `authority` in PEM signs the certificates of callers; "": no
  // TLS, and a caller with the token has the roles of `anybody`.
  PageGuard(const std::string& address, std::string token, std::string authority,
            Role anybody = Role::kOperator);

  const std::string& token() const { return token_; }
  // PERMISSION_DENIED if the request names another host or comes from another page.
  absl::Status CheckSource(const PageRequest& request) const;
  // UNAUTHENTICATED.
  absl::Status CheckToken(const PageRequest& request) const;
  // Of /percs.v1.Control/METHOD, for who has `certificate` (PEM, "": none).
  absl::Status CheckRole(const std::string& method, const std::string& certificate) const;
  // "operator", "viewer": what CheckRole lets a caller do.
  std::string RoleOf(const std::string& certificate) const;

 private:
  bool IsOurs(const std::string& host) const;

  const std::string address_, scheme_, token_, authority_;
  const Role anybody_;
};

// 128 random bits in hexadecimal digits.
std::string NewPageToken();
// The one that `file` has; it is made if there is none, readable for its owner only. UNAVAILABLE
// says why it cannot be read or written.
absl::StatusOr<std::string> KeptPageToken(const std::string& file);

}  // namespace percs
