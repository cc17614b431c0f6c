// Errors, replay and lanes of links: docs/semantics.md B.8.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "tests/differential/reference_network.h"

namespace percs::reference {

void Network::ApplyImpairment(const FaultSpec& fault) {
  if (fault.kind == FaultKind::kLatency) return ApplyLatency(fault);
  if (fault.kind != FaultKind::kLaneLoss) return ApplyErrors(fault);
  const LinkEnd sender = *fault.select.link;
  const std::vector<Time> fronts = RequestInstants(sender.node, sender.port);
  Stats(sender.node).ports[sender.port].lanes_lost = fault.lanes;
  LinkAt(sender.node, sender.port).lanes_lost[sender.node] = static_cast<int>(fault.lanes);
  const LinkParameters& link = ClassParameters(sender.port);
  if (WorkingLanes(sender.node, sender.port) < link.lanes) ++result_.coverage.rates_reduced;
  if (WorkingLanes(sender.node, sender.port) < link.lanes_min)
    ++result_.coverage.links_without_lanes;
  result_.coverage.fronts_moved_by_rate += fronts != RequestInstants(sender.node, sender.port);
  UpdateLink(sender);
  Wake(sender.node, now_);
}

// Rule 23: the longest that replays of one flit take, on any link.
Time Network::ReplayMax(const std::vector<FaultSpec>& faults) {
  Time longest = 0, latencies = 0, cable = 0;
  for (const auto& [end, link] : links_) cable = std::max(cable, link.wire.value_or(0));
  for (const FaultSpec& fault : faults) latencies += fault.latency;
  for (const LinkClass link_class : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD}) {
    const LinkParameters& link = parameters_.link(link_class);
    const Time slowest = (link.flit_time * link.lanes + link.lanes_min - 1) / link.lanes_min;
    longest = std::max(longest, 2 * slowest + 2 * std::max(link.wire, cable));
  }
  return parameters_.replay_limit * (longest + parameters_.credit_processing + 2 * latencies) + 1;
}

void Network::ApplyLatency(const FaultSpec& fault) {
  const auto [node, port] = *fault.select.link;
  Output& output = hubs_[node].outputs[port];
  output.ahead = std::max(output.ahead, output.busy_until + Propagation(node, port));
  LinkAt(node, port).latency[node] = fault.latency;
  if (fault.latency > 0) ++result_.coverage.latencies_added;
}

// Of the fronts for one output that have not begun: from when on each requests, or now if that has
// passed.
std::vector<Time> Network::RequestInstants(NodeId node, PortId output) {
  std::vector<Time> instants;
  for (const auto& [key, buffer] : hubs_[node].buffers) {
    const auto front = buffer.Front(output);
    if (front && !front->begun && !front->flits.empty()) {
      instants.push_back(std::max(now_, RequestsFrom(hubs_[node], buffer, *front)));
    }
  }
  return instants;
}

int Network::WorkingLanes(NodeId node, PortId port) {
  const LinkParameters& link = ClassParameters(port);
  return std::min(link.lanes, link.lanes + link.spare_lanes - LinkAt(node, port).lanes_lost[node]);
}

Time Network::FlitTime(NodeId node, PortId port) {
  const LinkParameters& link = ClassParameters(port);
  if (IsHfi(port)) return link.flit_time;
  const Time lanes = std::max(WorkingLanes(node, port), link.lanes_min);
  return (link.flit_time * link.lanes + lanes - 1) / lanes;  // the fewer, the longer; rounded up
}

void Network::ApplyErrors(const FaultSpec& fault) {
  const auto [node, port] = *fault.select.link;
  auto [entry, made] = wires_.try_emplace({node, port});
  Wire& wire = entry->second;
  if (made) wire.errors = RandomStream(seed_, fmt::format("node/{}/port/{}/errors", node, port));
  if (fault.kind == FaultKind::kCorruptNext) {
    wire.corrupt_next = fault.corrupt == 0 ? 0 : wire.corrupt_next + fault.corrupt;
  } else {
    wire.rate = fault.flit_error_rate;
    DrawErrors(wire);
  }
}

void Network::DrawErrors(Wire& wire) {
  wire.intact.reset();
  if (wire.rate == 0) return;
  const double distance = std::floor(std::log(wire.errors.Unit()) / std::log1p(-wire.rate));
  if (distance < 1e18) wire.intact = static_cast<std::uint64_t>(distance);
}

// One transmission of a flit that the receiver waits for.
bool Network::ArrivesIntact(Wire& wire) {
  if (wire.corrupt_next > 0) {
    --wire.corrupt_next;
    return false;
  }
  if (!wire.intact) return true;
  if (*wire.intact == 0) {
    DrawErrors(wire);
    return false;
  }
  --*wire.intact;
  return true;
}

Transmission Network::Transmit(Hub& hub, PortId port, int certain) {
  Transmission sent{certain, now_, std::vector<bool>(static_cast<std::size_t>(certain), false)};
  if (!IsHfi(port)) {
    const Time may_start = hub.outputs[port].ahead - Propagation(hub.id, port);
    if (may_start > now_) ++result_.coverage.held_behind_latency, sent.start = may_start;
  }
  const auto entry = wires_.find({hub.id, port});
  if (entry == wires_.end()) return sent;
  Wire& wire = entry->second;
  PortStats& stats = Stats(hub.id).ports[port];
  Coverage& coverage = result_.coverage;
  if (!parameters_.link_replay) {
    for (int i = 0; i < certain; ++i) {
      const bool corrupted = !ArrivesIntact(wire);
      sent.corrupted[static_cast<std::size_t>(i)] = corrupted;
      stats.crc_errors += corrupted;
    }
    return sent;
  }
  const LinkEnd far = topology_.Peer(hub.id, port);
  const Time f = FlitTime(hub.id, port),
             delays = Propagation(hub.id, port) + Propagation(far.node, far.port);
  Time round = 0;  // in whole flits: those sent until the sender hears of the first
  while (round < f + delays + parameters_.credit_processing) round += f;
  int replays = 0;
  while (replays < parameters_.replay_limit && !ArrivesIntact(wire)) ++replays;
  stats.crc_errors += replays;
  stats.replays += replays;
  coverage.replays += replays;
  if (replays > 1) ++coverage.replays_in_a_row;
  sent.start += replays * round;
  sent.flits = 1;
  if (replays == parameters_.replay_limit) {
    ++coverage.replays_exhausted;
    const LinkEnd end{hub.id, port};
    const LinkEnd lower = LowerEnd(end);
    Schedule(sent.start, kFault, lower.node, lower.port, 0,
             [this, end, generation = LinkAt(end.node, end.port).generation] {
               if (LinkAt(end.node, end.port).generation != generation) {
                 ++result_.coverage.given_up_too_late;
                 return;
               }
               LinkAt(end.node, end.port).given_up = true;
               UpdateLink(end);
             });
    return sent;
  }
  // The first flit has come through; the others go on with it as far as they do so at once.
  while (replays == 0 && sent.flits < certain) {
    if (wire.corrupt_next > 0 || (wire.intact && *wire.intact == 0)) {
      ++coverage.runs_split_by_error;
      break;
    }
    ArrivesIntact(wire);
    ++sent.flits;
  }
  return sent;
}

}  // namespace percs::reference
