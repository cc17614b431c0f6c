// A network interface of the kernel whose other end is this process (TUN): what programs send to it
// is read here, IP packet by IP packet, and what is written here they receive. Needs CAP_NET_ADMIN
// in the network namespace.
//
// THREAD: one may read while another writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace percs {

class TunDevice {
 public:
  // Makes the interface. PERMISSION_DENIED without the capability, NOT_FOUND without the kernel's
  // device, INVALID_ARGUMENT for a name that cannot be.
  static absl::StatusOr<TunDevice> Open(const std::string& name, int mtu);
  TunDevice(TunDevice&& other) noexcept
      : file_(other.file_), mtu_(other.mtu_), name_(std::move(other.name_)) {
    other.file_ = -1;
  }
  TunDevice& operator=(TunDevice&&) = delete;
  ~TunDevice();

  // Gives it the IPv4 address (in host order) with a prefix of `prefix` bits, and brings it up.
  absl::Status Raise(std::uint32_t address, int prefix) const;
  // Brings it down: programs that send to it get an error.
  void Lower() const;
  // The next packet; nothing if none comes for so long, or a signal does. UNAVAILABLE when the
  // interface is gone.
  absl::StatusOr<std::optional<std::vector<std::uint8_t>>> Read(
      std::chrono::milliseconds wait) const;
  // False if the interface does not take it: it is full, or this is no IP packet.
  bool Write(absl::Span<const std::uint8_t> packet) const;

 private:
  TunDevice(int file, int mtu, std::string name) : file_(file), mtu_(mtu), name_(std::move(name)) {}
  int file_;
  int mtu_;
  std::string name_;
};

}  // namespace percs
