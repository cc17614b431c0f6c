#include "emulator/runtime/message_port.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/runtime/node_runtime.h"

namespace percs {
namespace {

// What enters the network at once; 8 packets.
constexpr std::uint64_t kSegmentBytes = 16384;
// Of one message in the send FIFO: one that the HFI streams and one that the thread fills.
constexpr std::uint64_t kSegmentsAhead = 2;
// Of one message in shared memory (send_pipeline_depth of ompi/mca/pml/ob1).
constexpr std::uint64_t kFragmentsAhead = 3;

std::uint64_t NextPart(std::uint64_t bytes) { return std::min(kSegmentBytes, bytes); }

std::uint64_t Handle(void* object) { return reinterpret_cast<std::uint64_t>(object); }

}  // namespace

std::uint32_t MessagePort::Tag(Kind kind, const Envelope& e) {
  return static_cast<std::uint32_t>(kind) << 30 | static_cast<std::uint32_t>(e.channel) << 24 |
         static_cast<std::uint32_t>(e.sequence) << 13 | e.phase;
}

Envelope MessagePort::EnvelopeOf(std::uint32_t tag) {
  return {static_cast<std::uint8_t>(tag >> 24 & (kChannels - 1)),
          static_cast<std::uint16_t>(tag >> 13 & (kSequences - 1)),
          static_cast<std::uint16_t>(tag & (kPhases - 1))};
}

Time MessagePort::CopyTime(std::uint64_t bytes) const { return node_.host().CopyTime(bytes); }

Time MessagePort::Register(bool local) {
  const HostParameters& host = node_.host();
  if (local && host.local_fragment > 0) return 0;  // shared memory is known
  registered_ =
      std::max(registered_, node_.now()) + (local ? host.registration : host.network_registration);
  return registered_ - node_.now();
}

Endpoint& MessagePort::EndpointOf(Rank& rank, const Envelope& envelope) {
  return node_.endpoint(rank, envelope.channel);
}

// --- Sender
// ---------------------------------------------------------------------------------------

void MessagePort::Send(Rank& from, std::uint32_t to, const Envelope& envelope, std::uint64_t bytes,
                       std::uint64_t eager_limit, Content content, Endpoint* sender) {
  const HostParameters& host = node_.host();
  Transfer* t = Take();
  t->from = &from;
  t->to = to;
  t->source = from.number();
  t->envelope = envelope;
  t->bytes = bytes;
  t->content = std::move(content);
  t->sender = sender;
  t->rendezvous = bytes > eager_limit;
  const bool local = node_.IsLocal(to);
  const Time overhead = local ? host.local_send : node_.hub().context().parameters->send_overhead;
  Time data = t->rendezvous ? 0 : host.WriteTime(local ? bytes : NextPart(bytes));
  if (InFragments(*t)) {  // what its request carries
    t->copied = t->read = t->streamed = eager_limit;
    data = host.WriteTime(eager_limit);
  }
  from.Do<&MessagePort::OnSendDone>(from.Shared(overhead) + data, this, Handle(t));
}

void MessagePort::OnSendDone(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  Rank& from = *t.from;
  if (t.rendezvous) {
    from.Do<&MessagePort::Ask>(Register(node_.IsLocal(t.to)), this, transfer);
    return;
  }
  if (node_.IsLocal(t.to)) {
    t.sender->OnSent(t.envelope);
    Rank& to = node_.rank(t.to);
    const Time overhead =
        node_.LineLatency(from.core(), to.core()) + to.Shared(node_.host().local_receive);
    to.Copy<&MessagePort::Received>(overhead, CopyTime(t.bytes), t.bytes, this, transfer);
  } else if (t.bytes <= kFlitBytes) {  // immediate send: the thread itself has put it into the HFI
    t.sender->OnSent(t.envelope);
    ToNetwork(from, t.to, Kind::kData, t.envelope, t.bytes, std::move(t.content));
    Give(&t);
  } else {
    Stream(t);
    CopiedOut(transfer);
  }
}

// The next segment into the send FIFO, once there is room.
void MessagePort::CopyOut(Transfer& t) {
  t.stalled = t.copied - t.streamed >= kSegmentsAhead * kSegmentBytes;
  if (t.stalled) return;
  t.from->Do<&MessagePort::CopiedOut>(node_.host().WriteTime(NextPart(t.bytes - t.copied)), this,
                                      Handle(&t));
}

void MessagePort::CopiedOut(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  t.copied += NextPart(t.bytes - t.copied);
  NextSegment(*t.from);
  if (t.copied < t.bytes) return CopyOut(t);
  t.sender->OnSent(t.envelope);
}

// --- Fragments
// --------------------------------------------------------------------------------------

bool MessagePort::InFragments(const Transfer& t) const {
  return t.rendezvous && node_.IsLocal(t.to) && node_.host().local_fragment > 0;
}

std::uint64_t MessagePort::FragmentAfter(const Transfer& t, std::uint64_t done) const {
  return std::min(node_.host().local_fragment, t.bytes - done);
}

void MessagePort::ReturnTo(Rank& from, const Rank& at) {
  if (node_.host().local_fragment == 0) return;
  from.Do<&MessagePort::Spent>(node_.LineLatency(at.core(), from.core()), this);
}

// The receiver has a buffer, and has copied what came with the request.
void MessagePort::Granted(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  const Rank& at = node_.rank(t.to);
  ReturnTo(*t.from, at);
  const Time overhead =
      node_.LineLatency(at.core(), t.from->core()) + t.from->Shared(node_.host().local_receive);
  t.from->Do<&MessagePort::Answered>(overhead, this, transfer);
}

void MessagePort::NextFragment(Transfer& t) {
  t.stalled = t.copied - t.streamed >= kFragmentsAhead * node_.host().local_fragment;
  if (t.stalled || t.copied == t.bytes) return;
  const Time write = node_.host().WriteTime(FragmentAfter(t, t.copied));
  t.from->Do<&MessagePort::FragmentFilled>(t.from->Shared(node_.host().local_send) + write, this,
                                           Handle(&t));
}

void MessagePort::FragmentFilled(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  const std::uint64_t bytes = FragmentAfter(t, t.copied);
  t.copied += bytes;
  Rank& at = node_.rank(t.to);
  const Time overhead =
      node_.LineLatency(t.from->core(), at.core()) + at.Shared(node_.host().local_receive);
  at.Copy<&MessagePort::FragmentRead>(overhead, CopyTime(bytes), bytes, this, transfer);
  NextFragment(t);
}

void MessagePort::FragmentRead(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  Rank& at = node_.rank(t.to);
  t.read += FragmentAfter(t, t.read);
  t.from->Do<&MessagePort::FragmentReturned>(node_.LineLatency(at.core(), t.from->core()), this,
                                             transfer);
  if (t.read < t.bytes) return;
  const Incoming message{t.source, t.envelope, t.bytes, t.content, false};
  EndpointOf(at, message.envelope).OnMessage(message);
}

void MessagePort::FragmentReturned(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  t.streamed += FragmentAfter(t, t.streamed);
  if (t.streamed == t.bytes) return Released(transfer);
  if (t.stalled) NextFragment(t);
}

// --- Rendezvous
// -------------------------------------------------------------------------------------

void MessagePort::Ask(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  Rank& from = *t.from;
  if (node_.IsLocal(t.to)) {
    Rank& to = node_.rank(t.to);
    to.Do<&MessagePort::Requested>(
        node_.LineLatency(from.core(), to.core()) + to.Shared(node_.host().local_receive), this,
        transfer);
    return;
  }
  asked_.push_back(&t);
  auto length = std::make_shared<std::vector<std::uint8_t>>(sizeof(t.bytes));
  std::memcpy(length->data(), &t.bytes, sizeof(t.bytes));
  ToNetwork(from, t.to, Kind::kRequest, t.envelope, sizeof(t.bytes), std::move(length));
}

void MessagePort::ToNetwork(Rank& from, std::uint32_t to, Kind kind, const Envelope& envelope,
                            std::uint64_t bytes, Content content) {
  const std::uint32_t local = node_.placement().LocalOf(to);
  node_.hub().SendMessage({node_.placement().NodeOf(to), node_.WindowOf(from.local()),
                           node_.WindowOf(local), bytes, Tag(kind, envelope), false,
                           std::move(content)});
}

void MessagePort::Stream(Transfer& transfer) {
  if (streams_.empty()) streams_.resize(node_.placement().tasks_per_node);
  streams_[transfer.from->local()].transfers.push_back(&transfer);
}

// Starts what the window can stream now, unless it is at something.
void MessagePort::NextSegment(Rank& rank) {
  Outflow& stream = streams_[rank.local()];
  if (stream.segment > 0 || stream.transfers.empty()) return;
  const Transfer& t = *stream.transfers.front();
  stream.segment = NextPart((t.rendezvous ? t.bytes : t.copied) - t.streamed);
  if (stream.segment == 0) return;  // its thread is still copying
  const Time per_kib = t.rendezvous ? node_.host().rdma_per_kib : node_.host().fifo_per_kib;
  const bool through_fifo = !t.rendezvous && t.streamed == 0;
  const Time latency = through_fifo ? node_.host().fifo_latency : 0;
  node_.WakeStream(rank,
                   node_.now() + latency + static_cast<Time>(stream.segment) * per_kib / 1024);
}

void MessagePort::OnStreamTimer(Rank& rank) {
  Outflow& stream = streams_[rank.local()];
  Transfer& t = *stream.transfers.front();
  const std::uint64_t segment = std::exchange(stream.segment, 0);
  const bool last = t.streamed + segment == t.bytes;
  Content content = t.content;
  if (content && segment < t.bytes) {
    const auto from = t.content->begin() + static_cast<std::ptrdiff_t>(t.streamed);
    content = std::make_shared<std::vector<std::uint8_t>>(
        from, from + static_cast<std::ptrdiff_t>(segment));
  }
  ToNetwork(rank, t.to, last ? Kind::kData : Kind::kSegment, t.envelope, segment,
            std::move(content));
  t.streamed += segment;
  if (last) {
    stream.transfers.pop_front();
    if (t.rendezvous) {
      rank.Do<&MessagePort::Released>(0, this, Handle(&t));
    } else {
      Give(&t);
    }
  }
  NextSegment(rank);
  if (!last && t.stalled) CopyOut(t);
}

void MessagePort::Answered(std::uint64_t transfer) {
  Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  if (InFragments(t)) return NextFragment(t);
  Stream(t);
  NextSegment(*t.from);
}

void MessagePort::Released(std::uint64_t transfer) {
  Transfer* t = reinterpret_cast<Transfer*>(transfer);
  Endpoint* sender = t->sender;
  const Envelope envelope = t->envelope;
  Give(t);
  sender->OnSent(envelope);
}

// --- Receiver
// -------------------------------------------------------------------------------------

void MessagePort::Received(std::uint64_t transfer) {
  Transfer* t = reinterpret_cast<Transfer*>(transfer);
  const Incoming message{t->source, t->envelope, t->bytes, std::move(t->content), false};
  Rank& at = node_.rank(t->to);
  if (t->from) ReturnTo(*t->from, at);  // of this node
  Give(t);
  EndpointOf(at, message.envelope).OnMessage(message);
}

void MessagePort::Requested(std::uint64_t transfer) {
  Transfer* t = reinterpret_cast<Transfer*>(transfer);
  const Incoming request{t->source, t->envelope, t->bytes, nullptr, true};
  Rank& at = node_.rank(t->to);
  if (node_.IsLocal(t->source)) {
    asked_.push_back(t);
  } else {
    Give(t);
  }
  EndpointOf(at, request.envelope).OnMessage(request);
}

void MessagePort::Accept(Rank& at, const Incoming& request) {
  if (!node_.IsLocal(request.source)) {
    inbound_.push_back({request.source, at.local(), request.envelope, 0, nullptr, true});
    Transfer* t = Take();
    *t = {&at, request.source, at.number(), request.envelope};
    const Time overhead = at.Shared(node_.hub().context().parameters->send_overhead);
    at.Do<&MessagePort::SendAnswer>(Register(false) + overhead, this, Handle(t));
    return;
  }
  const auto it = std::find_if(asked_.begin(), asked_.end(), [&](const Transfer* t) {
    return t->source == request.source && t->to == at.number() && t->envelope == request.envelope;
  });
  PERCS_CHECK(it != asked_.end());
  Transfer* t = *it;
  asked_.erase(it);
  at.Do<&MessagePort::Registered>(Register(true), this, Handle(t));
}

void MessagePort::Registered(std::uint64_t transfer) {
  const Transfer& t = *reinterpret_cast<Transfer*>(transfer);
  Rank& at = node_.rank(t.to);
  if (InFragments(t)) {
    const Time overhead = at.Shared(node_.host().local_send);
    return at.Copy<&MessagePort::Granted>(overhead, CopyTime(t.copied), t.copied, this, transfer);
  }
  at.Copy<&MessagePort::Pulled>(0, CopyTime(t.bytes), t.bytes, this, transfer);
}

void MessagePort::SendAnswer(std::uint64_t transfer) {
  Transfer* t = reinterpret_cast<Transfer*>(transfer);
  ToNetwork(*t->from, t->to, Kind::kAnswer, t->envelope, 0, nullptr);
  Give(t);
}

// The receiver's thread has copied the message out of the sender's memory.
void MessagePort::Pulled(std::uint64_t transfer) {
  Transfer* t = reinterpret_cast<Transfer*>(transfer);
  const Incoming message{t->source, t->envelope, t->bytes, t->content, false};
  Rank& at = node_.rank(t->to);
  Rank& from = *t->from;
  // The receiver sets a flag in the sender's own request. The sender polls it, as it polls for
  // fragments that come back: no message has to be received and matched for that.
  from.Do<&MessagePort::Released>(node_.LineLatency(at.core(), from.core()), this, transfer);
  EndpointOf(at, message.envelope).OnMessage(message);
}

MessagePort::Inbound* MessagePort::FindInbound(std::uint32_t source, std::uint32_t local,
                                               const Envelope& envelope) {
  for (Inbound& inbound : inbound_) {
    if (inbound.source == source && inbound.local == local && inbound.envelope == envelope)
      return &inbound;
  }
  return nullptr;
}

void MessagePort::OnMessage(const DeliveredMessage& message, Content content) {
  const Envelope envelope = EnvelopeOf(message.tag);
  const Kind kind = static_cast<Kind>(message.tag >> 30);
  const TaskPlacement& placement = node_.placement();
  const std::uint32_t local = node_.LocalAt(message.destination_window);
  const std::uint32_t source =
      message.source * placement.tasks_per_node + node_.LocalAt(message.source_window);
  Rank& at = node_.local_rank(local);
  const Time overhead = at.Shared(node_.hub().context().parameters->receive_overhead);
  if (kind == Kind::kAnswer) {
    const auto it = std::find_if(asked_.begin(), asked_.end(), [&](const Transfer* t) {
      return t->from == &at && t->to == source && t->envelope == envelope;
    });
    PERCS_CHECK(it != asked_.end());
    Transfer* t = *it;
    asked_.erase(it);
    at.Do<&MessagePort::Answered>(overhead, this, Handle(t));
    return;
  }
  Transfer* t = Take();
  *t = {nullptr, at.number(), source, envelope, message.bytes, 0, 0, std::move(content)};
  if (kind == Kind::kRequest) {
    std::memcpy(&t->bytes, t->content->data(), sizeof(t->bytes));
    at.Do<&MessagePort::Requested>(overhead, this, Handle(t));
    return;
  }
  Inbound* inbound = FindInbound(source, local, envelope);
  if (kind == Kind::kSegment && !inbound) {
    inbound = &inbound_.emplace_back(Inbound{source, local, envelope, 0, nullptr, false});
  }
  if (inbound) {
    inbound->bytes += message.bytes;
    if (t->content) {
      if (!inbound->content) inbound->content = std::make_shared<std::vector<std::uint8_t>>();
      inbound->content->insert(inbound->content->end(), t->content->begin(), t->content->end());
    }
  }
  // Out of the receive FIFO, which is in the cache of its core (paper 000 section IV-B).
  const Time copy = inbound && inbound->rendezvous ? 0 : node_.host().WriteTime(message.bytes);
  if (kind == Kind::kSegment) {
    if (copy > 0) at.Do<&MessagePort::Spent>(copy, this);
    return Give(t);
  }
  if (inbound) {
    t->bytes = inbound->bytes;
    t->content = std::move(inbound->content);
    inbound_.erase(inbound_.begin() + (inbound - inbound_.data()));
  }
  at.Do<&MessagePort::Received>(overhead + copy, this, Handle(t));
}

}  // namespace percs
