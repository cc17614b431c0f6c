#include "daemon/config/http_socket.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "daemon/config/address.h"
#include "fmt/format.h"

namespace percs {
namespace {

bool IsAnyAddress(const std::string& host) { return host == "0.0.0.0" || host == "[::]"; }

// A socket that listens, or -1 with errno.
int ListenAt(const SocketAddress& where) {
  std::string host = where.host;
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), std::to_string(where.port).c_str(), &hints, &found) != 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd =
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0) continue;
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
  }
  return -1;
}

struct Bound {
  std::string host;  // in numbers
  int port = 0;
};
Bound BoundTo(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host.data(), host.size(), port.data(),
                  port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  return {host.data(), std::atoi(port.data())};
}

}  // namespace

absl::StatusOr<HttpSocket> ListenForHttp(const std::string& address, const HttpPurpose& purpose,
                                         bool exposure_allowed) {
  const auto where = ParseAddress(address, 0);
  if (!where.ok()) return where.status();
  if (where->is_unix()) {
    return absl::InvalidArgumentError(
        fmt::format("{} at {}: {} HOST:PORT only", purpose.what, address, purpose.clients));
  }
  const int socket = ListenAt(*where);
  if (socket < 0) {
    return absl::UnavailableError(fmt::format("cannot serve {} at {}: {}", purpose.what, address,
                                              errno == EADDRINUSE ? "the port is taken"
                                              : errno == EADDRNOTAVAIL
                                                  ? "this is not an address of this host"
                                                  : std::strerror(errno)));
  }
  const Bound bound = BoundTo(socket);
  if (!exposure_allowed && !IsPrivateAddress(bound.host)) {
    close(socket);
    return absl::FailedPreconditionError(fmt::format(
        "{} at {} would be readable from anywhere, unencrypted: give {}, an address on loopback or "
        "of a private network, or --plaintext to allow it",
        purpose.what, address, purpose.encrypted));
  }
  return HttpSocket{socket, fmt::format("{}:{}", where->host, bound.port)};
}

std::string MachineName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string ReachableAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::string name = MachineName();
  if (!IsAnyAddress(address.substr(0, colon)) || name.empty()) return address;
  return name + address.substr(colon);
}

std::vector<MHD_OptionItem> HttpTlsOptions(const std::string& identity,
                                           const std::string& authority) {
  std::vector<MHD_OptionItem> options;
  const auto add = [&](MHD_OPTION option, const char* text) {
    options.push_back({option, 0, const_cast<char*>(text)});  // it is only read
  };
  if (!identity.empty()) {
    add(MHD_OPTION_HTTPS_MEM_KEY, identity.c_str());
    add(MHD_OPTION_HTTPS_MEM_CERT, identity.c_str());
    if (!authority.empty()) add(MHD_OPTION_HTTPS_MEM_TRUST, authority.c_str());
    add(MHD_OPTION_HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  return options;
}

int SocketOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

}  // namespace percs
