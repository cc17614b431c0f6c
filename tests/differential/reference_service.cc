// Service ports and the VC of management packets: docs/semantics.md B.10.
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/random.h"
#include "tests/differential/reference_network.h"

namespace percs::reference {

void Network::ScheduleService(const ServiceTraffic& traffic) {
  service_ = traffic;
  std::vector<std::vector<Time>> at(hubs_.size());
  for (const ServicePing& ping : traffic.pings) {
    for (std::uint64_t k = 0; k < ping.count; ++k) {
      hubs_[ping.from].requests.push_back({.to = ping.to, .port = std::nullopt});
      at[ping.from].push_back(ping.at + static_cast<Time>(k) * ping.period);
    }
  }
  for (NodeId node = 0; node < topology_.hubs(); ++node) {
    for (std::uint64_t k = 0; k < traffic.probe_rounds; ++k) {
      for (int p = 0; p < kLinkPorts; ++p) {
        const auto port = static_cast<PortId>(p);
        const LinkEnd peer = topology_.Peer(node, port);
        if (peer.node == kNoNode || topology_.is_blade(peer.node)) continue;
        hubs_[node].requests.push_back({.to = peer.node, .port = port});
        at[node].push_back(traffic.probe_at + static_cast<Time>(k) * traffic.probe_period);
      }
    }
    for (std::size_t i = 0; i < at[node].size(); ++i) {
      Schedule(at[node][i], kService, node, 0, static_cast<int>(i),
               [this, node, i] { ServiceDue(hubs_[node], i); });
    }
  }
}

void Network::ServiceDue(Hub& hub, std::size_t number) {
  ServiceRequest& request = hub.requests[number];
  if (request.done) return;
  if (request.tries == service_.tries) {
    request.done = true;
    ++Stats(hub.id).service_unanswered;
    ++result_.coverage.service_unanswered;
    return;
  }
  ++request.tries;
  result_.coverage.service_repeats += request.tries > 1;
  request.sent = now_;
  ++Stats(hub.id).service_requests;
  Schedule(now_ + service_.timeout, kService, hub.id, 0, static_cast<int>(number),
           [this, node = hub.id, number] { ServiceDue(hubs_[node], number); });
  ServicePacket packet;
  packet.destination = request.to;
  packet.directed = request.port.has_value();
  packet.request = number;
  CreateService(hub, packet, request.port.value_or(kNoPort));
}

void Network::CreateService(Hub& hub, ServicePacket packet, PortId output) {
  NodeStats& stats = Stats(hub.id);
  ++stats.packets_created;
  ++stats.flits_created;
  packet.source = hub.id;
  packet.sequence = (std::uint64_t{1} << 62) + ++hub.service_created;
  packet.output = output;
  ServiceLane& entry = hub.service[kServicePort];
  if (entry.held == parameters_.service_buffer_flits) {
    ++result_.coverage.service_no_slot;
    return DropService(hub.id, DropReason::kNoServiceSlot);
  }
  ++entry.held;
  hub.entry_free = std::max(hub.entry_free, now_) + parameters_.hfi.flit_time;
  Schedule(hub.entry_free, kFlit, hub.id, kServicePort, kServiceVc,
           [this, node = hub.id, shared = std::make_shared<ServicePacket>(packet)] {
             ServiceArrives(node, kServicePort, 0, shared);
           });
}

void Network::DropService(NodeId node, DropReason reason) {
  ++Stats(node).packets_dropped[static_cast<int>(reason)];
  ++Stats(node).flits_dropped[static_cast<int>(reason)];
  result_.coverage.service_timeouts += reason == DropReason::kServiceTimeout;
  result_.coverage.service_link_down += reason == DropReason::kLinkDown;
}

void Network::ServiceArrives(NodeId node, PortId port, std::uint64_t generation,
                             std::shared_ptr<ServicePacket> packet) {
  Hub& hub = hubs_[node];
  if (port != kServicePort) {
    const Link& link = LinkAt(node, port);
    if (!link.up || link.generation != generation) return DropService(node, DropReason::kLinkDown);
    ++hub.service[port].held;
    PERCS_CHECK(hub.service[port].held <= parameters_.service_buffer_flits);
  }
  packet->input = port;
  packet->arrived = now_;
  if (packet->destination == node || (packet->directed && port != kServicePort)) {
    packet->output = kServicePort;
  } else if (packet->hops == (graph_ ? 250 : 5)) {
    ++result_.coverage.no_vc_position;
    FreeServiceSlot(hub, port);
    return DropService(node, DropReason::kNoVcPosition);
  } else if (!packet->directed) {
    const bool intra = topology_.supernode_of(packet->destination) == topology_.supernode_of(node);
    const int index = intra ? topology_.hub_in_supernode(packet->destination)
                            : topology_.supernode_of(packet->destination);
    const PortMask mask = Entry(hub, port, TableKind::kDirect, intra, index);
    if (mask == 0) {
      ++result_.coverage.no_route;
      FreeServiceSlot(hub, port);
      return DropService(node, DropReason::kNoRoute);
    }
    packet->output = Choose(hub, port, TableKind::kDirect,
                            topology_.supernode_of(packet->destination), mask, true);
  }
  if (packet->output != kServicePort && !LinkUp(node, packet->output)) {
    FreeServiceSlot(hub, port);
    return DropService(node, DropReason::kLinkDown);
  }
  hub.service[packet->output].waiting.push_back(packet);
  Wake(node, now_);
  Wake(node, now_ + parameters_.service_wait);
}

void Network::FreeServiceSlot(Hub& hub, PortId input) {
  --hub.service[input].held;
  if (input != kServicePort) SendServiceCredits(hub.id, input, 1);
}

void Network::SendServiceCredits(NodeId node, PortId port, int count) {
  const Link& link = LinkAt(node, port);
  if (!link.up || count == 0) return;
  const LinkEnd peer = topology_.Peer(node, port);
  ServiceLane& lane = hubs_[peer.node].service[peer.port];
  lane.credits_under_way += count;
  const Time at = now_ + Propagation(node, port) + parameters_.credit_processing;
  Schedule(at, kCredit, peer.node, peer.port, kServiceVc,
           [this, peer, count, generation = link.generation] {
             const Link& now = LinkAt(peer.node, peer.port);
             if (!now.up || now.generation != generation) return;
             ServiceLane& lane = hubs_[peer.node].service[peer.port];
             lane.credits += count;
             lane.credits_under_way -= count;
             Wake(peer.node, now_);
           });
}

// After all inputs of an instant.
void Network::ExpireService(Hub& hub) {
  for (ServiceLane& lane : hub.service) {
    while (!lane.waiting.empty() &&
           lane.waiting.front()->arrived + parameters_.service_wait <= now_) {
      FreeServiceSlot(hub, lane.waiting.front()->input);
      lane.waiting.pop_front();
      DropService(hub.id, DropReason::kServiceTimeout);
    }
  }
}

// True if the free output goes to a management packet.
bool Network::GrantService(Hub& hub, PortId port, Output& output, bool data_can_go) {
  ServiceLane& lane = hub.service[port];
  if (lane.waiting.empty()) return false;
  const bool software = port == kServicePort;
  if (!software && lane.credits == 0) {
    ++result_.coverage.service_lacked_credit;
    return false;
  }
  if (output.service_last && data_can_go) {
    ++result_.coverage.service_made_way;
    return false;
  }
  const auto packet = lane.waiting.front();
  lane.waiting.pop_front();
  FreeServiceSlot(hub, packet->input);
  ++result_.coverage.service_grants;
  result_.coverage.service_waits += packet->arrived < now_;
  ++Stats(hub.id).ports[port].service_flits;
  packet->path = Mix64(packet->path ^ (((static_cast<std::uint64_t>(hub.id) << 8) | port) + 1));
  output.service_last = true;
  const Time f = software ? parameters_.hfi.flit_time : FlitTime(hub.id, port);
  const Transmission sent = software ? Transmission{1, now_, {false}} : Transmit(hub, port, 1);
  output.busy_until = sent.start + f;
  Wake(hub.id, output.busy_until);
  if (software) {
    Schedule(output.busy_until + parameters_.isr_latency, kServiceOut, hub.id, port, 0,
             [this, node = hub.id, packet] { ServiceDelivered(node, packet); });
    return true;
  }
  --lane.credits;
  ++packet->hops;
  packet->corrupted = packet->corrupted || sent.corrupted[0];
  const LinkEnd peer = topology_.Peer(hub.id, port);
  Schedule(output.busy_until + parameters_.isr_latency + Propagation(hub.id, port), kFlit,
           peer.node, peer.port, kServiceVc,
           [this, peer, packet, generation = LinkAt(hub.id, port).generation] {
             ServiceArrives(peer.node, peer.port, generation, packet);
           });
  return true;
}

void Network::ServiceDelivered(NodeId node, std::shared_ptr<ServicePacket> packet) {
  Hub& hub = hubs_[node];
  NodeStats& stats = Stats(node);
  if (packet->corrupted) return DropService(node, DropReason::kCrc);
  ++stats.packets_delivered;
  ++stats.flits_delivered;
  stats.hops_delivered += packet->hops;
  result_.nodes[node].deliveries.push_back(
      {now_, packet->source, packet->sequence, 1, packet->path});
  if (!packet->answer) {
    ServicePacket answer;
    answer.destination = packet->source;
    answer.answer = true;
    answer.directed = packet->directed;
    answer.request = packet->request;
    answer.identity = {node, packet->directed ? packet->input : -1};
    CreateService(hub, answer, packet->directed ? packet->input : kNoPort);
    return;
  }
  ServiceRequest& request = hub.requests[packet->request];
  if (request.done) return;
  request.done = true;
  ++result_.coverage.service_answers;
  ++stats.service_answers;
  const auto took = static_cast<std::uint64_t>(now_ - request.sent);
  stats.service_round_trip_ps += took;
  stats.service_round_trip_max = std::max(stats.service_round_trip_max, took);
  const int port = request.port ? topology_.Peer(node, *request.port).port : -1;
  stats.service_wrong_partner += packet->identity != std::pair<NodeId, int>(request.to, port);
}

void Network::ServiceLinkDown(Hub& hub, PortId port) {
  ServiceLane& lane = hub.service[port];
  lane.credits = lane.credits_under_way = 0;
  for (const auto& packet : lane.waiting) {
    FreeServiceSlot(hub, packet->input);
    DropService(hub.id, DropReason::kLinkDown);
  }
  lane.waiting.clear();
}

}  // namespace percs::reference
