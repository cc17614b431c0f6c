#include "client/endpoint/tun_port.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "emulator/base/payload.h"

namespace percs::client {
namespace {

constexpr std::uint32_t kNetwork = 10u << 24;  // 10.0.0.0/8
constexpr int kPrefix = 8;
constexpr int kMtu = kPacketBytesMax;  // an IP packet is one of the HFI
constexpr JobKey kIpJob = 0xffff;      // of all these interfaces, and of no other program
constexpr std::size_t kIpHeaderMin = 20;
// On their way into the fabric; beyond that the interface drops, as any does.
constexpr int kUnderWayMax = 1024;
constexpr Duration kLook(100);
// Of one attempt to attach: a percsd that ends waits for no longer.
constexpr Duration kAttempt(3'000);

std::uint32_t AddressOf(NodeId node) { return kNetwork + node + 1; }

std::string AddressText(NodeId node) {
  const std::uint32_t a = AddressOf(node);
  return fmt::format("{}.{}.{}.{}", a >> 24, a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff);
}

// Whose address it is for; nothing if it is no IPv4, or for no hub here.
std::optional<NodeId> DestinationOf(const Bytes& packet) {
  if (packet.size() < kIpHeaderMin || packet[0] >> 4 != 4) return std::nullopt;
  std::uint32_t address = 0;
  for (std::size_t i = 16; i < 20; ++i) address = address << 8 | packet[i];
  if (address >> 24 != kNetwork >> 24 || address == kNetwork) return std::nullopt;
  return address - kNetwork - 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TunPort>> TunPort::Open(const TunOptions& options) {
  auto device = TunDevice::Open(options.device, kMtu);
  if (!device.ok()) return device.status();
  return std::unique_ptr<TunPort>(new TunPort(options, *std::move(device)));
}

void TunPort::Send(Endpoint& endpoint, const Bytes& packet) const {
  const auto node = DestinationOf(packet);
  if (!node || counts_->under_way >= kUnderWayMax) {
    ++counts_->dropped;
    return;
  }
  ++counts_->under_way;
  endpoint.SendIp({*node, options_.window}, packet)
      .Then([counts = counts_](const Completion& done) {
        --counts->under_way;
        ++(done.status.ok() ? counts->sent : counts->dropped);
      });
}

absl::Status TunPort::Carry(EndpointOptions at,
                            const std::function<void(const std::string& address)>& attached,
                            const std::function<bool()>& stop) {
  at.job = kIpJob;
  at.window = options_.window;
  at.receive_slots = 1024;
  at.send_slots = 256;
  at.name = "tun " + options_.device;
  auto endpoint = Endpoint::Attach(std::move(at));
  if (!endpoint.ok()) return endpoint.status();
  const NodeId node = (*endpoint)->node();
  if (absl::Status status = device_.Raise(AddressOf(node), kPrefix); !status.ok()) return status;
  attached(AddressText(node));
  (*endpoint)->OnPacket([this](const Packet& packet) {
    const bool taken = packet.format == Transfer::kIpSend && device_.Write(packet.data);
    ++(taken ? counts_->received : counts_->dropped);
  });
  absl::Status status;
  while (status.ok() && !stop()) {
    status = (*endpoint)->status();
    if (!status.ok()) break;
    const auto packet = device_.Read(kLook);
    if (!packet.ok()) {
      status = packet.status();
    } else if (*packet) {
      Send(**endpoint, **packet);
    }
  }
  endpoint->reset();  // its callbacks write to the device
  device_.Lower();
  return status;
}

TunKeeper::TunKeeper(std::unique_ptr<TunPort> port, EndpointOptions at,
                     std::function<void(const std::string&)> say)
    : port_(std::move(port)),
      at_(std::move(at)),
      say_(std::move(say)),
      thread_([this] { Run(); }) {}

TunKeeper::~TunKeeper() {
  stop_ = true;
  thread_.join();
}

void TunKeeper::Run() {
  std::string said;
  while (!stop_) {
    EndpointOptions at = at_;
    at.deadline = kAttempt;
    const absl::Status status = port_->Carry(
        std::move(at),
        [&](const std::string& address) {
          said.clear();
          say_(fmt::format("this node is {}", address));
        },
        [this] { return stop_.load(); });
    // Most of the time there is no scenario; that is said once.
    if (std::string text(status.message()); !status.ok() && text != said) say_(said = text);
    for (auto left = kAttempt / 10; !stop_ && left > Duration(0); left -= kLook)
      std::this_thread::sleep_for(kLook);
  }
}

}  // namespace percs::client
