#include "client/lib/tun_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace percs {
namespace {

absl::Status Error(const std::string& what, int error) {
  const std::string text = fmt::format("{}: {}", what, std::strerror(error));
  switch (error) {
    case EPERM:
    case EACCES:
      return absl::PermissionDeniedError(text + "; it takes CAP_NET_ADMIN in this network namespace");
    case ENOENT:
    case ENODEV:
      return absl::NotFoundError(text + "; the kernel has no TUN device here");
    case EINVAL:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

void SetAddress(std::uint32_t address, sockaddr* to) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  std::memcpy(to, &in, sizeof(in));
}

// What `ip address add` and `ip link set up` do.
absl::Status Configure(ifreq request, std::uint32_t address, int prefix, int mtu) {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return Error("a socket", errno);
  const auto set = [&](unsigned long what) { return ioctl(control, what, &request) == 0; };
  SetAddress(address, &request.ifr_addr);
  bool done = set(SIOCSIFADDR);
  SetAddress(~std::uint32_t{0} << (32 - prefix), &request.ifr_netmask);
  done = done && set(SIOCSIFNETMASK);
  request.ifr_mtu = mtu;
  done = done && set(SIOCSIFMTU) && set(SIOCGIFFLAGS);
  if (done) request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  done = done && set(SIOCSIFFLAGS);
  const int error = errno;
  close(control);
  return done ? absl::OkStatus() : Error(fmt::format("setting up {}", request.ifr_name), error);
}

}  // namespace

absl::StatusOr<TunDevice> TunDevice::Open(const std::string& name, std::uint32_t address, int prefix, int mtu) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof(request.ifr_name) || prefix < 1 || prefix > 31) {
    return absl::InvalidArgumentError(fmt::format("an interface \"{}\" with a prefix of {} bits; names have 1 to {} letters",
                                                  name, prefix, sizeof(request.ifr_name) - 1));
  }
  const int file = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Error("/dev/net/tun", errno);
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  TunDevice device(file, mtu);
  if (ioctl(file, TUNSETIFF, &request) != 0) return Error(fmt::format("making {}", name), errno);
  if (absl::Status status = Configure(request, address, prefix, mtu); !status.ok()) return status;
  return device;
}

TunDevice::~TunDevice() {
  if (file_ >= 0) close(file_);
}

absl::StatusOr<std::optional<std::vector<std::uint8_t>>> TunDevice::Read(std::chrono::milliseconds wait) const {
  pollfd poll_for{file_, POLLIN, 0};
  const int ready = poll(&poll_for, 1, static_cast<int>(wait.count()));
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  std::vector<std::uint8_t> packet(static_cast<std::size_t>(mtu_));
  const ssize_t size = ready < 0 ? -1 : read(file_, packet.data(), packet.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size < 0) return Error("reading from the interface", errno);
  packet.resize(static_cast<std::size_t>(size));
  return packet;
}

bool TunDevice::Write(absl::Span<const std::uint8_t> packet) const {
  return write(file_, packet.data(), packet.size()) == static_cast<ssize_t>(packet.size());
}

}  // namespace percs
