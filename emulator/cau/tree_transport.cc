// Tree links of a CAU: packets, acknowledgements, retransmission, and probes about overdue reduces.
#include <algorithm>
#include <cstring>

#include "emulator/cau/cau.h"

namespace percs {
namespace {

CauItem ItemOf(const CauHeader& header, const PacketHeader& packet) {
  CauItem item{header.sequence, header.root, header.op, header.operand, {}};
  item.payload.size = static_cast<std::uint8_t>(packet.bytes);
  if (packet.bytes > 0)
    std::memcpy(item.payload.bytes.data(), packet.payload.bytes(), packet.bytes);
  return item;
}

}  // namespace

Cau::Arrived Cau::Find(CauTreeId tree, std::uint32_t generation, TreeVertexId here,
                       TreeVertexId there) {
  const auto index = indexes_.find(Key(tree, here));
  if (index == indexes_.end()) return {};
  TreeEntry& entry = *entries_[static_cast<std::size_t>(index->second)];
  if (!entry.active || entry.generation != generation) return {};
  const int link = entry.FindLink(there);
  if (link < 0) return {};
  return {&entry, PlaceOf(index->second, link, CauOperation::kReduce)};
}

// --- Arrivals ------------------------------------------------------------------------------------

std::optional<DropReason> Cau::OnPacket(const PacketHeader& packet) {
  if (down_) return DropReason::kCauDown;
  const auto header = CauHeader::ReadFrom(packet);
  if (!header) return DropReason::kNoCauTree;
  Arrived to = Find(header->tree, header->generation, header->to, header->from);
  if (!to.entry || to.entry->links[static_cast<std::size_t>(to.place.link)].node != packet.source) {
    return DropReason::kNoCauTree;
  }
  to.place.operation = header->operation;
  switch (header->type) {
    case CauHeader::Type::kData:
      return OnData(*header, packet, to);
    case CauHeader::Type::kAck:
    case CauHeader::Type::kGrant:
      OnReport(*header, to);
      break;
    case CauHeader::Type::kGrantSeen: {
      TreeChannel& channel = Channel(*to.entry, to.place);
      if (header->sequence == channel.receiver.granted()) channel.grant_deadline = kNever;
      break;
    }
    case CauHeader::Type::kProbe:
      OnProbe(*header, to);
      break;
  }
  return std::nullopt;
}

std::optional<DropReason> Cau::OnData(const CauHeader& header, const PacketHeader& packet,
                                      const Arrived& to) {
  TreeChannel& channel = Channel(*to.entry, to.place);
  const auto verdict = channel.receiver.Store(header.link_sequence, ItemOf(header, packet));
  if (verdict == TreeReceiver::Verdict::kStored) {
    channel.grant_deadline = kNever;  // it has seen the last one, or could not have sent this
    QueueInput({to.place, false, false, header.link_sequence, {}});
  }
  SendReport(*to.entry, to.place, CauHeader::Type::kAck);
  if (verdict == TreeReceiver::Verdict::kDuplicate) return DropReason::kDuplicate;
  if (verdict == TreeReceiver::Verdict::kNoSlot) return DropReason::kNoCauSlot;
  return std::nullopt;
}

void Cau::OnReport(const CauHeader& header, const Arrived& to) {
  TreeSender& sender = Channel(*to.entry, to.place).sender;
  const auto acknowledged = sender.Acknowledge(header.link_sequence, header.stored, header.grant);
  context_.work->unfinished -= acknowledged.all;
  to.entry->own_unacknowledged -= acknowledged.own;
  if (acknowledged.own > 0 && to.entry->own_unacknowledged == 0) {
    CauListener* listener = trees_.find(to.entry->tree)->second.listener;
    if (listener) listener->OnCauTaken(to.entry->tree);
  }
  if (header.type == CauHeader::Type::kGrant) {
    CauHeader seen;
    seen.type = CauHeader::Type::kGrantSeen;
    seen.operation = to.place.operation;
    seen.sequence = header.grant;
    SendPacket(*to.entry, to.place.link, seen, nullptr);
  }
  Try(to.place.index);
}

void Cau::OnProbe(const CauHeader& header, const Arrived& to) {
  TreeEntry& entry = *to.entry;
  CauItem said{header.sequence, header.root, header.op, header.operand, {}};
  said.payload.size = header.size;
  if (!entry.has_participant()) {
    for (int link = 0; link < static_cast<int>(entry.links.size()); ++link) {
      if (link != to.place.link) SendProbe(entry, link, said);
    }
    return;
  }
  TreeProblem problem;
  const NodeId by = entry.links[static_cast<std::size_t>(to.place.link)].node;
  if (entry.Contradicts(said, by, &problem)) Fail(entry.tree, problem);
}

// --- Departures ----------------------------------------------------------------------------------

bool Cau::SendPacket(const TreeEntry& entry, int link, const CauHeader& from,
                     const CauPayload* payload) {
  if (down_) return false;
  const TreeLink& to = entry.links[static_cast<std::size_t>(link)];
  CauHeader header = from;
  header.tree = entry.tree;
  header.generation = entry.generation;
  header.from = entry.vertex;
  header.to = to.vertex;
  Packet* p = hfi_.NewPacket();
  p->header.destination = to.node;
  // One window per tree, the same on all its hubs.
  p->header.source_window = p->header.destination_window =
      SpreadWindow(entry.tree, *context_.parameters);
  header.WriteTo(&p->header);
  if (payload && payload->size > 0) {
    p->header.bytes = payload->size;
    p->header.payload = PayloadRef::Make();
    std::memcpy(p->header.payload.bytes(), payload->bytes.data(), payload->size);
  }
  return hfi_.Send(p, false, hfi_.route(TrafficClass::kFifo));
}

void Cau::SendData(TreeEntry& entry, const Place& place, std::uint32_t link_sequence) {
  TreeChannel& channel = Channel(entry, place);
  TreeSender::Sent* sent = channel.sender.Find(link_sequence);
  if (!sent) return;
  CauHeader header;
  header.operation = place.operation;
  header.link_sequence = link_sequence;
  header.sequence = sent->item.sequence;
  header.root = sent->item.root;
  header.op = sent->item.op;
  header.operand = sent->item.operand;
  header.size = sent->item.payload.size;
  ++context_.stats.Cau(sent->tries > 0 ? CauCounter::kPacketsResent : CauCounter::kPacketsSent);
  sent->deadline = kNever;
  if (SendPacket(entry, place.link, header, &sent->item.payload)) return;
  sent->deadline = context_.now + Timeout(sent->tries);  // no route now, perhaps later
  Arm(place, channel, sent->deadline);
}

void Cau::SendReport(TreeEntry& entry, const Place& place, CauHeader::Type type) {
  TreeChannel& channel = Channel(entry, place);
  if (channel.report_waiting) {
    channel.report_again = true;
    return;
  }
  CauHeader header;
  header.type = type;
  header.operation = place.operation;
  header.link_sequence = channel.receiver.expected();
  header.stored = channel.receiver.stored();
  header.grant = channel.receiver.Grant();
  ++context_.stats.Cau(CauCounter::kReportsSent);
  channel.report_waiting = SendPacket(entry, place.link, header, nullptr);
}

// The sender had to stop, and may continue.
void Cau::GrantAgain(TreeEntry& entry, const Place& place) {
  TreeChannel& channel = Channel(entry, place);
  SendReport(entry, place, CauHeader::Type::kGrant);
  channel.grant_tries = 0;
  channel.grant_deadline = context_.now + Timeout(0);
  Arm(place, channel, channel.grant_deadline);
}

void Cau::OnEnteredIsr(const PacketHeader& packet) {
  const auto header = CauHeader::ReadFrom(packet);
  Arrived from = Find(header->tree, header->generation, header->from, header->to);
  if (!from.entry) return;
  from.place.operation = header->operation;
  TreeChannel& channel = Channel(*from.entry, from.place);
  if (header->reports()) {
    channel.report_waiting = false;
    if (!channel.report_again) return;
    channel.report_again = false;
    const bool grant = channel.grant_deadline != kNever;
    SendReport(*from.entry, from.place, grant ? CauHeader::Type::kGrant : CauHeader::Type::kAck);
  } else if (header->type == CauHeader::Type::kData) {
    TreeSender::Sent* sent = channel.sender.Find(header->link_sequence);
    if (!sent) return;
    sent->deadline = context_.now + Timeout(sent->tries);
    Arm(from.place, channel, sent->deadline);
  }
}

// --- Timers --------------------------------------------------------------------------------------

void Cau::Arm(const Place& place, TreeChannel& channel, Time deadline) {
  if (deadline >= channel.timer_at) return;
  channel.timer_at = deadline;
  const auto detail = static_cast<std::uint64_t>(place.index) << 8 |
                      static_cast<std::uint64_t>(place.link) << 1 |
                      static_cast<std::uint64_t>(place.operation);
  Push(kTimer, deadline, detail, place.serial);
}

void Cau::OnTimer(const Place& place) {
  TreeEntry* entry = At(place);
  if (!entry) return;
  TreeChannel& channel = Channel(*entry, place);
  if (channel.timer_at != context_.now) return;
  channel.timer_at = kNever;
  if (!Resend(*entry, place, channel)) {
    return Fail(entry->tree, {TreeProblem::Code::kUnacknowledged, place.operation, 0, context_.node,
                              entry->links[static_cast<std::size_t>(place.link)].node});
  }
  Time next = channel.grant_deadline;
  for (std::size_t i = 0; i < channel.sender.in_flight(); ++i) {
    const TreeSender::Sent& sent = channel.sender.at(i);
    if (!sent.acknowledged) next = std::min(next, sent.deadline);
  }
  if (next != kNever) Arm(place, channel, next);
}

// False if the last try failed.
bool Cau::Resend(TreeEntry& entry, const Place& place, TreeChannel& channel) {
  const int tries = context_.parameters->retransmit_tries;
  if (channel.grant_deadline <= context_.now) {
    if (channel.grant_tries == tries) return false;
    channel.grant_deadline = context_.now + Timeout(++channel.grant_tries);
    SendReport(entry, place, CauHeader::Type::kGrant);
  }
  for (std::size_t i = 0; i < channel.sender.in_flight(); ++i) {
    TreeSender::Sent& sent = channel.sender.at(i);
    if (sent.acknowledged || sent.deadline > context_.now) continue;
    if (sent.tries == tries) return false;
    ++sent.tries;
    context_.last_event = context_.now;
    SendData(entry, place, channel.sender.sequence_at(i));
  }
  return true;
}

// --- Reduces that do not come --------------------------------------------------------------------

// Two participants that both act as root would wait for each other for ever, and so would two that
// wait for different roots. So a CAU that waits too long probes its neighbours.
void Cau::Watch(int index, TreeEntry& entry) {
  if (!entry.Declared() || (entry.watched == entry.next[0] && entry.watch_at != kNever)) return;
  const bool running = entry.watch_at != kNever;
  entry.watched = entry.next[0];
  entry.watch_tries = 0;
  entry.watch_at = context_.now + Timeout(0);
  if (running) return;  // the pending event will see the new time
  Push(kWatch, entry.watch_at, static_cast<std::uint64_t>(index),
       serials_[static_cast<std::size_t>(index)]);
}

void Cau::OnWatch(int index, std::uint32_t serial) {
  TreeEntry* entry = At({index, serial});
  if (!entry) return;
  const CauItem* said = entry->Declared();
  const bool over = entry->watch_tries > context_.parameters->retransmit_tries;
  if (!said || (over && entry->watched == entry->next[0])) {
    entry->watch_at = kNever;
    return;
  }
  if (entry->watch_at <= context_.now) {
    for (int link = 0; link < static_cast<int>(entry->links.size()); ++link)
      SendProbe(*entry, link, *said);
    entry->watch_at = context_.now + Timeout(++entry->watch_tries);
  }
  Push(kWatch, entry->watch_at, static_cast<std::uint64_t>(index), serial);
}

void Cau::SendProbe(TreeEntry& entry, int link, const CauItem& said) {
  if (entry.links[static_cast<std::size_t>(link)].local()) return;
  CauHeader header;
  header.type = CauHeader::Type::kProbe;
  header.sequence = said.sequence;
  header.root = said.root;
  header.op = said.op;
  header.operand = said.operand;
  header.size = said.payload.size;
  ++context_.stats.Cau(CauCounter::kProbesSent);
  SendPacket(entry, link, header, nullptr);
}

}  // namespace percs
