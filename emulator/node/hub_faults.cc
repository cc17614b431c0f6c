// What faults do to a hub: they hold links down, impair them, keep alerts back, damage tables.
#include "emulator/node/hub.h"

namespace percs {

// Of actions of faults at one instant: what concerns tables and alerts comes before all links; of a link, down,
// up, then what is wrong with it.
std::pair<EventClass, int> Hub::OrderOf(const FaultAction& action) {
  switch (action.kind) {
    case FaultAction::Kind::kTableDamaged:
    case FaultAction::Kind::kAlertsMuted:
      return {EventClass::kCommand, 0};
    case FaultAction::Kind::kLinkDown:
      return {EventClass::kLink, action.begins ? 0 : 1};
    case FaultAction::Kind::kRetrain:
      return {EventClass::kLink, 1};
    default:
      return {EventClass::kLink, 2};
  }
}

// Network management hears of a change, unless a fault keeps it from that; then it hears when that is over.
void Hub::TellLink(PortId port) {
  const bool up = isr_.output(port).up, told_up = (told_down_ & PortBit(port)) == 0;
  if (up == told_up || (faults_ && faults_->Mutes(port))) return;
  told_down_ ^= PortBit(port);
  Alert(ControlItem::Kind::kAlert, port, up);
}

void Hub::OnImpairment(const ControlItem& item) {
  if (item.source == context_.node) --context_.work->unfinished;
  context_.last_event = context_.now;
  if (!faults_) faults_ = std::make_unique<ActiveFaults>();
  const LinkParameters& link = context_.parameters->link(ClassOf(item.port));
  isr_.Impair(item.port, faults_->Set(item.impairment, link.lanes + link.spare_lanes));
  FollowLink(item.port);
}

void Hub::OnFault(const FaultAction& action, PortId port) {
  context_.last_event = context_.now;
  if (!faults_) faults_ = std::make_unique<ActiveFaults>();
  LinkImpairment impairment{context_.now, action.end};
  switch (action.kind) {
    case FaultAction::Kind::kLinkDown:
      faults_->Apply(action, port);
      isr_.HoldLink(port, faults_->HoldsDown(port));
      break;
    case FaultAction::Kind::kErrorRate:
      faults_->Apply(action, port);
      impairment.flit_error_rate = faults_->ErrorRate(action.end);
      isr_.Impair(port, impairment);
      break;
    case FaultAction::Kind::kCorruptNext:
      impairment.kind = LinkImpairment::Kind::kCorruptNext;
      impairment.count = action.begins ? action.count : 0;
      isr_.Impair(port, impairment);
      break;
    case FaultAction::Kind::kLanesLost: {
      faults_->Apply(action, port);
      const LinkParameters& link = context_.parameters->link(ClassOf(port));
      impairment.kind = LinkImpairment::Kind::kLanesLost;
      impairment.count = faults_->LanesLost(action.end, link.lanes + link.spare_lanes);
      isr_.Impair(port, impairment);
      break;
    }
    case FaultAction::Kind::kAlertsMuted:
      faults_->Apply(action, port);
      return TellLink(port);
    case FaultAction::Kind::kRetrain:
      isr_.Retrain(port);
      break;
    case FaultAction::Kind::kTableDamaged:
      return action.begins ? isr_.router().Damage(action.place) : isr_.router().Repair(action.place);
  }
  FollowLink(port);
}

}  // namespace percs
