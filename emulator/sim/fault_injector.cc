#include "emulator/sim/fault_injector.h"

#include "absl/cleanup/cleanup.h"
#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/scenario/link_impairment.h"
#include "fmt/format.h"

namespace percs {

absl::Status FaultInjector::CheckTime(Time at, Time now) const {
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a fault at {} of virtual time, which is already {}", FormatTime(at), FormatTime(now)));
}

template <typename Command>
absl::Status FaultInjector::InjectAll(const std::vector<Command>& all, Time now) {
  for (const Command& command : all) {
    if (absl::Status status = Inject(command, now); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FaultInjector::Inject(const Scenario& scenario) {
  absl::Status status = InjectAll(scenario.faults, 0);
  if (status.ok()) status = InjectAll(scenario.impairments, 0);
  if (status.ok()) status = InjectAll(scenario.blade_faults, 0);
  return status.ok() ? InjectAll(scenario.table_faults, 0) : status;
}

absl::Status FaultInjector::Inject(const LinkFault& fault, Time now) {
  const LinkEnd ends[] = {fault.link, topology_.Peer(fault.link.node, fault.link.port)};
  if (ends[1].node == kNoNode) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing is plugged in there", topology_.LinkName(fault.link)));
  }
  if (absl::Status status = CheckTime(fault.at, now); !status.ok()) return status;
  if (only_ == nullptr) commands_.Note(fault, now);
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
  if (only_ == nullptr) commands_.Note(impairment, now);
  // Errors are the sender's business; how many lanes there are and how long it takes, both ends
  // know.
  const bool both = impairment.kind == LinkImpairment::Kind::kLanesLost ||
                    impairment.kind == LinkImpairment::Kind::kLatency;
  for (const LinkEnd& end : {sender, topology_.Peer(sender.node, sender.port)}) {
    Hub* hub = HubAt(end.node);
    if (!hub || !(both || end == sender)) continue;
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
        fmt::format("{} is not a blade; only blades have SPEs, rings and chip links",
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
  if (node < topology_.nodes() && topology_.in_tree(node)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has a forwarding table, whose entries have no parity; damage tables of hubs",
        topology_.NodeName(node)));
  }
  const bool striped_port =
      (multicast || place.kind == TableKind::kStriped) && place.port != kNoPort;
  if (node >= topology_.nodes() || (place.port != kNoPort && place.port >= kLinkPorts) ||
      place.index >= entries || striped_port) {
    return absl::InvalidArgumentError(fmt::format(
        "entry {} of a table of port {} of node {} cannot be damaged: there are nodes 0..{}, link "
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

absl::Status FaultInjector::CheckOfHub(const FaultAction& action) const {
  if (action.kind == FaultAction::Kind::kTableDamaged)
    return CheckPlace(action.end.node, action.place);
  if (action.kind == FaultAction::Kind::kResetArbiters ||
      action.kind == FaultAction::Kind::kPeerAnew)
    return absl::OkStatus();
  const std::uint32_t hfis = kHfisPerHub,
                      windows = hfis * static_cast<std::uint32_t>(parameters_.windows_per_hfi);
  const bool there =
      action.end.node < topology_.hubs() &&
      (action.kind != FaultAction::Kind::kHfiDown || action.count < hfis) &&
      (action.kind != FaultAction::Kind::kWindowDown || action.count < windows) &&
      (action.kind != FaultAction::Kind::kClockDrift || topology_.spec().clock.has_value()) &&
      (action.kind != FaultAction::Kind::kPcieUnplugged ||
       (action.count < kPciePorts &&
        topology_.DeviceAt(action.end.node, static_cast<int>(action.count))));
  if (there) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("number {} of node {}: a hub has HFIs 0..{}, windows 0..{}, a clock if one is "
                  "distributed, and the "
                  "devices in PCI Express ports that the scenario gives it",
                  action.count, action.end.node, hfis - 1, windows - 1));
}

absl::Status FaultInjector::CheckRewiring(const FaultAction& action) const {
  if (action.kind != FaultAction::Kind::kRewired) return absl::OkStatus();
  const LinkEnd peer = action.peer;
  if (peer.node < topology_.hubs() && peer.node != action.end.node && peer.port < kLinkPorts &&
      topology_.connected(peer.node, peer.port) && ClassOf(peer.port) == ClassOf(action.end.port)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("a cable from {} to port {} of node {}, where it does not fit",
                  topology_.LinkName(action.end), peer.port, peer.node));
}

absl::Status FaultInjector::Inject(const FaultAction& action, Time now) {
  const LinkEnd end = action.end;
  if (end.node >= topology_.nodes()) {
    return absl::InvalidArgumentError(
        fmt::format("a fault of node {}; there are nodes 0..{}", end.node, topology_.nodes() - 1));
  }
  if (absl::Status s = action.of_hub() ? CheckOfHub(action) : absl::OkStatus(); !s.ok()) return s;
  if (!action.of_hub() && (end.port >= kLinkPorts || !topology_.connected(end.node, end.port))) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing is plugged in there", topology_.LinkName(end)));
  }
  if (!(action.rate >= 0 && action.rate <= 1)) {
    return absl::InvalidArgumentError(
        fmt::format("a flit error rate of {}; it is a probability, 0 to 1", action.rate));
  }
  if (absl::Status status = CheckRewiring(action); !status.ok()) return status;
  if (absl::Status status = CheckTime(action.at, now); !status.ok()) return status;
  Give(action, end);
  if (action.at_both_ends()) Give(action, topology_.Peer(end.node, end.port));
  return absl::OkStatus();
}

absl::Status FaultInjector::TellAgain(const RejoinedHubs& rejoined, Time now) {
  only_ = &rejoined.nodes;
  const auto all_again = absl::MakeCleanup([this] { only_ = nullptr; });
  absl::Status status = InjectAll(rejoined.faults, now);
  if (status.ok()) status = InjectAll(rejoined.link_faults, now);
  return status.ok() ? InjectAll(rejoined.impairments, now) : status;
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
