// How soon a hub reaches another process (docs/protocol.md "Windows"): its earliest output time.
#include <algorithm>

#include "emulator/node/hub.h"

namespace percs {
namespace {

bool IsOfMessages(const PacketHeader& header) {
  return header.kind == PacketKind::kData || header.kind == PacketKind::kAck;
}

}  // namespace

// Each event leads to nothing elsewhere before a delay, which depends on what the event is about.
// What waits for another packet, a link or the HFI moves on with an event of its own. What waits
// for credits moves on with one of another hub.
std::optional<Time> Hub::EarliestOutput(const OutputDelays& delays,
                                        absl::FunctionRef<bool(NodeId)> here) const {
  const std::optional<SendBound> sends = workload_ ? workload_->NextSend() : std::nullopt;
  if (!sends || windows_ || clock_ || congestion_) return std::nullopt;
  if (isr_.stalled_outputs() > 0) return std::nullopt;
  // With the first tables, routes to near hubs are of one link, which is in this process. After a
  // fault, a packet may lead to an alert.
  if (isr_.router().epoch() > 1 || faults_) return std::nullopt;
  const Topology& topology = *context_.topology;
  const auto near = [&](NodeId node) {
    return here(node) && topology.supernode_of(node) == topology.supernode_of(context_.node);
  };
  // A packet that is sent is in the ISR when its last flit is.
  const Time sent = context_.parameters->hfi.flit_time + delays.flit;
  // Of what is between such hubs, only what the workload does then can leave it.
  const Time inside = sends->reaction + sent;
  Time earliest = sends->next + sent;
  if (hfi_.backlog() > 0) earliest = std::min(earliest, next_time() + sent);
  const auto stays = [&](const Packet& packet) {
    const PacketHeader& h = packet.header;
    return IsOfMessages(h) && near(h.source) && near(h.destination);
  };
  const auto delay_of = [&](const Event& event) {
    const auto port = static_cast<PortId>(event.key.port());
    const bool run = event.key.event_class() == EventClass::kFlit &&
                     event.key.detail() == static_cast<std::uint64_t>(FlitEvent::kRun);
    if (!run) return delays.any;
    const Packet& packet = *event.object<const Packet>();
    if (IsHfi(port)) return stays(packet) ? inside : delays.flit;
    // What came from elsewhere returns credits. Later runs of a packet do not say where it is from.
    return packet.segment.first == 0 && stays(packet) ? inside : delays.any;
  };
  messages_.ForEachRetransmission([&](NodeId destination, Time at) {
    earliest = std::min(earliest, at + (near(destination) ? inside : sent));
  });
  context_.queue.ForEach([&](const Event& event) {
    const bool timer = event.key.event_class() == EventClass::kHfi &&
                       (event.key.port() == kTask || event.key.port() == kRetransmit);
    if (!timer) earliest = std::min(earliest, event.time + delay_of(event));
  });
  hfi_.ForEachDelivery([&](const Packet& packet, Time at) {
    const Time answered = IsOfMessages(packet.header) ? sent : delays.any;
    earliest = std::min(earliest, at + (stays(packet) ? inside : answered));
  });
  return std::min(earliest, kNever);
}

}  // namespace percs
