// percsctl tun: a hub as a network interface of this machine, for programs that know nothing of windows.
#include <fmt/format.h>

#include <atomic>
#include <memory>

#include "client/lib/endpoint.h"
#include "client/lib/interrupt.h"
#include "client/lib/tun_device.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "emulator/base/payload.h"

namespace percs {
namespace {

constexpr std::uint32_t kNetwork = 10u << 24;  // 10.0.0.0/8: the hub of number n is 10.0.0.1 + n
constexpr int kPrefix = 8;
constexpr int kMtu = kPacketBytesMax;          // an IP packet is one of the HFI
constexpr JobKey kIpJob = 0xffff;              // of all these interfaces, and nobody else
constexpr std::size_t kIpHeaderMin = 20;
// On their way into the fabric; beyond that the interface drops, as any does.
constexpr int kUnderWayMax = 1024;
constexpr std::chrono::milliseconds kLook(100);

struct TunArguments {
  FabricOptions fabric;
  std::string hub, device = "percs0";
  WindowId window = 255;
};

struct Traffic {
  std::atomic<int> under_way{0};
  std::atomic<std::uint64_t> sent{0}, received{0}, dropped{0};
};

std::string AddressOf(NodeId node) {
  const std::uint32_t address = kNetwork + node + 1;
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff, address & 0xff);
}

// Whose address it is for; nothing if it is no IPv4, or for nobody here.
std::optional<NodeId> DestinationOf(const std::vector<std::uint8_t>& packet) {
  if (packet.size() < kIpHeaderMin || packet[0] >> 4 != 4) return std::nullopt;
  std::uint32_t address = 0;
  for (std::size_t i = 16; i < 20; ++i) address = address << 8 | packet[i];
  if (address >> 24 != kNetwork >> 24 || address == kNetwork) return std::nullopt;
  return address - kNetwork - 1;
}

absl::StatusOr<Credentials> CredentialsFor(const FabricOptions& options) {
  std::string tls = options.tls;
  if (tls.empty() && options.controller.empty()) {
    const auto store = FabricStore::Open();
    if (!store.ok()) return store.status();
    const auto record = store->Load(options.name);
    if (!record.ok()) return record.status();
    tls = record->tls;
  }
  if (tls.empty()) return Credentials();
  return Credentials::Load(tls, RoleSet(Role::kEndpoint, Role::kOperator));
}

absl::StatusOr<std::unique_ptr<client::Endpoint>> AttachAt(const TunArguments& a, const std::string& controller) {
  auto credentials = CredentialsFor(a.fabric);
  if (!credentials.ok()) return credentials.status();
  client::EndpointOptions options;
  options.controller = controller;
  options.credentials = *std::move(credentials);
  options.hub = a.hub;
  options.job = kIpJob;
  options.window = a.window;
  options.receive_slots = 1024;
  options.send_slots = 256;
  options.name = "tun " + a.device;
  return client::Endpoint::Attach(std::move(options));
}

void SendOn(client::Endpoint& endpoint, const TunArguments& a, const std::vector<std::uint8_t>& packet,
            const std::shared_ptr<Traffic>& traffic) {
  const auto node = DestinationOf(packet);
  if (!node || traffic->under_way >= kUnderWayMax) {
    ++traffic->dropped;
    return;
  }
  ++traffic->under_way;
  endpoint.SendIp({*node, a.window}, packet).Then([traffic](const client::Completion& done) {
    --traffic->under_way;
    ++(done.status.ok() ? traffic->sent : traffic->dropped);
  });
}

absl::Status Carry(client::Endpoint& endpoint, const TunDevice& device, const TunArguments& a,
                   const std::shared_ptr<Traffic>& traffic) {
  endpoint.OnPacket([&device, traffic](const client::Packet& packet) {
    const bool taken = packet.format == WindowOp::kIpSend && device.Write(packet.data);
    ++(taken ? traffic->received : traffic->dropped);
  });
  while (!InterruptGuard::raised()) {
    if (absl::Status status = endpoint.status(); !status.ok()) return status;
    const auto packet = device.Read(kLook);
    if (!packet.ok()) return packet.status();
    if (*packet) SendOn(endpoint, a, **packet, traffic);
  }
  return absl::OkStatus();
}

Outcome Tun(const TunArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& controller) {
    auto endpoint = AttachAt(a, controller.address());
    if (!endpoint.ok()) return FromStatus(endpoint.status());
    const NodeId node = (*endpoint)->node();
    const auto device = TunDevice::Open(a.device, kNetwork + node + 1, kPrefix, kMtu);
    if (!device.ok()) return FromStatus(device.status());
    const InterruptGuard interrupt;
    fmt::print("{} is {} at {}\n", a.hub, AddressOf(node), a.device);
    std::fflush(stdout);
    const auto traffic = std::make_shared<Traffic>();
    const absl::Status status = Carry(**endpoint, *device, a, traffic);
    endpoint->reset();  // before the device, which its callbacks write to
    fmt::print("{} packets sent, {} received, {} dropped\n", traffic->sent.load(), traffic->received.load(),
               traffic->dropped.load());
    return status.ok() ? Outcome::Ok() : FromStatus(status);
  });
}

}  // namespace

CommandBody AddTun(CLI::App& app) {
  auto a = std::make_shared<TunArguments>();
  app.add_option("HUB", a->hub, "The hub, like sn0-d0-h0")->required();
  app.add_option("--device", a->device, "Name of the interface")->capture_default_str();
  app.add_option("--window", a->window, "Window of the hub; the same at all hubs that are to hear each other")
      ->capture_default_str();
  AddFabricOptions(app, a->fabric);
  return [a] { return Tun(*a); };
}

}  // namespace percs
