#include "daemon/page/page_guard.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>

#include <fstream>
#include <random>
#include <utility>

#include "daemon/config/http_socket.h"
#include "fmt/format.h"
#include "proto/process/folders.h"
#include "proto/process/printable.h"
#include "proto/process/replace_file.h"
#include "proto/security/credentials.h"
#include "proto/security/roles.h"

namespace percs {
namespace {

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }
std::string PortOf(const std::string& address) { return address.substr(address.rfind(':') + 1); }

// Others can point a name at this machine, but not a numeric address.
bool IsNumeric(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  in6_addr ignored{};
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

}  // namespace

PageGuard::PageGuard(const std::string& address, std::string token, std::string authority,
                     Role anybody)
    : address_(address),
      scheme_(authority.empty() ? "http" : "https"),
      token_(std::move(token)),
      authority_(std::move(authority)),
      anybody_(anybody) {}

bool PageGuard::IsOurs(const std::string& host) const {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string::npos && host.find(']', colon) == std::string::npos;
  const std::string port = has_port ? host.substr(colon + 1) : scheme_ == "https" ? "443" : "80";
  const std::string name = has_port ? host.substr(0, colon) : host;
  if (name.empty() || port != PortOf(address_)) return false;
  return name == "localhost" || name == HostOf(address_) || name == MachineName() ||
         IsNumeric(name) || name == RoleHost(Role::kController);
}

absl::Status PageGuard::CheckSource(const PageRequest& request) const {
  if (!IsOurs(request.host)) {
    return absl::PermissionDeniedError(fmt::format(
        "the request is for the host \"{}\"; this is {}: open the link with that address",
        Printable(request.host, Lines::kOne), address_));
  }
  const bool foreign =
      (!request.origin.empty() && request.origin != scheme_ + "://" + request.host) ||
      (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
       request.fetch_site != "none");
  if (!foreign) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the request comes from another page ({}); only the page served here may ask",
      Printable(request.origin.empty() ? request.fetch_site : request.origin, Lines::kOne)));
}

absl::Status PageGuard::CheckToken(const PageRequest& request) const {
  if (request.token.size() == token_.size() &&
      CRYPTO_memcmp(request.token.data(), token_.data(), token_.size()) == 0) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError(fmt::format(
      "{} has no token or another one; open the link that percs-controller printed, with all that "
      "follows the #",
      kTokenHeader));
}

absl::Status PageGuard::CheckRole(const std::string& method, const std::string& certificate) const {
  const std::string called = "/percs.v1.Control/" + method;
  if (!authority_.empty()) return CheckCaller(called, certificate, authority_);
  const MethodRoles* const entry = FindMethodRoles(called);
  if (entry != nullptr && entry->roles.Has(anybody_)) return absl::OkStatus();
  if (entry == nullptr)
    return absl::PermissionDeniedError(fmt::format("no role may call {}", method));
  return absl::PermissionDeniedError(
      fmt::format("{} needs the role {}; this page was opened with the role {}", method,
                  entry->roles.ToString(), RoleName(anybody_)));
}

std::string PageGuard::RoleOf(const std::string& certificate) const {
  if (authority_.empty()) return RoleName(anybody_);
  const auto role = VerifyCertificate(certificate, authority_);
  return role.ok() ? RoleName(*role) : "";
}

std::string NewPageToken() {
  std::random_device device;  // the kernel's
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

absl::StatusOr<std::string> KeptPageToken(const std::string& file) {
  std::string token;
  if (std::ifstream(file) >> token && token.size() == NewPageToken().size()) return token;
  token = NewPageToken();
  const absl::Status kept = ReplaceFile(file, token, kPrivateFile);
  if (kept.ok()) return token;
  return absl::UnavailableError(
      fmt::format("cannot keep the token of the page: {}", std::string(kept.message())));
}

}  // namespace percs
