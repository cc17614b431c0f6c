#include "emulator/sim/fault_injector.h"

#include "emulator/fault/link_impairment.h"
#include "fmt/format.h"

namespace percs {

absl::Status FaultInjector::CheckTime(Time at, Time now) const {
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a fault at {} of virtual time, which is already {}", FormatTime(at), FormatTime(now)));
}

absl::Status FaultInjector::Inject(const LinkFault& fault, Time now) {
  const LinkEnd ends[] = {fault.link, topology_.Peer(fault.link.node, fault.link.port)};
  if (ends[1].node == kNoNode) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing is plugged in there", topology_.LinkName(fault.link)));
  }
  if (absl::Status status = CheckTime(fault.at, now); !status.ok()) return status;
  for (const LinkEnd& end : ends) {
    Hub* hub = HubAt(end.node);
    if (!hub) continue;
    ControlItem item;
    item.kind = ControlItem::Kind::kLinkFault;
    item.source = fault.link.node;  // this end accounts for the command
    item.target = end.node;
    item.port = end.port;
    item.up = fault.up;
    item.arrival = fault.at;
    if (end == fault.link) ++hub->context().work->unfinished;
    hub->Receive(item);
  }
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const LinkImpairment& impairment, Time now) {
  const LinkEnd sender = impairment.sender;
  if (absl::Status s = CheckImpairment(impairment, topology_, parameters_); !s.ok()) return s;
  if (absl::Status status = CheckTime(impairment.at, now); !status.ok()) return status;
  // Errors are the sender's business; how many lanes there are, both ends know.
  const bool lanes = impairment.kind == LinkImpairment::Kind::kLanesLost;
  for (const LinkEnd& end : {sender, topology_.Peer(sender.node, sender.port)}) {
    Hub* hub = HubAt(end.node);
    if (!hub || !(lanes || end == sender)) continue;
    ControlItem item;
    item.kind = ControlItem::Kind::kImpairment;
    item.source = sender.node;  // accounts for the command
    item.target = end.node;
    item.port = end.port;
    item.arrival = impairment.at;
    item.impairment = impairment;
    if (end == sender) ++hub->context().work->unfinished;
    hub->Receive(item);
  }
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const BladeFault& fault, Time now) {
  if (!topology_.is_blade(fault.node)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no blade; only blades have SPEs, rings and chip links",
                    topology_.NodeName(fault.node)));
  }
  EdgeNode* blade = BladeAt(fault.node);
  if (!blade) return absl::OkStatus();
  if (absl::Status status = CheckTime(fault.at, now); !status.ok()) return status;
  return blade->Inject(fault);
}

absl::Status FaultInjector::CheckPlace(NodeId node, const TablePlace& place) const {
  const bool multicast = place.kind == TableKind::kMulticast;
  const int entries = multicast     ? static_cast<int>(topology_.groups().size())
                      : place.intra ? topology_.hubs_per_supernode()
                                    : topology_.supernodes();
  const bool striped_port = (multicast || place.kind == TableKind::kStriped) && place.port != kNoPort;
  if (node >= topology_.nodes() || (place.port != kNoPort && place.port >= kLinkPorts) ||
      place.index >= entries || striped_port) {
    return absl::InvalidArgumentError(
        fmt::format("entry {} of a table of port {} of node {} cannot be damaged: there are nodes 0..{}, link "
                    "ports 0..{}, {} entries here, a striped table at the source only, and one multicast table",
                    place.index, place.port, node, topology_.nodes() - 1, kLinkPorts - 1, entries));
  }
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const TableFault& fault, Time now) {
  if (absl::Status status = CheckPlace(fault.node, fault.place); !status.ok()) return status;
  Hub* hub = HubAt(fault.node);
  if (!hub) return absl::OkStatus();
  if (absl::Status status = CheckTime(fault.at, now); !status.ok()) return status;
  ControlItem item;
  item.kind = ControlItem::Kind::kTableFault;
  item.target = fault.node;
  item.place = fault.place;
  item.arrival = fault.at;
  ++hub->context().work->unfinished;
  hub->Receive(item);
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const FaultAction& action, Time now) {
  const LinkEnd end = action.end;
  if (end.node >= topology_.nodes()) {
    return absl::InvalidArgumentError(
        fmt::format("a fault of node {}; there are nodes 0..{}", end.node, topology_.nodes() - 1));
  }
  const bool of_table = action.kind == FaultAction::Kind::kTableDamaged;
  if (absl::Status s = of_table ? CheckPlace(end.node, action.place) : absl::OkStatus(); !s.ok()) return s;
  if (!of_table && (end.port >= kLinkPorts || !topology_.connected(end.node, end.port))) {
    return absl::InvalidArgumentError(fmt::format("{}: nothing is plugged in there", topology_.LinkName(end)));
  }
  if (!(action.rate >= 0 && action.rate <= 1)) {
    return absl::InvalidArgumentError(fmt::format("a flit error rate of {}; it is a probability, 0 to 1", action.rate));
  }
  if (absl::Status status = CheckTime(action.at, now); !status.ok()) return status;
  Give(action, end);
  if (action.at_both_ends()) Give(action, topology_.Peer(end.node, end.port));
  return absl::OkStatus();
}

void FaultInjector::Give(const FaultAction& action, LinkEnd end) {
  Hub* hub = HubAt(end.node);
  if (!hub) return;
  ControlItem item;
  item.kind = ControlItem::Kind::kFault;
  item.target = end.node;
  item.port = end.port;
  item.arrival = action.at;
  item.action = action;
  hub->Receive(item);
}

}  // namespace percs
