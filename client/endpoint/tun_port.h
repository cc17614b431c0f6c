// A hub as a network interface of the kernel, for programs that know nothing of windows
// (docs/endpoint.md): its IP packets travel as IP packets of the HFI, each an operation of a
// window. The hub of number n is 10.0.0.1 + n.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "client/endpoint/endpoint.h"
#include "client/endpoint/tun_device.h"

namespace percs::client {

struct TunOptions {
  std::string device = "percs0";
  WindowId window = 255;  // the same at all hubs that communicate
};

class TunPort {
 public:
  // Makes the interface; errors as TunDevice::Open. It has an address while it is attached.
  static absl::StatusOr<std::unique_ptr<TunPort>> Open(const TunOptions& options);

  // Attaches to a hub (`at` says where and which; the rest is ours) and carries packets until
  // `stop` is true (OK) or the hub is gone (why). Calls `attached` with the hub's address in
  // between. Errors as Endpoint::Attach.
  absl::Status Carry(EndpointOptions at,
                     const std::function<void(const std::string& address)>& attached,
                     const std::function<bool()>& stop);

  struct Counts {
    std::atomic<std::uint64_t> sent{0}, received{0}, dropped{0};
    std::atomic<int> under_way{0};
  };
  const Counts& counts() const { return *counts_; }

 private:
  TunPort(TunOptions options, TunDevice device)
      : options_(std::move(options)), device_(std::move(device)) {}
  void Send(Endpoint& endpoint, const Bytes& packet) const;

  TunOptions options_;
  TunDevice device_;
  std::shared_ptr<Counts> counts_ =
      std::make_shared<Counts>();  // operations in flight outlive their endpoint
};

// Keeps an interface attached to the first hub of a percsd, from run to run. THREAD: has one of its
// own.
class TunKeeper {
 public:
  // `say` is called, on that thread, with what an operator would want to know.
  TunKeeper(std::unique_ptr<TunPort> port, EndpointOptions at,
            std::function<void(const std::string&)> say);
  ~TunKeeper();

 private:
  void Run();

  const std::unique_ptr<TunPort> port_;
  const EndpointOptions at_;
  const std::function<void(const std::string&)> say_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace percs::client
