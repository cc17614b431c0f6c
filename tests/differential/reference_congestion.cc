// What hubs tell each other about their D links: docs/semantics.md B.12.
#include <algorithm>
#include <map>

#include "tests/differential/reference_network.h"

namespace percs::reference {

// At every multiple of the period, as long as anything else is to happen.
void Network::ScheduleLook(Time at) {
  Schedule(at, kCongestion, 0, 0, 0, [this, at] {
    for (Hub& hub : hubs_) {
      if (hub.id < topology_.hubs()) Look(hub);
    }
    if (!events_.empty()) ScheduleLook(at + parameters_.congestion_period);
  });
}

std::uint64_t Network::WaitingFor(const Hub& hub, PortId output) {
  std::uint64_t flits = 0;
  for (const auto& [key, buffer] : hub.buffers) {
    for (const auto& packet : buffer.packets) {
      if (packet->output == output && !packet->drop) flits += packet->flits.size() - packet->next;
    }
  }
  return flits;
}

void Network::Look(Hub& hub) {
  std::map<PortId, std::uint64_t> waiting;
  for (PortId d = kDFirst; d < kHfiFirst; ++d) {
    if (topology_.connected(hub.id, d)) waiting[d] = WaitingFor(hub, d);
  }
  for (const auto& [d, flits] : waiting) {
    std::uint64_t of_others = 0;
    for (const auto& [other, theirs] : waiting) of_others += other == d ? 0 : theirs;
    std::uint64_t from = static_cast<std::uint64_t>(parameters_.congestion_threshold);
    if (waiting.size() > 1) from += 2 * of_others / (waiting.size() - 1);
    const DState state{routing_.reports() == CongestionReport::kBits ? 0 : flits, flits >= from};
    if (state == hub.d_state[d]) continue;
    hub.d_state[d] = state;
    ++result_.coverage.congestion_reports;
    for (PortId port = 0; port < kDFirst; ++port) TellCongestion(hub, port, d);
  }
}

void Network::TellCongestion(Hub& hub, PortId port, PortId d) {
  if (!topology_.connected(hub.id, port) || !LinkUp(hub.id, port)) return;
  const LinkEnd peer = topology_.Peer(hub.id, port);
  const Time arrival = now_ + Propagation(hub.id, port) + parameters_.credit_processing;
  Schedule(arrival, kCongestion, peer.node, peer.port, d,
           [this, peer, d, state = hub.d_state[d], sent = now_,
            generation = LinkAt(hub.id, port).generation] {
             const Link& link = LinkAt(peer.node, peer.port);
             if (!link.up || link.generation != generation) {
               ++result_.coverage.congestion_reports_lost;
               return;
             }
             auto& [known, when] = hubs_[peer.node].told[{peer.port, d}];
             if (sent < when) return;
             known = state;
             when = sent;
           });
}

// The link of an L port has come up or gone down.
void Network::CongestionLinkChanged(Hub& hub, PortId port, bool up) {
  if (routing_.reports() == CongestionReport::kNone || !IsL(port)) return;
  if (!up) {
    std::erase_if(hub.told, [port](const auto& entry) { return entry.first.first == port; });
    return;
  }
  for (const auto& [d, state] : hub.d_state) {
    if (state != DState()) TellCongestion(hub, port, d);
  }
}

// As far as the hub knows: flits that wait for the D links to `supernode` of the hub behind an
// output, or of this hub if the output is a D port, and whether one is congested.
DState Network::StateBehind(const Hub& hub, PortId output, int supernode) const {
  const NodeId there = IsD(output) ? hub.id : topology_.Peer(hub.id, output).node;
  DState most;
  const auto add = [&most](const DState& state) {
    most = {std::max(most.flits, state.flits), most.congested || state.congested};
  };
  for (PortId d = kDFirst; d < kHfiFirst; ++d) {
    const NodeId far = topology_.Peer(there, d).node;
    if (far == kNoNode || topology_.is_blade(far) || topology_.supernode_of(far) != supernode)
      continue;
    if (IsD(output)) {
      const auto own = hub.d_state.find(d);
      if (own != hub.d_state.end()) add(own->second);
    } else {
      const auto told = hub.told.find({output, d});
      if (told != hub.told.end()) add(told->second.first);
    }
  }
  return most;
}

}  // namespace percs::reference
