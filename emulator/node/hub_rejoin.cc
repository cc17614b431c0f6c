// A hub that rejoins in the place of a lost one, and what other hubs do then (docs/semantics.md
// rule 21).
#include "emulator/node/hub.h"

namespace percs {
namespace {

// Packets of later incarnations are numbered from multiples of this.
constexpr int kIncarnationShift = 40;
// Likewise requests of windows, so that no answer, write or datagram of an earlier incarnation is
// taken for a new one.
constexpr int kRequestShift = 26;

}  // namespace

void Hub::Rejoin(const RejoinedHubs& rejoined) {
  context_.now = anew_since_ = anew_last_ = rejoined.at;
  const std::uint64_t first = std::uint64_t{rejoined.incarnation - 1} << kIncarnationShift;
  hfi_.NumberAnew(first + 1);
  first_request_ = ((rejoined.incarnation - 1) << kRequestShift) + 1;
  faults_ = std::make_unique<ActiveFaults>();
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!isr_.output(port).connected) continue;
    FaultAction hold;
    hold.fault = kLossNumbers + rejoined.loss;
    hold.end = {context_.node, port};
    faults_->Apply(hold, port);
    isr_.HoldLink(port, true);
    isr_.LinkDown(port);
    told_down_ |= PortBit(port);  // by the others, when the hub was lost
  }
  if (clock_) {
    clock_->BeginAt(rejoined.at);
    clock_->SetRole(isr_.router().tables()->clock, rejoined.at);
  }
  if (service_) service_->StartAt(rejoined.at, first);
}

void Hub::OnPeerAnew(NodeId peer) {
  context_.last_event = context_.now;
  anew_last_ = peers_anew_[peer] = context_.now;
  messages_.PeerAnew(peer);
}

bool Hub::IsOld(const PacketHeader& header) const {
  const auto peer = peers_anew_.find(header.source);
  return header.created < anew_since_ ||
         (peer != peers_anew_.end() && header.created < peer->second);
}

}  // namespace percs
