// One hub: docs/semantics.md B.2 (arrival), B.4 (requests), B.5 (arbitration).
#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/random.h"
#include "tests/differential/reference_network.h"

namespace percs::reference {
// A commitment of the far end, at the arrival of its first flit.
void Network::Announce(NodeId node, PortId port, int vc, std::uint64_t generation,
                       std::vector<std::shared_ptr<Flit>> flits) {
  Hub& hub = hubs_[node];
  const Link& link = LinkAt(node, port);
  if (!link.up || link.generation != generation) {
    NodeStats& stats = Stats(node);
    for (const auto& flit : flits) {
      ++stats.flits_dropped[static_cast<int>(DropReason::kLinkDown)];
      if (flit->tail) ++stats.packets_dropped[static_cast<int>(DropReason::kLinkDown)];
    }
    return;
  }
  Buffer& buffer = hub.buffers.at({port, vc});
  const bool head = buffer.packets.empty() || buffer.packets.back()->complete();
  if (head) {
    auto queued = std::make_shared<QueuedPacket>();
    queued->packet = flits.front()->packet;
    RoutePacket(hub, port, vc, queued.get(), /*source=*/false);
    buffer.packets.push_back(queued);
  }
  QueuedPacket& open = *buffer.packets.back();
  PERCS_CHECK(open.packet == flits.front()->packet);
  for (auto& flit : flits) {
    Wake(node, flit->arrival);
    open.flits.push_back(std::move(flit));
  }
}

// After all inputs of an instant: what is dropped now, and who has left.
void Network::Settle(NodeId node) {
  for (auto& [key, buffer] : hubs_[node].buffers) SettleBuffer(hubs_[node], buffer);
}

void Network::SettleBuffer(Hub& hub, Buffer& buffer) {
  int present = 0;
  for (auto it = buffer.packets.begin(); it != buffer.packets.end();) {
    QueuedPacket& packet = **it;
    if (packet.drop) DropArrived(hub, buffer, packet);
    for (const auto& flit : packet.flits) {
      present += flit->arrival <= now_ && flit->leaves > now_ && !flit->set_aside;
    }
    if (!packet.all_committed() || packet.flits.back()->leaves > now_) {
      ++it;
      continue;
    }
    if (IsHfi(buffer.port)) --hub.hfi[buffer.port - kHfiFirst].isr_packets[packet.output];
    it = buffer.packets.erase(it);
  }
  PERCS_CHECK(IsHfi(buffer.port) || present <= buffer.slots);
}

void Network::DropArrived(Hub& hub, Buffer& buffer, QueuedPacket& packet) {
  if (packet.commitment_end > now_) return;
  NodeStats& stats = Stats(hub.id);
  const int reason = static_cast<int>(*packet.drop);
  int credits = 0;
  for (; packet.next < packet.flits.size(); ++packet.next) {
    Flit& flit = *packet.flits[packet.next];
    if (flit.arrival > now_) break;
    flit.leaves = now_;
    ++stats.flits_dropped[reason];
    if (flit.tail) ++stats.packets_dropped[reason];
    credits += !flit.set_aside;
  }
  if (!IsHfi(buffer.port)) SendCredits(hub.id, buffer.port, buffer.lane, now_, 0, credits);
}

bool Network::Requests(Hub& hub, const Buffer& buffer, const QueuedPacket& packet) {
  if (packet.drop || packet.all_committed()) return false;
  if (packet.begun) {
    return packet.next < packet.flits.size() && packet.flits[packet.next]->arrival <= now_;
  }
  if (IsHfi(buffer.port)) return true;
  const Time f = ClassParameters(packet.output).flit_time;
  Time from = kNever;
  if (packet.complete()) {
    Time e1 = 0;
    for (std::size_t i = 0; i < packet.flits.size(); ++i) {
      e1 = std::max(e1, packet.flits[i]->arrival - static_cast<Time>(i) * f);
    }
    from = e1;
  }
  if (buffer.slots < packet.length() && static_cast<int>(packet.flits.size()) >= buffer.slots) {
    from = std::min(from, packet.flits[buffer.slots - 1]->arrival);
  }
  if (from > now_ && from != kNever) Wake(hub.id, from);
  return from <= now_;
}

void Network::Arbitrate(NodeId node) {
  Hub& hub = hubs_[node];
  for (auto& [port, output] : hub.outputs) ArbitrateOutput(hub, port, output);
}

void Network::ArbitrateOutput(Hub& hub, PortId port, Output& output) {
  if (output.busy_until > now_ || !LinkUp(hub.id, port)) {
    UpdateStall(hub, port, output, false);
    return;
  }
  bool lacks_only_credit = false;
  std::map<int, std::map<int, Buffer*>> can_be_granted;  // by output VC, then by index
  Buffer* continues = nullptr;
  for (auto& [key, buffer] : hub.buffers) {
    const std::shared_ptr<QueuedPacket> oldest = buffer.Front(port);
    if (!oldest || !Requests(hub, buffer, *oldest)) continue;
    const QueuedPacket& front = *oldest;
    const OutputVc& vc = output.vcs[front.output_vc];
    if (vc.owner != (front.begun ? &front : nullptr)) continue;
    if (vc.credits.empty() || *vc.credits.begin() > now_) {
      lacks_only_credit = true;
      continue;
    }
    can_be_granted[front.output_vc][buffer.index()] = &buffer;
    if (output.busy_until == now_ && output.last == &front) continues = &buffer;
  }
  UpdateStall(hub, port, output, can_be_granted.empty() && lacks_only_credit);
  std::size_t contenders = 0;
  for (const auto& [vc, buffers] : can_be_granted) contenders += buffers.size();
  if (contenders > 1) ++result_.coverage.contended_grants;
  if (can_be_granted.size() > 1) ++result_.coverage.contended_vcs;
  if (output.last && output.busy_until == now_ && !continues && !can_be_granted.empty()) {
    ++result_.coverage.lost_after_split;
  }
  if (continues) {
    Grant(hub, port, output, *continues, /*continued=*/true);
  } else if (!can_be_granted.empty()) {
    auto served = can_be_granted.upper_bound(output.last_vc);
    if (served == can_be_granted.end()) served = can_be_granted.begin();
    output.last_vc = served->first;
    int& pointer = output.vcs[static_cast<std::size_t>(served->first)].pointer;
    auto winner = served->second.upper_bound(pointer);
    if (winner == served->second.end()) winner = served->second.begin();
    pointer = winner->first;
    Grant(hub, port, output, *winner->second, /*continued=*/false);
  }
}

// The longest run whose flits and credits are certain, from what is announced by now.
int Network::CommitmentLength(const QueuedPacket& packet, const OutputVc& vc, Time flit_time) {
  int m = 0;
  auto credit = vc.credits.begin();
  while (packet.next + m < packet.flits.size()) {
    const Time start = now_ + m * flit_time;
    if (packet.flits[packet.next + m]->arrival > start) break;
    if (credit == vc.credits.end() || *credit > start) {
      ++result_.coverage.runs_split_by_credit;
      return m;
    }
    if (*credit > now_) ++result_.coverage.future_credits_used;
    ++m;
    ++credit;
  }
  if (packet.next + m < static_cast<std::size_t>(packet.length())) {
    ++result_.coverage.runs_split_by_presence;
  }
  return m;
}

void Network::Grant(Hub& hub, PortId port, Output& output, Buffer& buffer, bool continued) {
  const std::shared_ptr<QueuedPacket> shared = buffer.Front(port);
  QueuedPacket& packet = *shared;
  OutputVc& vc = output.vcs[packet.output_vc];
  const Time f = ClassParameters(port).flit_time;
  const int m = CommitmentLength(packet, vc, f);
  PERCS_CHECK(m >= 1);
  NoteGrant(hub, port, output, buffer, packet, m, continued);
  if (!packet.begun) {
    Packet& p = *packet.packet;
    p.path = Mix64(p.path ^ (((static_cast<std::uint64_t>(hub.id) << 8) | port) + 1));
    if (!IsHfi(port)) ++p.hops;
  }
  packet.begun = true;

  const std::size_t first = packet.next;
  int slots = 0;
  for (int i = 0; i < m; ++i) {
    Flit& flit = *packet.flits[packet.next++];
    flit.leaves = now_ + (i + 1) * f;
    slots += !flit.set_aside;
    vc.credits.erase(vc.credits.begin());
  }
  packet.commitment_end = output.busy_until = now_ + m * f;
  Wake(hub.id, output.busy_until);
  const bool tail = packet.all_committed();
  vc.owner = tail ? nullptr : &packet;
  output.last = tail ? nullptr : &packet;
  if (!IsHfi(buffer.port)) SendCredits(hub.id, buffer.port, buffer.lane, now_ + f, f, slots);
  SendFlits(hub, port, packet, shared, first, m);
}

void Network::SendFlits(Hub& hub, PortId port, QueuedPacket& packet,
                        std::shared_ptr<QueuedPacket> shared, std::size_t first, int count) {
  const LinkParameters& link = ClassParameters(port);
  const Time delay = parameters_.isr_latency + link.flit_time + (IsHfi(port) ? 0 : link.wire);
  if (IsHfi(port)) {
    if (!packet.all_committed()) return;  // only the tail matters to the HFI
    const Time at = now_ + (count - 1) * link.flit_time + delay;
    Schedule(at, kEject, hub.id, port, 0,
             [this, node = hub.id, port, shared] { Eject(node, port, shared); });
    return;
  }
  std::vector<std::shared_ptr<Flit>> flits;
  for (int i = 0; i < count; ++i) {
    const auto& flit = packet.flits[first + i];
    flits.push_back(std::make_shared<Flit>(Flit{.packet = packet.packet,
                                                .arrival = now_ + i * link.flit_time + delay,
                                                .tail = flit->tail,
                                                .from = flit}));
  }
  const LinkEnd peer = topology_.Peer(hub.id, port);
  Schedule(now_ + delay, kFlit, peer.node, peer.port, packet.output_vc,
           [this, peer, vc = packet.output_vc, generation = LinkAt(hub.id, port).generation,
            flits = std::move(flits)] { Announce(peer.node, peer.port, vc, generation, flits); });
}

// `count` slots of input (port, vc), free from `first_free` on, return to the far end as one run.
void Network::SendCredits(NodeId node, PortId port, int vc, Time first_free, Time spacing,
                          int count) {
  const Link& link = LinkAt(node, port);
  if (count == 0 || !link.up) return;
  const Time first = first_free + ClassParameters(port).wire + parameters_.credit_processing;
  const LinkEnd peer = topology_.Peer(node, port);
  Schedule(first, kCredit, peer.node, peer.port, vc,
           [this, peer, vc, first, spacing, count, generation = link.generation] {
             const Link& now = LinkAt(peer.node, peer.port);
             if (!now.up || now.generation != generation) {
               ++result_.coverage.credits_of_old_generation;
               return;
             }
             AddCredits(peer.node, peer.port, vc, first, spacing, count);
           });
}

void Network::AddCredits(NodeId node, PortId port, int vc, Time first, Time spacing, int count) {
  for (int i = 0; i < count; ++i) {
    hubs_[node].outputs.at(port).vcs[vc].credits.insert(first + i * spacing);
    Wake(node, first + i * spacing);
  }
}

void Network::UpdateStall(Hub& hub, PortId port, Output& output, bool stalled) {
  if (output.stalled_since != kNever) {
    Stats(hub.id).ports[port].credit_stall_ps += now_ - output.stalled_since;
    if (!stalled && now_ > output.stalled_since) ++result_.coverage.credit_stalls;
  }
  output.stalled_since = stalled ? now_ : kNever;
}

void Network::NoteGrant(Hub& hub, PortId port, const Output& output, const Buffer& buffer,
                        const QueuedPacket& packet, int count, bool continued) {
  const bool tail = packet.complete() && packet.next + count == packet.flits.size();
  PortStats& stats = Stats(hub.id).ports[port];
  stats.flits += count;
  stats.packets += tail;
  stats.runs += 1;
  stats.runs_split += !tail;
  for (int i = 0; i < count; ++i) {
    const int before = static_cast<int>(packet.next + i) * kFlitBytes;
    stats.bytes += std::clamp(packet.packet->script.bytes - before, 0, kFlitBytes);
  }
  result_.nodes[hub.id].grants.push_back({now_, port, buffer.port, packet.output_vc,
                                          static_cast<VcId>(IsHfi(buffer.port) ? 0 : buffer.lane),
                                          packet.packet->script.source, packet.packet->sequence,
                                          static_cast<int>(packet.next), count, tail, continued});

  Coverage& coverage = result_.coverage;
  coverage.continuations += continued;
  if (!IsHfi(port) && LinkAt(hub.id, port).was_down) ++coverage.grants_after_up;
  for (std::size_t vc = 0; vc < output.vcs.size(); ++vc) {
    if (vc != packet.output_vc && output.vcs[vc].owner) ++coverage.vc_interleaves;
  }
  if (packet.begun || IsHfi(buffer.port)) return;
  const Time f_in = ClassParameters(buffer.port).flit_time, f_out = ClassParameters(port).flit_time;
  if (f_in > f_out && packet.complete() && now_ > packet.flits[0]->arrival &&
      now_ == packet.flits.back()->arrival - static_cast<Time>(packet.flits.size() - 1) * f_out) {
    ++coverage.slow_to_fast_waits;
  }
  if (f_in < f_out && packet.flits.size() > 1) ++coverage.fast_to_slow;
  if (!packet.complete() && buffer.slots < packet.length()) ++coverage.buffer_full_starts;
}

}  // namespace percs::reference
