#include "emulator/hfi/message_layer.h"

#include <algorithm>
#include <cstring>

namespace percs {
namespace {

constexpr int kWindow = 64;  // packets: the bits of an acknowledgement

std::uint32_t PacketsFor(std::uint64_t bytes) {
  return bytes == 0 ? 1
                    : static_cast<std::uint32_t>((bytes + kPacketBytesMax - 1) / kPacketBytesMax);
}

}  // namespace

// --- Sender --------------------------------------------------------------------------------------

void MessageLayer::Send(const MessageRequest& request) {
  Message message;
  message.tag = request.tag;
  message.bytes = request.bytes;
  message.source_window = request.source_window;
  message.destination_window = request.destination_window;
  message.packets = PacketsFor(request.bytes);
  message.created = context_.now;
  message.verified = request.verified;
  message.content = request.content;
  ++context_.stats.messages_sent;
  Submit(request.destination, std::move(message));
}

void MessageLayer::SendOperation(const PacketHeader& header) {
  Message message;
  message.operation = true;
  message.tag = header.tag;
  message.bytes = header.message_bytes;
  message.offset = header.offset;
  message.created = header.message_created;
  message.source_window = header.source_window;
  message.destination_window = header.destination_window;
  message.packets = 1;
  message.packet_bytes = header.bytes;
  message.payload = header.payload;
  Submit(header.destination, std::move(message));
}

void MessageLayer::Submit(NodeId destination, Message message) {
  SenderFlow& flow = Wake(destination);
  message.number = flow.next_message++;
  flow.messages.push_back(std::move(message));
  ++context_.work->unfinished;
  Pump(destination, flow);
}

MessageLayer::SenderFlow& MessageLayer::Wake(NodeId destination) {
  auto& flow = senders_[destination];
  if (flow) return *flow;
  flow = spare_ ? std::move(spare_) : std::make_unique<SenderFlow>();
  const auto rest = senders_at_rest_.find(destination);
  static_cast<SenderRest&>(*flow) = rest == senders_at_rest_.end() ? SenderRest() : rest->second;
  return *flow;
}

MessageLayer::SenderFlow* MessageLayer::Awake(NodeId destination) {
  const auto it = senders_.find(destination);
  return it == senders_.end() ? nullptr : it->second.get();
}

void MessageLayer::RestIfDone(NodeId destination) {
  const auto it = senders_.find(destination);
  if (!it->second->at_rest()) return;
  senders_at_rest_[destination] = *it->second;
  spare_ = std::move(it->second);
  senders_.erase(it);
}

void MessageLayer::Pump(NodeId destination, SenderFlow& flow) {
  const std::size_t window = static_cast<std::size_t>(context_.parameters->flow_window_packets);
  while (flow.sending < flow.messages.size() && flow.in_flight.size() < window) {
    Message& message = flow.messages[flow.sending];
    if (message.failed) {
      ++flow.sending;
      continue;
    }
    const std::uint32_t sequence = flow.base + static_cast<std::uint32_t>(flow.in_flight.size());
    flow.in_flight.push_back({message.number, message.sent});
    if (++message.sent == message.packets) ++flow.sending;
    SendPacket(destination, flow, sequence);
  }
}

void MessageLayer::SendPacket(NodeId destination, SenderFlow& flow, std::uint32_t sequence) {
  InFlight& packet = flow.in_flight[sequence - flow.base];
  const Message& message = *Find(flow, packet.message);
  Packet* p = hfi_.NewPacket();
  PacketHeader& header = p->header;
  header.destination = destination;
  header.flow_sequence = sequence;
  header.flow_base = flow.base;
  FillHeader(message, packet, &header);
  packet.deadline = kNever;
  packet.refused = !hfi_.Send(p, message.verified,
                              message.operation ? hfi_.route(TrafficClass::kRdma) : hfi_.route());
  packet.window_down = packet.refused && context_.WindowDown(message.source_window);
  if (packet.refused) {
    packet.deadline = context_.now + (context_.parameters->retransmit_timeout << packet.tries);
    Arm(destination, flow, packet.deadline);
  }
}

void MessageLayer::FillHeader(const Message& message, const InFlight& packet,
                              PacketHeader* header) const {
  header->source_window = message.source_window;
  header->destination_window = message.destination_window;
  header->message = message.number;
  header->tag = message.tag;
  header->message_bytes = message.bytes;
  header->message_created = message.created;
  if (message.operation) {
    header->kind = PacketKind::kOperation;
    header->offset = message.offset;
    header->bytes = message.packet_bytes;
    header->payload = message.payload;
    return;
  }
  header->kind = PacketKind::kData;
  header->offset = static_cast<std::uint64_t>(packet.packet) * kPacketBytesMax;
  header->bytes = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(kPacketBytesMax, message.bytes - header->offset));
  if (message.content && header->bytes > 0) {
    header->payload = PayloadRef::Make(header->bytes);
    std::memcpy(header->payload.bytes(), message.content->data() + header->offset, header->bytes);
  }
}

void MessageLayer::OnEnteredIsr(const PacketHeader& header) {
  if (header.kind == PacketKind::kAck) --replies_;
  if (header.kind != PacketKind::kData && header.kind != PacketKind::kOperation) return;
  SenderFlow* const awake = Awake(header.destination);
  if (!awake) return;  // acknowledged meanwhile: this was a second copy
  SenderFlow& flow = *awake;
  const std::uint32_t index = header.flow_sequence - flow.base;
  if (header.created < flow.since) return;
  if (index >= flow.in_flight.size()) return;  // likewise
  InFlight& packet = flow.in_flight[index];
  if (packet.acknowledged || packet.held) return;
  packet.deadline = context_.now + (context_.parameters->retransmit_timeout << packet.tries);
  Arm(header.destination, flow, packet.deadline);
}

void MessageLayer::Arm(NodeId destination, SenderFlow& flow, Time deadline) {
  if (deadline >= flow.timer_at) return;
  flow.timer_at = deadline;
  context_.queue.Push(deadline, EventKey(EventClass::kHfi, kRetransmit, 0, destination), 0);
}

void MessageLayer::OnTimer(NodeId destination) {
  SenderFlow* const awake = Awake(destination);
  if (!awake) {
    SenderRest& rest = senders_at_rest_.find(destination)->second;
    if (rest.timer_at == context_.now) rest.timer_at = kNever;
    return;
  }
  SenderFlow& flow = *awake;
  if (flow.timer_at != context_.now) return;
  flow.timer_at = kNever;
  const P7ihParameters& parameters = *context_.parameters;
  for (std::size_t i = 0; i < flow.in_flight.size(); ++i) {
    InFlight& packet = flow.in_flight[i];
    if (packet.acknowledged || packet.deadline > context_.now) continue;
    context_.last_event = context_.now;
    if (packet.tries == parameters.retransmit_tries) {
      Message& message = *Find(flow, packet.message);
      message.refused = packet.refused;
      Fail(destination, flow, packet.message, WhyGivenUp(packet));
      continue;
    }
    ++packet.tries;
    ++context_.stats.packets_resent;
    SendPacket(destination, flow, flow.base + static_cast<std::uint32_t>(i));
  }
  Retire(destination, flow);
  for (std::size_t i = 0; i < flow.in_flight.size(); ++i) {
    if (!flow.in_flight[i].acknowledged) Arm(destination, flow, flow.in_flight[i].deadline);
  }
  RestIfDone(destination);
}

// Its last try decides, whatever has come back meanwhile.
DropReason MessageLayer::WhyGivenUp(const InFlight& packet) {
  if (!packet.refused) return DropReason::kUnacknowledged;
  return packet.window_down ? DropReason::kWindowDown : DropReason::kNoRoute;
}

void MessageLayer::OnAck(const PacketHeader& ack) {
  SenderFlow* const awake = Awake(ack.source);
  if (!awake) return;
  SenderFlow& flow = *awake;
  // Above 0: the receiver has not yet learned which packets were given up. At most two windows,
  // else numbers would wrap around.
  const std::int32_t gap = static_cast<std::int32_t>(flow.given_up - ack.flow_sequence);
  const bool keeps_back = gap > 0 && gap < 2 * kWindow;
  for (std::size_t i = 0; i < flow.in_flight.size(); ++i) {
    const std::int32_t ahead =
        static_cast<std::int32_t>(flow.base + static_cast<std::uint32_t>(i) - ack.flow_sequence);
    if (ahead >= kWindow) break;
    InFlight& packet = flow.in_flight[i];
    if (packet.acknowledged || (ahead >= 0 && !((ack.offset >> ahead) & 1))) continue;
    if (ahead >= 0 && keeps_back) {
      Hold(flow, packet);
    } else {
      Acknowledge(flow, packet);
    }
  }
  Retire(ack.source, flow);
  RestIfDone(ack.source);
}

void MessageLayer::Acknowledge(SenderFlow& flow, InFlight& packet) {
  packet.acknowledged = true;
  packet.held = false;
  Message* message = Find(flow, packet.message);
  if (message && !message->failed) ++message->acknowledged;
}

// An operation is handed over as it comes, so nothing keeps it from its receiver.
void MessageLayer::Hold(SenderFlow& flow, InFlight& packet) {
  Message* message = Find(flow, packet.message);
  if (!message || message->failed) return;
  if (message->operation) {
    if (!packet.acknowledged) Acknowledge(flow, packet);
    return;
  }
  if (packet.acknowledged) --message->acknowledged;
  packet.acknowledged = false;
  packet.held = true;
  packet.deadline = kNever;
}

void MessageLayer::Fail(NodeId destination, SenderFlow& flow, std::uint32_t number,
                        DropReason reason) {
  Message& message = *Find(flow, number);
  if (message.failed) return;
  message.failed = true;
  if (!message.operation) {
    ++context_.stats.messages_failed;
    failed_.push_back({context_.node, destination, number, message.bytes, reason, context_.now});
  }
  bool behind = false;
  for (std::size_t i = 0; i < flow.in_flight.size(); ++i) {
    InFlight& packet = flow.in_flight[i];
    if (packet.message == number) {
      behind = true;
      packet.acknowledged = true;
      packet.held = false;
      const std::uint32_t ahead = static_cast<std::uint32_t>(i) + 1,
                          known = flow.given_up - flow.base;
      if (known > kWindow || ahead > known) flow.given_up = flow.base + ahead;
    } else if (behind && packet.acknowledged) {
      Hold(flow, packet);
    }
  }
}

void MessageLayer::Retire(NodeId destination, SenderFlow& flow) {
  while (!flow.in_flight.empty() && flow.in_flight.front().acknowledged) {
    flow.in_flight.pop_front();
    ++flow.base;
  }
  while (!flow.messages.empty() && flow.messages.front().finished()) {
    const Message message = flow.messages.front();
    // The packets of a message that was given up may still be ahead of base; no one needs it any
    // more.
    flow.messages.front().content = nullptr;  // the ring keeps its slots
    flow.messages.front().payload.Clear();
    flow.messages.pop_front();
    if (flow.sending > 0) --flow.sending;
    context_.last_event = context_.now;
    Done(destination, message);
  }
  AskForHeld(destination, flow);
  Pump(destination, flow);
}

// Only the first is retransmitted: it says which packets are given up, and its answer covers all.
// If it is lost, each packet has its own timer.
void MessageLayer::AskForHeld(NodeId destination, SenderFlow& flow) {
  for (std::size_t i = 0; i < flow.in_flight.size() && flow.in_flight[i].held; ++i) {
    InFlight& packet = flow.in_flight[i];
    packet.held = false;
    packet.tries = 0;
    if (i > 0) {
      packet.deadline = context_.now + context_.parameters->retransmit_timeout;
      Arm(destination, flow, packet.deadline);
      continue;
    }
    ++context_.stats.packets_resent;
    SendPacket(destination, flow, flow.base);
  }
}

void MessageLayer::Done(NodeId destination, const Message& message) {
  --context_.work->unfinished;
  const bool delivered = !message.failed;
  if (delivered && !message.operation) ++context_.stats.messages_acknowledged;
  if (message.operation) {
    listener_.OnOperationDone(message.source_window, static_cast<std::uint64_t>(message.created),
                              message.tag, delivered, message.refused);
  } else {
    listener_.OnMessageDone(destination, message.number, delivered);
  }
}

MessageLayer::Message* MessageLayer::Find(SenderFlow& flow, std::uint32_t number) {
  if (flow.messages.empty()) return nullptr;
  const std::uint32_t index = number - flow.messages.front().number;
  return index < flow.messages.size() ? &flow.messages[index] : nullptr;
}

void MessageLayer::PeerAnew(NodeId peer) {
  receivers_.erase(peer);
  ahead_.erase(peer);
  if (!senders_.contains(peer) && !senders_at_rest_.contains(peer)) return;
  SenderFlow& flow = Wake(peer);
  std::vector<Message> over;
  while (!flow.messages.empty()) {
    Message& message = flow.messages.front();
    // The other hub may have held, and lost, a packet that was acknowledged while earlier ones were
    // not.
    if (!message.operation || !message.finished())
      Fail(peer, flow, message.number, DropReason::kOldIncarnation);
    message.content = nullptr;
    message.payload.Clear();
    over.push_back(message);
    flow.messages.pop_front();
  }
  while (!flow.in_flight.empty()) flow.in_flight.pop_front();
  flow.sending = 0;
  flow.base = flow.given_up = 0;
  flow.timer_at = kNever;
  flow.since = context_.now;
  for (const Message& message : over) Done(peer, message);
}

// --- Receiver ------------------------------------------------------------------------------------

std::optional<DropReason> MessageLayer::OnData(const PacketHeader& header) {
  if (replies_ >= context_.parameters->reply_queue_packets) return DropReason::kNoReplySlot;
  ReceiverFlow& flow = receivers_[header.source];
  const auto kept = ahead_.find(header.source);
  Ahead* ahead = kept == ahead_.end() ? nullptr : kept->second.get();
  bool completed = false;
  // Skips packets that were given up, and delivers those that waited behind them.
  while (static_cast<std::int32_t>(header.flow_base - flow.base) > 0 || BitmapOf(ahead) & 1)
    completed |= AdvanceOver(flow, ahead);
  const std::int32_t place = static_cast<std::int32_t>(header.flow_sequence - flow.base);
  if (place < 0 || ((BitmapOf(ahead) >> place) & 1)) {
    SendAck(header, flow, BitmapOf(ahead));
    if (ahead && ahead->bitmap == 0) ahead_.erase(kept);
    return DropReason::kDuplicate;
  }
  const Received received = ReceivedFrom(header);
  ++flow.since_ack;
  const bool last =
      received.operation ? (header.message_created & kAcknowledgeAtOnce) != 0 : received.last;
  if (place == 0 && BitmapOf(ahead) == 0) {
    completed |= Advance(flow, received);
  } else {
    if (!ahead) ahead = (ahead_[header.source] = std::make_unique<Ahead>()).get();
    ahead->bitmap |= std::uint64_t{1} << place;
    ahead->window[header.flow_sequence % 64] = received;
    while (ahead->bitmap & 1) completed |= AdvanceOver(flow, ahead);
    // A gap that this packet closes.
    completed |= received.operation && place == 0 && ahead->bitmap == 0;
  }
  if (static_cast<int>(flow.since_ack) >= context_.parameters->ack_every_packets || last ||
      completed) {
    SendAck(header, flow, BitmapOf(ahead));
  }
  if (ahead && ahead->bitmap == 0) ahead_.erase(header.source);
  return std::nullopt;
}

MessageLayer::Received MessageLayer::ReceivedFrom(const PacketHeader& header) {
  Received received;
  received.message = {header.source,        header.source_window, header.destination_window,
                      header.message_bytes, header.tag,           header.message};
  received.created = header.message_created;
  received.first = header.offset == 0;
  received.last = header.offset + header.bytes == header.message_bytes;
  received.operation = header.kind == PacketKind::kOperation;
  return received;
}

bool MessageLayer::AdvanceOver(ReceiverFlow& flow, Ahead* ahead) {
  const bool present = BitmapOf(ahead) & 1;
  if (ahead) ahead->bitmap >>= 1;
  if (present) return Advance(flow, ahead->window[flow.base % 64]);
  ++flow.base;
  flow.broken = true;  // the sender has given it up
  return false;
}

bool MessageLayer::Advance(ReceiverFlow& flow, const Received& received) {
  ++flow.base;
  if (received.operation) {
    flow.broken = false;  // the incomplete message has ended
    return false;
  }
  if (received.first) flow.broken = false;
  if (!received.last || flow.broken) return false;
  ++context_.stats.messages_delivered;
  context_.stats.message_bytes_delivered += received.message.bytes;
  context_.stats.message_latency.Add(static_cast<std::uint64_t>(context_.now - received.created));
  listener_.OnMessage(received.message);
  return true;
}

void MessageLayer::SendAck(const PacketHeader& data, ReceiverFlow& flow, std::uint64_t bitmap) {
  flow.since_ack = 0;
  Packet* p = hfi_.NewPacket();
  PacketHeader& ack = p->header;
  ack.destination = data.source;
  ack.source_window = data.destination_window;
  ack.destination_window = data.source_window;
  ack.kind = PacketKind::kAck;
  ack.flow_sequence = flow.base;
  ack.offset = bitmap;
  ++context_.stats.acks_sent;
  if (hfi_.Send(p, false, hfi_.route(TrafficClass::kFifo))) ++replies_;
}

}  // namespace percs
