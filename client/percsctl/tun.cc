// percsctl tun: a hub as a network interface of this machine, for programs that know nothing of
// windows.
#include <fmt/format.h>

#include <memory>

#include "client/endpoint/tun_port.h"
#include "client/lib/interrupt.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"

namespace percs {
namespace {

struct TunArguments {
  FabricOptions fabric;
  std::string hub;
  client::TunOptions port;
};

Outcome Tun(const TunArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& controller) {
    client::EndpointOptions at;
    auto tls = IdentityFor(a.fabric);
    if (!tls.ok()) return FromStatus(tls.status());
    at.controller = controller.address();
    at.tls = *std::move(tls);
    at.hub = a.hub;
    // Before the device, which needs a privilege.
    if (const auto found = controller.FindHub(a.hub); !found.ok())
      return FromStatus(found.status());
    const auto port = client::TunPort::Open(a.port);
    if (!port.ok()) return FromStatus(port.status());
    const InterruptGuard interrupt;
    const absl::Status status = (*port)->Carry(
        std::move(at),
        [&](const std::string& address) {
          fmt::print("{} is {} at {}\n", a.hub, address, a.port.device);
          std::fflush(stdout);
        },
        &InterruptGuard::raised);
    const auto& counts = (*port)->counts();
    fmt::print("{} packets sent, {} received, {} dropped\n", counts.sent.load(),
               counts.received.load(), counts.dropped.load());
    return status.ok() ? Outcome::Ok() : FromStatus(status);
  });
}

}  // namespace

CommandBody AddTun(CLI::App& app) {
  auto a = std::make_shared<TunArguments>();
  app.add_option("HUB", a->hub, "The hub, like sn0-d0-h0")->required();
  app.add_option("--device", a->port.device, "Name of the interface")->capture_default_str();
  app.add_option("--window", a->port.window,
                 "Window of the hub; the same number at all hubs that communicate")
      ->capture_default_str();
  AddFabricOptions(app, a->fabric);
  return [a] { return Tun(*a); };
}

}  // namespace percs
