// What faults do to a hub: they hold links down, impair them, keep alerts back, damage tables.
#include <utility>

#include "emulator/base/check.h"
#include "emulator/node/hub.h"

namespace percs {

// Of actions of faults at one instant: what concerns tables, alerts and latencies comes before all
// links, as a link that goes down returns credits over others; of a link, down, up, then what is
// wrong with it.
std::pair<EventClass, int> Hub::OrderOf(const FaultAction& action) {
  switch (action.kind) {
    case FaultAction::Kind::kTableDamaged:
    case FaultAction::Kind::kAlertsMuted:
    case FaultAction::Kind::kCauDown:
    case FaultAction::Kind::kHfiDown:
    case FaultAction::Kind::kWindowDown:
    case FaultAction::Kind::kClockDrift:
    case FaultAction::Kind::kPcieUnplugged:
    case FaultAction::Kind::kResetArbiters:
    case FaultAction::Kind::kPeerAnew:
    case FaultAction::Kind::kLatency:
      return {EventClass::kCommand, 0};
    case FaultAction::Kind::kLinkDown:
      return {EventClass::kLink, action.begins ? 0 : 1};
    case FaultAction::Kind::kRewired:
    case FaultAction::Kind::kRetrain:
      return {EventClass::kLink, 1};
    case FaultAction::Kind::kRejoined:  // when everything else that keeps it down is known
      return {EventClass::kLink, 3};
    default:
      return {EventClass::kLink, 2};
  }
}

void Hub::FollowLink(PortId port) {
  const bool up = isr_.LinkMayBeUp(port);
  if (isr_.output(port).up == up) return;
  context_.last_event = context_.now;
  if (up) {
    isr_.LinkUp(port);
    if (congestion_) congestion_->OnLinkUp(port, context_.now);
  } else {
    isr_.LinkDown(port);
    if (congestion_) congestion_->OnLinkDown(port);
  }
  TellLink(port);
}

void Hub::Alert(ControlItem::Kind kind, PortId port, bool up) {
  ControlItem alert;
  alert.kind = kind;
  alert.port = port;
  alert.up = up;
  RaiseAlert(std::move(alert));
}

void Hub::RaiseAlert(ControlItem alert) {
  ++context_.stats.alerts_raised;
  ++context_.work->unfinished;  // until network management has heard it
  alert.raised = context_.now;
  Answer(std::move(alert));
}

void Hub::Answer(ControlItem answer) {
  answer.source = context_.node;
  answer.target = kManagerNode;
  answer.arrival = context_.now + context_.parameters->management_latency;
  send_control_(std::move(answer));
}

// Tells both ends of a link that it will be down at `at`.
void Hub::DeclareLost(PortId port, Time at) {
  ++context_.work->unfinished;
  const OutputPort& out = isr_.output(port);
  for (const LinkEnd end : {LinkEnd{context_.node, port}, LinkEnd{out.peer, out.peer_port}}) {
    ControlItem item;
    item.kind = ControlItem::Kind::kLinkLost;
    item.source = context_.node;
    item.target = end.node;
    item.port = end.port;
    item.epoch = out.generation;
    item.arrival = at;
    send_control_(std::move(item));
  }
}

// Raises an alert for a change, unless a fault suppresses alerts; then when that fault is over.
void Hub::TellLink(PortId port) {
  const bool up = isr_.output(port).up, told_up = (told_down_ & PortBit(port)) == 0;
  if (up == told_up || (faults_ && faults_->Mutes(port))) return;
  told_down_ ^= PortBit(port);
  Alert(ControlItem::Kind::kAlert, port, up);
}

void Hub::OnFault(const FaultAction& action, PortId port) {
  // Raw packets are delivered together, at the end of a window: those of the time before the fault
  // are not concerned.
  hfi_.DeliverBefore(context_.now);
  if (action.kind == FaultAction::Kind::kResetArbiters) return ResetArbiters();
  if (action.kind == FaultAction::Kind::kPeerAnew) return OnPeerAnew(action.peer.node);
  Tally(action, port);
  // The sending end carries it out; the other end only counts.
  if (action.of_sender() && !(action.end == LinkEnd{context_.node, port})) return;
  context_.last_event = context_.now;
  if (!faults_) faults_ = std::make_unique<ActiveFaults>();
  if (action.of_hub()) return OnFaultOfHub(action);
  const bool out_going = action.end == LinkEnd{context_.node, port};
  const LinkParameters& link = context_.parameters->link(ClassOf(port));
  switch (action.kind) {
    case FaultAction::Kind::kLinkDown:
      faults_->Apply(action, port);
      isr_.HoldLink(port, faults_->HoldsDown(port));
      break;
    case FaultAction::Kind::kErrorRate:
      faults_->Apply(action, port);
      isr_.SetErrorRate(port, faults_->ErrorRate(action.end));
      break;
    case FaultAction::Kind::kCorruptNext:
      isr_.CorruptNext(port, action.begins ? action.count : 0);
      break;
    case FaultAction::Kind::kLanesLost:
      faults_->Apply(action, port);
      isr_.SetLanesLost(port, out_going,
                        faults_->LanesLost(action.end, link.lanes + link.spare_lanes));
      break;
    case FaultAction::Kind::kLatency:
      faults_->Apply(action, port);
      isr_.SetLatency(port, out_going, faults_->Latency(action.end));
      break;
    case FaultAction::Kind::kAlertsMuted:
      faults_->Apply(action, port);
      return TellLink(port);
    case FaultAction::Kind::kRetrain:
      isr_.Retrain(port);
      break;
    case FaultAction::Kind::kRewired:
      return Rewire(action);
    case FaultAction::Kind::kRejoined:
      faults_->EndLosses(port, action.fault, action.at);
      isr_.HoldLink(port, faults_->HoldsDown(port));
      isr_.BeginGeneration(port, action.count);
      break;
    default:
      PERCS_CHECK(false);  // of a hub
  }
  FollowLink(port);
}

void Hub::OnFaultOfHub(const FaultAction& action) {
  if (action.kind == FaultAction::Kind::kTableDamaged) {
    return action.begins ? isr_.router().Damage(action.place) : isr_.router().Repair(action.place);
  }
  faults_->Apply(action, kNoPort);
  switch (action.kind) {
    case FaultAction::Kind::kCauDown:
      return cau_.SetDown(faults_->CauDown());
    case FaultAction::Kind::kHfiDown:
    case FaultAction::Kind::kWindowDown:
      context_.windows_down = faults_->WindowsDown(context_.parameters->windows_per_hfi);
      return;
    case FaultAction::Kind::kClockDrift:
      return clock_->AddDrift(faults_->ClockDrift(), context_.now);
    case FaultAction::Kind::kPcieUnplugged:
      return Windows().SetUnplugged(faults_->PcieUnplugged());
    default:
      PERCS_CHECK(false);  // of a link
  }
}

Losses Hub::LossesAt(int place) {
  Losses losses;
  if (context_.losses) losses = (*context_.losses)[static_cast<std::size_t>(place)];
  if (place < kLinkPorts)
    losses.replayed = std::as_const(context_.stats).ports[static_cast<std::size_t>(place)].replays;
  return losses;
}

std::vector<FaultTally> Hub::Tallies() {
  return tallies_ ? tallies_->All([this](int place) { return LossesAt(place); })
                  : std::vector<FaultTally>();
}

void Hub::Tally(const FaultAction& action, PortId port) {
  int place = port;
  switch (action.kind) {
    case FaultAction::Kind::kRetrain:
    case FaultAction::Kind::kClockDrift:
    case FaultAction::Kind::kPcieUnplugged:
      return;
    case FaultAction::Kind::kTableDamaged:
      place = kTablesPlace;
      break;
    case FaultAction::Kind::kCauDown:
      place = kCauPlace;
      break;
    case FaultAction::Kind::kHfiDown:
    case FaultAction::Kind::kWindowDown:
      place = kWindowsPlace;
      break;
    default:
      break;
  }
  if (!tallies_) tallies_ = std::make_unique<FaultTallies>();
  if (action.replaces != 0) tallies_->End(action.replaces, place, LossesAt(place));
  if (action.begins) {
    tallies_->Begin(action.fault, place, LossesAt(place));
  } else {
    tallies_->End(action.fault, place, LossesAt(place));
  }
}

// As at the start of a run: every pointer of a round robin, and the draws of middle supernodes.
void Hub::ResetArbiters() {
  isr_.ResetArbiters();
  isr_.router().ResetArbiters();
  if (congestion_) congestion_->Forget(context_.now);
  hfi_.ResetArbiters();
}

// Unplugged and plugged in elsewhere within one instant: what was in flight is lost. There is no
// alert, as the link is up before and after.
void Hub::Rewire(const FaultAction& action) {
  const PortId port = action.end.port;
  const LinkEnd peer = action.begins ? action.peer : context_.topology->Peer(context_.node, port);
  const WayTo way = ways_(peer.node);
  isr_.LinkDown(port);
  isr_.Rewire(port, peer, way.local, way.outbox, action.begins, action.count);
  if (isr_.LinkMayBeUp(port)) isr_.LinkUp(port);
  TellLink(port);
}

// A probe of the service port has found another hub or port than the wiring has there, or the right
// one again.
void Hub::TellWiring(PortId port, std::uint64_t found, bool right) {
  ControlItem alert;
  alert.kind = ControlItem::Kind::kWiringAlert;
  alert.port = port;
  alert.up = right;
  alert.hash = found;
  RaiseAlert(std::move(alert));
}

}  // namespace percs
