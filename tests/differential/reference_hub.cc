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
  const auto newest = buffer.Newest();
  const bool head = !newest || newest->complete();
  if (head) {
    auto queued = std::make_shared<QueuedPacket>();
    queued->packet = flits.front()->packet;
    RoutePacket(hub, port, vc, queued.get(), /*source=*/false);
    buffer.packets.push_back(queued);
  }
  QueuedPacket& open = *buffer.Newest();
  PERCS_CHECK(open.packet == flits.front()->packet);
  for (auto& flit : flits) {
    Wake(node, flit->arrival);
    open.flits.push_back(std::move(flit));
  }
  std::uint64_t held = 0;  // slots of what is announced and neither committed nor dropped
  for (const auto& packet : buffer.packets) {
    for (std::size_t i = packet->next; i < packet->flits.size(); ++i) {
      held += !packet->flits[i]->set_aside;
    }
  }
  VcStats& stats = Stats(node).ports[port].vc[vc];
  stats.most_held = std::max(stats.most_held, held);
}

// After all inputs of an instant: what is dropped now, and who has left.
void Network::Settle(NodeId node) {
  for (auto& [key, buffer] : hubs_[node].buffers) SettleBuffer(hubs_[node], buffer);
  ExpireService(hubs_[node]);
}

void Network::SettleBuffer(Hub& hub, Buffer& buffer) {
  if (buffer.packets.empty()) return;
  std::vector<std::shared_ptr<QueuedPacket>> waiting;
  for (const auto& packet : buffer.packets) {
    if (packet->output == kReplication && packet->branches.empty() && !packet->drop)
      waiting.push_back(packet);
  }
  bool waited_ahead = false;  // a packet ahead in the buffer was not whole before this instant
  for (const auto& packet : waiting) {
    if (packet->complete() && packet->flits.back()->arrival <= now_) {
      result_.coverage.multicasts_overtaking += waited_ahead;
      Replicate(hub, buffer, packet);
    }
    waited_ahead = true;
  }
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
    if (IsHfi(buffer.port) && !packet.branch) {
      --hub.hfi[buffer.port - kHfiFirst].isr_packets[packet.output];
    }
    it = buffer.packets.erase(it);
  }
  ReleaseReplicated(hub, buffer);
  PERCS_CHECK(IsHfi(buffer.port) || present <= buffer.slots);
}

std::optional<int> Network::BranchVc(const Hub& hub, const Buffer& buffer, NodeId group,
                                     PortId out) {
  if (graph_) {
    const auto& detours = tables_[hub.id]->detours;
    const bool detour = std::count(detours.begin(), detours.end(), group) > 0;
    result_.coverage.detours += detour;
    return graph_->NextVc(hub.id, buffer.port, buffer.lane, out, detour);
  }
  const Position here =
      IsHfi(buffer.port) ? kInjected : PositionOf(buffer.port, static_cast<VcId>(buffer.lane));
  const Position next = NextPosition(here, out);
  if (next == kNoPosition) return std::nullopt;
  return VcOfPosition(next);
}

// B.9.
void Network::Replicate(Hub& hub, Buffer& buffer, std::shared_ptr<QueuedPacket> whole) {
  NodeStats& stats = Stats(hub.id);
  const Packet& p = *whole->packet;
  const auto& entries = tables_[hub.id]->multicast;
  const std::size_t group = topology_.group_of(p.script.destination);
  const PortMask entry = group < entries.size() ? entries[group] : 0;
  if (Poisoned(*whole->flits.back())) {
    whole->drop = DropReason::kTruncated;
    ++result_.coverage.multicasts_truncated;
    return;
  }
  if (entry == 0) {
    whole->drop = DropReason::kNoRoute;
    ++result_.coverage.no_route;
    return;
  }
  ++result_.coverage.multicasts;
  for (PortId bit = 0; bit <= kHfiFirst; ++bit) {
    if (!(entry & PortBit(bit))) continue;
    auto branch = std::make_shared<QueuedPacket>();
    branch->packet = std::make_shared<Packet>(p);
    branch->branch = true;
    branch->output = bit;
    if (bit == kHfiFirst) {
      const int window = p.script.destination_window;
      branch->output =
          static_cast<PortId>(kHfiFirst + 4 * (window / parameters_.windows_per_hfi) + window % 4);
    } else if (parameters_.vc_policy == VcPolicy::kPosition) {
      const std::optional<int> vc = BranchVc(hub, buffer, p.script.destination, bit);
      if (!vc) {
        branch->drop = DropReason::kNoVcPosition;
      } else {
        branch->output_vc = *vc;
      }
    }
    if (!branch->drop && !LinkUp(hub.id, branch->output)) branch->drop = DropReason::kLinkDown;
    result_.coverage.branches_dropped += branch->drop.has_value();
    const bool corrupted = std::any_of(whole->flits.begin(), whole->flits.end(),
                                       [](const auto& flit) { return Corrupted(*flit); });
    for (int i = 0; i < whole->length(); ++i) {
      branch->flits.push_back(std::make_shared<Flit>(Flit{.packet = branch->packet,
                                                          .arrival = now_,
                                                          .tail = i == whole->length() - 1,
                                                          .corrupted = corrupted,
                                                          .set_aside = true,
                                                          .from = nullptr}));
    }
    whole->branches.push_back(branch);
    buffer.packets.push_back(branch);
    ++result_.coverage.branches;
  }
  stats.packets_replicated += whole->branches.size() - 1;
  stats.flits_replicated += (whole->branches.size() - 1) * whole->flits.size();
}

// Slots of packets whose branches have all left.
void Network::ReleaseReplicated(Hub& hub, Buffer& buffer) {
  std::erase_if(buffer.packets, [&](const std::shared_ptr<QueuedPacket>& whole) {
    if (whole->branches.empty()) return false;
    for (const auto& branch : whole->branches) {
      if (!branch->gone(now_)) return false;
    }
    int slots = 0;
    for (const auto& flit : whole->flits) slots += !flit->set_aside;
    if (IsHfi(buffer.port)) {
      --hub.hfi[buffer.port - kHfiFirst].isr_packets[kReplication];
    } else {
      SendCredits(hub.id, buffer.port, buffer.lane, now_, 0, slots);
    }
    return true;
  });
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

// A packet that has not begun: B.4. kNever: not before something more is announced.
Time Network::RequestsFrom(const Hub& hub, const Buffer& buffer, const QueuedPacket& packet) {
  if (IsHfi(buffer.port)) return 0;
  const Time f = FlitTime(hub.id, packet.output);
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
  return from;
}

bool Network::Requests(Hub& hub, const Buffer& buffer, const QueuedPacket& packet) {
  if (packet.drop || packet.all_committed()) return false;
  if (packet.begun) {
    return packet.next < packet.flits.size() && packet.flits[packet.next]->arrival <= now_;
  }
  const Time from = RequestsFrom(hub, buffer, packet);
  if (from > now_ && from != kNever) Wake(hub.id, from);
  return from <= now_;
}

void Network::Arbitrate(NodeId node) {
  Hub& hub = hubs_[node];
  // None is added while outputs are arbitrated, and a grant takes none out.
  std::vector<Buffer*> occupied;
  std::array<bool, kPorts> wanted{};
  for (auto& [key, buffer] : hub.buffers) {
    if (buffer.packets.empty()) continue;
    occupied.push_back(&buffer);
    for (const auto& packet : buffer.packets) {
      if (packet->output < kPorts) wanted[packet->output] = true;
    }
  }
  for (auto& [port, output] : hub.outputs) {
    const bool idle =
        !wanted[port] && hub.service[port].waiting.empty() && output.stalled_since == kNever;
    if (!idle) ArbitrateOutput(hub, port, output, occupied);
  }
}

void Network::ArbitrateOutput(Hub& hub, PortId port, Output& output,
                              const std::vector<Buffer*>& occupied) {
  if (output.busy_until > now_ || !LinkUp(hub.id, port)) {
    UpdateStall(hub, port, output, {});
    return;
  }
  std::set<int> lack_only_credit;                        // output VCs
  std::map<int, std::map<int, Buffer*>> can_be_granted;  // by output VC, then by index
  Buffer* continues = nullptr;
  for (Buffer* buffer : occupied) {
    const std::shared_ptr<QueuedPacket> oldest = buffer->Front(port);
    if (!oldest || !Requests(hub, *buffer, *oldest)) continue;
    const QueuedPacket& front = *oldest;
    const OutputVc& vc = output.vcs[front.output_vc];
    if (vc.owner != (front.begun ? &front : nullptr)) continue;
    if (vc.credits.empty() || *vc.credits.begin() > now_) {
      lack_only_credit.insert(front.output_vc);
      continue;
    }
    can_be_granted[front.output_vc][buffer->index()] = buffer;
    if (output.busy_until == now_ && output.last == &front) continues = buffer;
  }
  if (GrantService(hub, port, output, !can_be_granted.empty())) {
    UpdateStall(hub, port, output, {});
    return;
  }
  UpdateStall(hub, port, output, can_be_granted.empty() ? lack_only_credit : std::set<int>());
  std::size_t contenders = 0;
  for (const auto& [vc, buffers] : can_be_granted) contenders += buffers.size();
  if (contenders > 1) ++result_.coverage.contended_grants;
  if (can_be_granted.size() > 1) ++result_.coverage.contended_vcs;
  if (output.last && output.busy_until == now_ && !continues && !can_be_granted.empty()) {
    ++result_.coverage.lost_after_split;
  }
  if (continues) {
    CountLosses(hub, port, can_be_granted, *continues);
    Grant(hub, port, output, *continues, /*continued=*/true);
  } else if (!can_be_granted.empty()) {
    auto served = can_be_granted.upper_bound(output.last_vc);
    if (served == can_be_granted.end()) served = can_be_granted.begin();
    output.last_vc = served->first;
    int& pointer = output.vcs[static_cast<std::size_t>(served->first)].pointer;
    auto winner = served->second.upper_bound(pointer);
    if (winner == served->second.end()) winner = served->second.begin();
    pointer = winner->first;
    CountLosses(hub, port, can_be_granted, *winner->second);
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
  const Time f = FlitTime(hub.id, port);
  const Transmission sent = Transmit(hub, port, CommitmentLength(packet, vc, f));
  const int m = sent.flits;
  PERCS_CHECK(m >= 1);
  NoteGrant(hub, port, output, buffer, packet, sent, continued);
  if (!packet.begun) {
    Packet& p = *packet.packet;
    p.path = Mix64(p.path ^ (((static_cast<std::uint64_t>(hub.id) << 8) | port) + 1));
    if (!IsHfi(port)) ++p.hops;
  }
  packet.begun = true;
  output.service_last = false;

  const std::size_t first = packet.next;
  int slots = 0;
  for (int i = 0; i < m; ++i) {
    Flit& flit = *packet.flits[packet.next++];
    flit.leaves = sent.start + (i + 1) * f;
    slots += !flit.set_aside;
    vc.credits.erase(vc.credits.begin());
  }
  packet.commitment_end = output.busy_until = sent.start + m * f;
  Wake(hub.id, output.busy_until);
  const bool tail = packet.all_committed();
  vc.owner = tail ? nullptr : &packet;
  output.last = tail ? nullptr : &packet;
  if (!IsHfi(buffer.port)) SendCredits(hub.id, buffer.port, buffer.lane, sent.start + f, f, slots);
  SendFlits(hub, port, packet, shared, first, sent);
}

void Network::SendFlits(Hub& hub, PortId port, QueuedPacket& packet,
                        std::shared_ptr<QueuedPacket> shared, std::size_t first,
                        const Transmission& sent) {
  const Time f = FlitTime(hub.id, port);
  const Time delay = parameters_.isr_latency + f + (IsHfi(port) ? 0 : Propagation(hub.id, port));
  if (IsHfi(port)) {
    if (!packet.all_committed()) return;  // only the tail matters to the HFI
    const Time at = sent.start + (sent.flits - 1) * f + delay;
    Schedule(at, kEject, hub.id, port, 0,
             [this, node = hub.id, port, shared] { Eject(node, port, shared); });
    return;
  }
  std::vector<std::shared_ptr<Flit>> flits;
  for (int i = 0; i < sent.flits; ++i) {
    const auto& flit = packet.flits[first + i];
    flits.push_back(
        std::make_shared<Flit>(Flit{.packet = packet.packet,
                                    .arrival = sent.start + i * f + delay,
                                    .flit_time = f,
                                    .tail = flit->tail,
                                    .corrupted = sent.corrupted[static_cast<std::size_t>(i)],
                                    .from = flit}));
  }
  const LinkEnd peer = topology_.Peer(hub.id, port);
  Schedule(sent.start + delay, kFlit, peer.node, peer.port, packet.output_vc,
           [this, peer, vc = packet.output_vc, generation = LinkAt(hub.id, port).generation,
            flits = std::move(flits)] { Announce(peer.node, peer.port, vc, generation, flits); });
}

// `count` slots of input (port, vc), free from `first_free` on, return to the far end as one run.
void Network::SendCredits(NodeId node, PortId port, int vc, Time first_free, Time spacing,
                          int count) {
  const Link& link = LinkAt(node, port);
  if (count == 0 || !link.up) return;
  const Time first = first_free + Propagation(node, port) + parameters_.credit_processing;
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

void Network::CountLosses(Hub& hub, PortId port,
                          const std::map<int, std::map<int, Buffer*>>& can_be_granted,
                          const Buffer& winner) {
  for (const auto& [vc, buffers] : can_be_granted) {
    for (const auto& [index, buffer] : buffers) {
      Stats(hub.id).ports[port].vc[vc].arbitration_losses += buffer != &winner;
    }
  }
}

void Network::UpdateStall(Hub& hub, PortId port, Output& output, const std::set<int>& stalled) {
  PortStats& stats = Stats(hub.id).ports[port];
  if (output.stalled_since != kNever) {
    stats.credit_stall_ps += now_ - output.stalled_since;
    if (stalled.empty() && now_ > output.stalled_since) ++result_.coverage.credit_stalls;
  }
  for (const int vc : output.stalled) stats.vc[vc].credit_stall_ps += now_ - output.stalled_since;
  for (const int vc : stalled) stats.vc[vc].credit_stalls += !output.stalled.contains(vc);
  output.stalled = stalled;
  output.stalled_since = stalled.empty() ? kNever : now_;
}

void Network::NoteGrant(Hub& hub, PortId port, const Output& output, const Buffer& buffer,
                        const QueuedPacket& packet, const Transmission& sent, bool continued) {
  const int count = sent.flits;
  const bool tail = packet.complete() && packet.next + count == packet.flits.size();
  VcStats& stats = Stats(hub.id).ports[port].vc[packet.output_vc];
  stats.flits += count;
  stats.packets += tail;
  stats.runs_split += !tail;
  for (int i = 0; i < count; ++i) {
    const int before = static_cast<int>(packet.next + i) * kFlitBytes;
    stats.bytes += std::clamp(packet.packet->script.bytes - before, 0, kFlitBytes);
  }
  result_.nodes[hub.id].grants.push_back({sent.start, port, buffer.port, packet.output_vc,
                                          static_cast<VcId>(IsHfi(buffer.port) ? 0 : buffer.lane),
                                          packet.packet->script.source, packet.packet->sequence,
                                          static_cast<int>(packet.next), count, tail, continued,
                                          topology_.is_group(packet.packet->script.destination)});

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
