// Link down and up: docs/semantics.md B.7. Both ends see the event at the same instant.
#include <algorithm>

#include "emulator/base/check.h"
#include "tests/differential/reference_network.h"

namespace percs::reference {

// What happens to a link is scheduled under its lower end: of one instant it goes down, comes up,
// and then gets its errors and lanes. Of what is set at one place the last one holds.
void Network::ScheduleFaults(std::vector<FaultSpec> faults) {
  const Time replay_max = ReplayMax(faults);
  std::stable_sort(faults.begin(), faults.end(),
                   [](const FaultSpec& a, const FaultSpec& b) { return *a.at < *b.at; });
  struct Instant {
    bool cut = false, mended = false, down_at_last = false;
  };
  std::map<std::tuple<Time, NodeId, PortId>, Instant> cuts;
  std::set<std::tuple<FaultKind, NodeId, PortId>> set;
  for (const FaultSpec& fault : faults) {
    const LinkEnd link = *fault.select.link, lower = LowerEnd(link);
    const bool mends = fault.sets == FaultSets::kMended;
    if (fault.kind == FaultKind::kLinkDown) {
      Instant& instant = cuts[{*fault.at, lower.node, lower.port}];
      (mends ? instant.mended : instant.cut) = true;
      instant.down_at_last = !mends;
      continue;
    }
    const std::tuple place{fault.kind, link.node, link.port};
    if (mends && set.erase(place) == 0) continue;
    if (!mends) set.insert(place);
    const bool corrupts =
        fault.kind == FaultKind::kBitErrors || fault.kind == FaultKind::kCorruptNext;
    if (mends && corrupts) ScheduleRetraining(lower, *fault.at, replay_max);
    const Class order = fault.kind == FaultKind::kLatency ? kLatency : kFault;
    Schedule(*fault.at, order, lower.node, lower.port, 2,
             [this, fault] { ApplyImpairment(fault); });
  }
  for (const auto& [where, instant] : cuts) {
    const auto [at, node, port] = where;
    const LinkEnd link{node, port};
    const auto change = [this, link](bool down, bool retrain) {
      Link& state = LinkAt(link.node, link.port);
      state.held_down = down;
      if (retrain) state.given_up = false;
      UpdateLink(link);
    };
    if (instant.cut) Schedule(at, kFault, node, port, 0, [change] { change(true, false); });
    if (instant.mended) {
      Schedule(at, kFault, node, port, 1,
               [change, down = instant.down_at_last] { change(down, true); });
    }
  }
}

// At once, and when every replay that began before has ended.
void Network::ScheduleRetraining(LinkEnd link, Time ended, Time replay_max) {
  for (const Time at : {ended, ended + replay_max}) {
    Schedule(at, kFault, link.node, link.port, 1, [this, link] {
      Link& state = LinkAt(link.node, link.port);
      if (state.given_up) ++result_.coverage.retrained;
      state.given_up = false;
      UpdateLink(link);
    });
  }
}

// A link is up if nothing holds it down, replay has not given it up, and it has its lanes in both
// directions.
void Network::UpdateLink(LinkEnd one) {
  Link& link = LinkAt(one.node, one.port);
  const LinkEnd other = topology_.Peer(one.node, one.port);
  const int minimum = ClassParameters(one.port).lanes_min;
  const bool up = !link.held_down && !link.given_up &&
                  WorkingLanes(one.node, one.port) >= minimum &&
                  WorkingLanes(other.node, other.port) >= minimum;
  if (link.up == up) return;
  link.up = up;
  link.was_down = true;
  ++link.generation;
  for (const LinkEnd end : {one, other}) {
    Hub& hub = hubs_[end.node];
    if (up) {
      ReceiverUp(hub, end.port);
      SendServiceCredits(hub.id, end.port,
                         parameters_.service_buffer_flits - hub.service[end.port].held);
    } else {
      ServiceLinkDown(hub, end.port);
      ReceiverDown(hub, end.port);
      SenderDown(hub, end.port);
    }
    CongestionLinkChanged(hub, end.port, up);
    Wake(end.node, now_);
  }
}

void Network::SenderDown(Hub& hub, PortId port) {
  Output& output = hub.outputs.at(port);
  if (output.busy_until > now_) ++result_.coverage.down_mid_commitment;
  for (OutputVc& vc : output.vcs) {
    vc.owner = nullptr;
    vc.credits.clear();
  }
  output.last = nullptr;
  for (auto& [key, buffer] : hub.buffers) {
    bool branches = false;
    for (const auto& packet : buffer.packets) {
      if (packet->output != port || packet->drop || packet->all_committed()) continue;
      packet->drop = DropReason::kLinkDown;
      branches = branches || packet->branch;
      DropArrived(hub, buffer, *packet);  // what is here has gone before anything arrives now
      if (packet->begun) {
        ++result_.coverage.begun_packets_drained;
      } else {
        ++result_.coverage.waiting_packets_drained;
      }
    }
    if (branches) ReleaseReplicated(hub, buffer);
  }
}

void Network::ReceiverDown(Hub& hub, PortId port) {
  for (int vc = 0; vc < VcsOf(port); ++vc) {
    Buffer& buffer = hub.buffers.at({port, vc});
    const auto newest = buffer.Newest();
    if (!newest) continue;
    QueuedPacket& last = *newest;
    if (last.complete() && last.flits.back()->arrival < now_) continue;
    if (last.truncated_here) {  // synthesised flits are not on the wire and cannot be lost again
      ++result_.coverage.down_again_before_poison;
      continue;
    }
    Truncate(hub, port, last);
    if (last.drop) DropArrived(hub, buffer, last);
  }
}

// The flits that were still to arrive are replaced; the packet gets a poison tail.
void Network::Truncate(Hub& hub, PortId port, QueuedPacket& packet) {
  NodeStats& stats = Stats(hub.id);
  ++result_.coverage.down_mid_packet;
  packet.truncated_here = true;
  for (const auto& flit : packet.flits) {
    if (flit->arrival < now_) continue;
    ++stats.flits_dropped[static_cast<int>(DropReason::kLinkDown)];
    ++stats.flits_synthesised;
    if (!flit->tail) continue;
    ++stats.packets_dropped[static_cast<int>(DropReason::kLinkDown)];
    ++stats.packets_synthesised;
    flit->poisoned = true;
    ++result_.coverage.poison_tails_in_place;
    if (flit->leaves != kNever) ++result_.coverage.poison_overtaken;
  }
  if (packet.complete()) return;
  const Time after_last = packet.flits.back()->arrival + packet.flits.back()->flit_time;
  auto poison = std::make_shared<Flit>();
  poison->packet = packet.packet;
  poison->arrival = std::max(now_, after_last);
  poison->tail = poison->poisoned = poison->set_aside = true;
  packet.flits.push_back(poison);
  ++stats.flits_synthesised;
  ++stats.packets_synthesised;
  ++result_.coverage.poison_tails_added;
  Wake(hub.id, poison->arrival);
}

// The receiver grants what is free now; slots that a running commitment frees later follow at their
// own times, as one run. Flits announced before the link died may have been promised slots that are
// still occupied by leaving flits: those slots are taken, so the first to leave return no credit.
void Network::ReceiverUp(Hub& hub, PortId port) {
  for (int vc = 0; vc < VcsOf(port); ++vc) {
    Buffer& buffer = hub.buffers.at({port, vc});
    int held = 0;
    std::vector<std::vector<Time>> commitments;  // when the flits of each have left
    std::vector<Time> leaving;
    for (const auto& packet : buffer.packets) {
      commitments.emplace_back();
      for (const auto& flit : packet->flits) {
        if (flit->set_aside || flit->leaves <= now_) continue;
        ++held;
        if (flit->leaves == kNever) continue;
        commitments.back().push_back(flit->leaves);
        leaving.push_back(flit->leaves);
      }
    }
    SendCredits(hub.id, port, vc, now_, 0, std::max(0, buffer.slots - held));
    const int promised_twice = std::max(0, held - buffer.slots);
    PERCS_CHECK(promised_twice <= static_cast<int>(leaving.size()));
    std::sort(leaving.begin(), leaving.end());
    std::multiset<Time> withheld(leaving.begin(), leaving.begin() + promised_twice);
    for (std::size_t i = 0; i < commitments.size(); ++i) {
      std::vector<Time>& times = commitments[i];
      std::erase_if(times, [&](Time at) {
        const auto it = withheld.find(at);
        if (it == withheld.end()) return false;
        withheld.erase(it);
        return true;
      });
      if (times.empty()) continue;
      const Time spacing = times.size() > 1 ? times[1] - times[0] : 0;
      const PortId output = buffer.packets[i]->output;
      result_.coverage.credits_of_changed_rate +=
          spacing != 0 && spacing != FlitTime(hub.id, output);
      SendCredits(hub.id, port, vc, times[0], spacing, static_cast<int>(times.size()));
    }
    result_.coverage.credits_after_up += leaving.size();
    result_.coverage.slots_promised_twice += promised_twice;
  }
}

}  // namespace percs::reference
