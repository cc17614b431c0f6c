#include "daemon/config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "daemon/config/port_holder.h"
#include "fmt/format.h"
#include "proto/process/unix_socket.h"

namespace percs {
namespace {

absl::Status BindError(const SocketAddress& address) {
  if (address.is_unix()) {
    return absl::UnavailableError(fmt::format(
        "cannot listen on {}: its folder must exist and be writable", address.ToString()));
  }
  const int pid = TcpPortHolder(address.port);
  if (pid != 0) {
    return absl::AlreadyExistsError(fmt::format("cannot listen on {}: port {} is taken by {}",
                                                address.ToString(), address.port,
                                                DescribeProcess(pid)));
  }
  if (TcpPortTaken(address.port)) {
    return absl::AlreadyExistsError(
        fmt::format("cannot listen on {}: port {} is taken by a process of another user",
                    address.ToString(), address.port));
  }
  return absl::UnavailableError(fmt::format(
      "cannot listen on {}: {} is not an address of this host, or this user may not use the port",
      address.ToString(), address.host));
}

}  // namespace

bool SocketAddress::leaves_machine() const {
  return !is_unix() && host != "localhost" && host != "[::1]" && host.rfind("127.", 0) != 0;
}

std::string SocketAddress::ToString() const {
  return is_unix() ? "unix:" + unix_path : fmt::format("{}:{}", host, port);
}

bool IsPrivateAddress(const std::string& numeric) {
  struct Network {
    int family;
    const char* prefix;
    int bits;
  };
  constexpr Network kNetworks[] = {
      {AF_INET, "127.0.0.0", 8},    {AF_INET, "10.0.0.0", 8},     {AF_INET, "172.16.0.0", 12},
      {AF_INET, "192.168.0.0", 16}, {AF_INET, "169.254.0.0", 16}, {AF_INET, "100.64.0.0", 10},
      {AF_INET6, "::1", 128},       {AF_INET6, "fc00::", 7},      {AF_INET6, "fe80::", 10}};
  const std::string host =
      numeric.substr(0, numeric.find('%'));  // the interface of a link-local one
  for (const Network& network : kNetworks) {
    std::array<unsigned char, sizeof(in6_addr)> address{}, prefix{};
    if (inet_pton(network.family, host.c_str(), address.data()) != 1) continue;
    inet_pton(network.family, network.prefix, prefix.data());
    int bit = 0;
    while (bit < network.bits && ((address[bit / 8] ^ prefix[bit / 8]) >> (7 - bit % 8) & 1) == 0)
      ++bit;
    if (bit == network.bits) return true;
  }
  return false;
}

absl::StatusOr<SocketAddress> ParseAddress(const std::string& text, int default_port) {
  SocketAddress address;
  if (text.rfind("unix:", 0) == 0) {
    address.unix_path = text.substr(5);
    if (absl::Status status = CheckUnixPath(address.unix_path); !status.ok()) return status;
    return address;
  }
  if (text == "tcp") {
    address.host = "0.0.0.0";
    address.port = default_port;
    return address;
  }
  const std::size_t colon = text.rfind(':');
  char* end = nullptr;
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const long number = std::strtol(port.c_str(), &end, 10);
  if (colon == 0 || port.empty() || *end != '\0' || number < 0 || number > 65535) {
    return absl::InvalidArgumentError(fmt::format(
        "address \"{}\": expected unix:PATH, HOST:PORT with a port from 0 to 65535, or tcp", text));
  }
  address.host = text.substr(0, colon);
  address.port = static_cast<int>(number);
  return address;
}

absl::StatusOr<TransportSecurity> LoadSecurity(const SecurityOptions& options, Role role) {
  TransportSecurity security;
  security.plaintext_allowed = options.plaintext;
  if (options.tls.empty()) return security;
  auto credentials = Credentials::Load(options.tls, RoleSet(role));
  if (!credentials.ok()) return credentials.status();
  security.credentials = *std::move(credentials);
  return security;
}

absl::Status CheckExposure(const SocketAddress& address, const TransportSecurity& security,
                           const char* flag) {
  if (!address.leaves_machine() || security.credentials.encrypted() || security.plaintext_allowed) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("{} {} is reachable from other machines, and callers would not be authenticated: "
                  "give --tls FOLDER (`percsctl ca` makes one for each role), an address on "
                  "loopback or unix:PATH, or --plaintext to let every caller do everything",
                  flag, address.ToString()));
}

absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::ServerBuilder* builder,
                                                          const TransportSecurity& security,
                                                          SocketAddress* address) {
  if (absl::Status s = CheckExposure(*address, security, "--listen"); !s.ok()) return s;
  if (address->is_unix()) {
    if (absl::Status free = CheckUnixFree(address->unix_path); !free.ok()) return free;
  }
  int bound = 0;
  // Without this a second server on the same port would get half of the connections.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddListeningPort(address->ToString(), security.credentials.ForServer(), &bound);
  std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
  if (!server || bound == 0) return BindError(*address);
  if (!address->is_unix()) address->port = bound;
  return server;
}

}  // namespace percs
