// Packets between two ranks: numbered, in order, sent again until they are acknowledged.
#include <algorithm>
#include <utility>

#include "client/mpi/packet.h"
#include "client/mpi/transport.h"
#include "fmt/format.h"

namespace percs::mpi {
void Transport::Enqueue(std::uint32_t rank, std::uint32_t to, Time ready_at, const Header& header,
                        const std::uint8_t* bytes, std::uint64_t count) {
  Flow& flow = FlowOf(rank, to);
  OutPacket packet;
  packet.sequence = flow.next++;
  packet.ready_at = ready_at;
  packet.bytes = header.Write();
  if (count > 0) packet.bytes.insert(packet.bytes.end(), bytes, bytes + count);
  flow.waiting.push_back(std::move(packet));
  ++unacknowledged_;
  if (!std::exchange(flow.listed, true)) ranks_[rank].ready.push_back(to);
  PumpAt(rank, ready_at);
}

void Transport::PumpAt(std::uint32_t rank, Time at) {
  Rank& r = ranks_[rank];
  if (at >= r.pump_at) return;
  r.pump_at = at;
  Act(rank, at, [this, rank, at](Time now) {
    Rank& pumped = ranks_[rank];
    if (pumped.pump_at != at) return;
    pumped.pump_at = kNever;
    Pump(rank, now);
  });
}

// One packet of each flow that may send, round robin, as long as the window takes them.
void Transport::Pump(std::uint32_t rank, Time now) {
  Rank& r = ranks_[rank];
  Time next = kNever;
  std::size_t idle = 0;
  while (r.sending < r.sending_max && idle < r.ready.size()) {
    const std::uint32_t to = r.ready.front();
    r.ready.pop_front();
    Time ready_at = kNever;
    const bool sent = SendNext(rank, to, now, &ready_at);
    Flow& flow = FlowOf(rank, to);
    flow.listed = !flow.waiting.empty();
    if (flow.listed) r.ready.push_back(to);
    idle = sent ? 0 : idle + (flow.listed ? 1 : 0);
    next = std::min(next, ready_at);
  }
  if (next < kNever) PumpAt(rank, next);
}

bool Transport::SendNext(std::uint32_t rank, std::uint32_t to, Time now, Time* ready_at) {
  Flow& flow = FlowOf(rank, to);
  if (flow.waiting.empty() || flow.sent.size() >= parameters_.flow_packets) return false;
  OutPacket& packet = flow.waiting.front();
  if (packet.ready_at > now) {
    *ready_at = packet.ready_at;
    return false;
  }
  flow.sent.push_back(std::move(packet));
  flow.waiting.pop_front();
  SendPacket(rank, to, now, flow.sent.back());
  if (flow.resend.at == kNever) ResendLater(rank, to, now);
  return true;
}

void Transport::SendPacket(std::uint32_t rank, std::uint32_t to, Time now, OutPacket& packet) {
  Rank& r = ranks_[rank];
  Flow& flow = FlowOf(rank, to);
  flow.told = flow.expected;
  flow.acknowledge.at = kNever;
  Header::SetNumbers(packet.sequence, flow.expected, &packet.bytes);
  WindowOperation operation =
      Operation(r, packet.bytes.size() <= kImmediateBytesMax ? WindowOp::kImmediateSend
                                                             : WindowOp::kFifoSend);
  operation.id = OperationId(OperationUse::kPacket, 0);
  operation.node = ranks_[to].place.hub;
  operation.peer_window = ranks_[to].place.window;
  operation.cached = true;
  operation.data = packet.bytes;
  ++r.sending;
  ++r.counts.packets;
  Issue(rank, now, std::move(operation));
}

void Transport::SetAt(std::uint32_t rank, std::uint32_t other, Timer Flow::*timer, Time at) {
  Timer& set = FlowOf(rank, other).*timer;
  set.at = at;
  if (at >= set.armed) return;
  set.armed = at;
  Act(rank, at, [this, rank, other, timer, at](Time now) { OnDue(rank, other, timer, at, now); });
}

void Transport::OnDue(std::uint32_t rank, std::uint32_t other, Timer Flow::*timer, Time armed,
                      Time now) {
  Timer& due = FlowOf(rank, other).*timer;
  if (due.armed != armed) return;  // an earlier action took its place
  due.armed = kNever;
  if (due.at == kNever) return;
  if (due.at > now) return SetAt(rank, other, timer, due.at);
  due.at = kNever;
  timer == &Flow::resend ? Resend(rank, other, now) : SendAcknowledgement(rank, other, now);
}

void Transport::ResendLater(std::uint32_t rank, std::uint32_t to, Time now) {
  SetAt(rank, to, &Flow::resend, now + (parameters_.retransmit << FlowOf(rank, to).tries));
}

void Transport::Resend(std::uint32_t rank, std::uint32_t to, Time now) {
  Flow& flow = FlowOf(rank, to);
  if (flow.sent.empty()) return;
  if (++flow.tries > parameters_.tries) {
    return Fail(fmt::format("{} gives no answer to {}: {} packets were sent {} times", Name(to),
                            Name(rank), flow.sent.size(), flow.tries));
  }
  ranks_[rank].counts.resent += flow.sent.size();
  while (!flow.sent.empty()) {
    flow.waiting.push_front(std::move(flow.sent.back()));
    flow.sent.pop_back();
  }
  if (!std::exchange(flow.listed, true)) ranks_[rank].ready.push_back(to);
  ResendLater(rank, to, now);
  PumpAt(rank, now);
}

// A packet back carries it, if there is one soon.
void Transport::AcknowledgeLater(std::uint32_t rank, std::uint32_t from, Time now) {
  Flow& flow = FlowOf(rank, from);
  const bool many = flow.expected - flow.told >= parameters_.ack_every;
  const Time at = now + (many ? reaction_ : parameters_.ack_delay);
  if (at < flow.acknowledge.at) SetAt(rank, from, &Flow::acknowledge, at);
}

void Transport::SendAcknowledgement(std::uint32_t rank, std::uint32_t to, Time now) {
  OutPacket packet;
  packet.bytes = Header().Write();
  ++ranks_[rank].counts.acknowledgements;
  SendPacket(rank, to, now, packet);
}

void Transport::OnAcknowledged(std::uint32_t rank, std::uint32_t from, std::uint32_t ack,
                               Time now) {
  Flow& flow = FlowOf(rank, from);
  const std::uint32_t count = ack - flow.acknowledged;
  if (count == 0 || count > flow.sent.size() + flow.waiting.size()) return;  // an old one
  flow.acknowledged = ack;
  flow.tries = 0;
  // Some may wait to be sent again.
  for (std::deque<OutPacket>* packets : {&flow.sent, &flow.waiting}) {
    const std::size_t before = packets->size();
    std::erase_if(*packets, [ack](const OutPacket& packet) {
      return static_cast<std::int32_t>(packet.sequence - ack) < 0;
    });
    unacknowledged_ -= before - packets->size();
  }
  flow.resend.at = kNever;
  if (!flow.sent.empty()) ResendLater(rank, from, now);
  if (!flow.waiting.empty()) PumpAt(rank, now + reaction_);
}

void Transport::GiveSlotBack(std::uint32_t rank, Time now) {
  Rank& r = ranks_[rank];
  if (++r.used_slots < parameters_.receive_slots / 4) return;
  WindowOperation operation = Operation(r, WindowOp::kReturnSpace);
  operation.count = std::exchange(r.used_slots, 0);
  Act(rank, now + reaction_, [this, rank, operation](Time then) { Issue(rank, then, operation); });
}

void Transport::OnPacket(std::uint32_t rank, const WindowEvent& event) {
  GiveSlotBack(rank, event.at);
  const auto found = rank_at_.find(PeerOf(event.peer, event.peer_window));
  Header header;
  if (found == rank_at_.end() || !header.Read(event.data)) return;  // of no rank of this job
  const std::uint32_t from = found->second;
  Flow& flow = FlowOf(rank, from);
  OnAcknowledged(rank, from, header.ack, event.at);
  if (header.type == PacketType::kAck) return;
  const std::int32_t ahead = static_cast<std::int32_t>(header.sequence - flow.expected);
  if (ahead > 0) flow.early.emplace(header.sequence, event.data);
  if (ahead == 0) {
    TakeInOrder(rank, from, event.data, event.at);
    for (auto next = flow.early.find(flow.expected); next != flow.early.end();
         next = flow.early.find(flow.expected)) {
      const Bytes packet = std::move(next->second);
      flow.early.erase(next);
      TakeInOrder(rank, from, packet, event.at);
    }
  }
  if (ahead < 0) flow.told = flow.expected - parameters_.ack_every;  // ours was lost
  AcknowledgeLater(rank, from, event.at);
}

void Transport::TakeInOrder(std::uint32_t rank, std::uint32_t from, const Bytes& packet, Time now) {
  Rank& r = ranks_[rank];
  Flow& flow = FlowOf(rank, from);
  ++flow.expected;
  Header header;
  if (!header.Read(packet)) return;
  if (header.type == PacketType::kFinish) return OnFinished(rank, header.transfer, now + reaction_);
  const bool first = header.type != PacketType::kMore;
  const std::size_t skip = Header::BytesOf(header.type);
  const std::uint64_t count = packet.size() - skip;
  r.receive_busy =
      std::max(r.receive_busy, now) + (first ? parameters_.receive_cost : 0) + CopyTime(count);
  if (first) {
    flow.partial = std::make_shared<Message>();
    Message& message = *flow.partial;
    message.from = from;
    message.tag = header.tag;
    message.data = header.data;
    message.length = header.length;
    message.request = header.type == PacketType::kRequest;
    message.address = header.address;
    message.transfer = header.transfer;
    message.visible_at = r.receive_busy;
    message.bytes.reserve(message.request ? 0 : message.length);
  }
  const MessageRef message = flow.partial;
  if (!message) return;
  message->bytes.insert(message->bytes.end(), packet.begin() + static_cast<std::ptrdiff_t>(skip),
                        packet.end());
  message->whole = !message->request && message->bytes.size() >= message->length;
  message->done_at = r.receive_busy;
  if (message->whole || message->request) flow.partial = nullptr;
  if (first) return Arrive(rank, message, now);
  CompleteIfWhole(rank, message);
}

}  // namespace percs::mpi
