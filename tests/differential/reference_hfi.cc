// The two HFIs of a hub: docs/semantics.md B.3 (injection) and B.6 (ejection).
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/packet/packet.h"
#include "tests/differential/reference_network.h"

namespace percs::reference {
namespace {

// Rule 15 and B.1: a window is pinned to port 47 + 4 x HFI + window mod 4.
PortId HfiPortOfWindow(const P7ihParameters& parameters, WindowId window) {
  return static_cast<PortId>(kHfiFirst + 4 * (window / parameters.windows_per_hfi) + window % 4);
}

}  // namespace

void Network::Create(std::size_t script_index) {
  const ScriptedPacket& script = packets_[script_index];
  Hub& hub = hubs_[script.source];
  auto packet = std::make_shared<Packet>();
  packet->script = script;
  packet->sequence = ++hub.created;
  packet->flits = FlitsFor(script.bytes);
  NodeStats& stats = Stats(hub.id);
  ++stats.packets_created;
  stats.flits_created += packet->flits;

  auto queued = std::make_shared<QueuedPacket>();
  queued->packet = packet;
  const PortId port = HfiPortOfWindow(parameters_, script.source_window);
  RoutePacket(hub, port, 0, queued.get(), /*source=*/true);
  if (queued->drop == DropReason::kNoRoute) {  // before any queue
    ++stats.packets_dropped[static_cast<int>(DropReason::kNoRoute)];
    stats.flits_dropped[static_cast<int>(DropReason::kNoRoute)] += packet->flits;
    return;
  }
  hub.hfi[port - kHfiFirst].send[queued->output].push_back(queued);
  WakeInjection(hub.id, now_);
}

void Network::Inject(NodeId node) {
  Hub& hub = hubs_[node];
  for (int k = 1; k <= kHfiPorts; ++k) {
    const int p = (hub.last_hfi_port + k) % kHfiPorts;
    HfiPort& port = hub.hfi[p];
    if (port.free_at > now_) continue;
    std::vector<PortId> eligible;
    for (auto& [output, queue] : port.send) {
      if (queue.empty()) continue;
      if (port.isr_packets[output] < parameters_.hfi_queue_packets) {
        eligible.push_back(output);
      } else {
        ++result_.coverage.isr_queue_full;
      }
    }
    if (eligible.empty()) continue;
    if (hub.w_in_free > now_) {
      ++result_.coverage.injection_waits_for_w;
      return;  // it wakes when W is free
    }
    PortId chosen = eligible.front();
    for (PortId output : eligible) {
      if (output > port.last_output) {
        chosen = output;
        break;
      }
    }
    hub.last_hfi_port = p;
    HandOver(hub, p, chosen);
    return;  // W is busy now
  }
}

void Network::HandOver(Hub& hub, int hfi_port, PortId output) {
  HfiPort& port = hub.hfi[hfi_port];
  std::shared_ptr<QueuedPacket> packet = port.send[output].front();
  port.send[output].pop_front();
  port.last_output = output;
  ++port.isr_packets[output];
  const int flits = packet->packet->flits;
  hub.w_in_free = now_ + flits * parameters_.w_flit_time;
  port.free_at = now_ + flits * parameters_.hfi.flit_time;
  WakeInjection(hub.id, hub.w_in_free);
  const NodeId node = hub.id;
  const auto isr_port = static_cast<PortId>(kHfiFirst + hfi_port);
  Schedule(port.free_at, kFlit, node, isr_port, 0, [this, node, isr_port, packet, flits] {
    for (int i = 0; i < flits; ++i) {
      packet->flits.push_back(std::make_shared<Flit>(Flit{
          .packet = packet->packet, .arrival = now_, .tail = i == flits - 1, .from = nullptr}));
    }
    Buffer& buffer = hubs_[node].buffers[{isr_port, packet->output}];
    buffer.port = isr_port;
    buffer.lane = packet->output;
    buffer.packets.push_back(packet);
    // A packet from the send queue meets the state of its port when it enters the ISR (B.7).
    if (packet->output != kReplication && !LinkUp(node, packet->output))
      packet->drop = DropReason::kLinkDown;
    Wake(node, now_);
  });
}

// The tail has reached the HFI.
void Network::Eject(NodeId node, PortId port, std::shared_ptr<QueuedPacket> packet) {
  Hub& hub = hubs_[node];
  const bool poisoned = Poisoned(*packet->flits.back());
  const auto flits = static_cast<int>(packet->flits.size());
  if (hub.w_out_free > now_) ++result_.coverage.ejection_waits_for_w;
  const Time delivery = std::max(now_, hub.w_out_free);
  hub.w_out_free = delivery + flits * parameters_.w_flit_time;
  if (delivery > now_) {
    Schedule(delivery, kEject, node, port, 0,
             [this, node, port, packet, poisoned] { Deliver(node, port, *packet, poisoned); });
  } else {
    Deliver(node, port, *packet, poisoned);
  }
}

void Network::Deliver(NodeId node, PortId port, const QueuedPacket& packet, bool poisoned) {
  NodeStats& stats = Stats(node);
  const auto flits = static_cast<int>(packet.flits.size());
  const Packet& p = *packet.packet;
  if (poisoned) {
    ++stats.packets_dropped[static_cast<int>(DropReason::kTruncated)];
    stats.flits_dropped[static_cast<int>(DropReason::kTruncated)] += flits;
    ++result_.coverage.truncated;
  } else if (std::any_of(packet.flits.begin(), packet.flits.end(),
                         [](const auto& flit) { return Corrupted(*flit); })) {
    ++stats.packets_dropped[static_cast<int>(DropReason::kCrc)];
    stats.flits_dropped[static_cast<int>(DropReason::kCrc)] += flits;
    ++result_.coverage.corrupted_packets;
  } else {
    PERCS_CHECK(flits == p.flits);
    PERCS_CHECK(node == p.script.destination || topology_.is_group(p.script.destination));
    ++stats.packets_delivered;
    stats.flits_delivered += flits;
    stats.bytes_delivered += p.script.bytes;
    stats.hops_delivered += p.hops;
    stats.packet_latency.Add(now_ - p.script.at);
    result_.nodes[node].deliveries.push_back({now_, p.script.source, p.sequence, flits, p.path});
  }
  const Time at = now_ + parameters_.credit_processing;
  Schedule(at, kCredit, node, port, 0,
           [this, node, port, at, flits] { AddCredits(node, port, 0, at, 0, flits); });
}

}  // namespace percs::reference
