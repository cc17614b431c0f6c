#include "client/endpoint/tun_device.h"

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
      return absl::PermissionDeniedError(text +
                                         "; it needs CAP_NET_ADMIN in this network namespace");
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

// A socket whose ioctl()s set up interfaces, and the interface they are about.
class Control {
 public:
  explicit Control(const std::string& name)
      : file_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), done_(file_ >= 0) {
    std::memcpy(request.ifr_name, name.data(), name.size());
  }
  ~Control() {
    if (file_ >= 0) close(file_);
  }
  void Do(unsigned long what) {
    done_ = done_ && ioctl(file_, what, &request) == 0;
    if (!done_ && error_ == 0) error_ = errno;
  }
  absl::Status status() const {
    return done_ ? absl::OkStatus() : Error(fmt::format("setting up {}", request.ifr_name), error_);
  }

  ifreq request{};

 private:
  int file_;
  bool done_;
  int error_ = done_ ? 0 : errno;
};

}  // namespace

absl::StatusOr<TunDevice> TunDevice::Open(const std::string& name, int mtu) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof(request.ifr_name)) {
    return absl::InvalidArgumentError(fmt::format("an interface \"{}\"; names have 1 to {} letters",
                                                  name, sizeof(request.ifr_name) - 1));
  }
  const int file = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Error("/dev/net/tun", errno);
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  TunDevice device(file, mtu, name);
  if (ioctl(file, TUNSETIFF, &request) != 0) return Error(fmt::format("making {}", name), errno);
  Control control(name);
  control.request.ifr_mtu = mtu;
  control.Do(SIOCSIFMTU);
  if (absl::Status status = control.status(); !status.ok()) return status;
  return device;
}

absl::Status TunDevice::Raise(std::uint32_t address, int prefix) const {
  Control control(name_);
  SetAddress(address, &control.request.ifr_addr);
  control.Do(SIOCSIFADDR);
  SetAddress(~std::uint32_t{0} << (32 - prefix), &control.request.ifr_netmask);
  control.Do(SIOCSIFNETMASK);
  control.Do(SIOCGIFFLAGS);
  control.request.ifr_flags = static_cast<short>(control.request.ifr_flags | IFF_UP | IFF_RUNNING);
  control.Do(SIOCSIFFLAGS);
  return control.status();
}

void TunDevice::Lower() const {
  Control control(name_);
  control.Do(SIOCGIFFLAGS);
  control.request.ifr_flags = static_cast<short>(control.request.ifr_flags & ~IFF_UP);
  control.Do(SIOCSIFFLAGS);
}

TunDevice::~TunDevice() {
  if (file_ >= 0) close(file_);
}

absl::StatusOr<std::optional<std::vector<std::uint8_t>>> TunDevice::Read(
    std::chrono::milliseconds wait) const {
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
