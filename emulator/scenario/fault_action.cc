#include "emulator/scenario/fault_action.h"

#include "fmt/format.h"

namespace percs {

absl::Status CheckPlace(NodeId node, const TablePlace& place, const Topology& topology) {
  const bool multicast = place.kind == TableKind::kMulticast;
  const int entries = multicast     ? static_cast<int>(topology.groups().size())
                      : place.intra ? topology.hubs_per_supernode()
                                    : topology.supernodes();
  if (node < topology.nodes() && topology.in_tree(node)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has a forwarding table, whose entries have no parity; damage tables of hubs",
        topology.NodeName(node)));
  }
  const bool striped_port =
      (multicast || place.kind == TableKind::kStriped) && place.port != kNoPort;
  if (node >= topology.nodes() || (place.port != kNoPort && place.port >= kLinkPorts) ||
      place.index >= entries || striped_port) {
    return absl::InvalidArgumentError(fmt::format(
        "entry {} of a table of port {} of node {} cannot be damaged: there are nodes 0..{}, link "
        "ports 0..{}, {} entries here, a striped table at the source only, and one multicast table",
        place.index, place.port, node, topology.nodes() - 1, kLinkPorts - 1, entries));
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckOfHub(const FaultAction& action, const Topology& topology,
                        const P7ihParameters& parameters) {
  if (action.kind == FaultAction::Kind::kTableDamaged)
    return CheckPlace(action.end.node, action.place, topology);
  if (action.kind == FaultAction::Kind::kResetArbiters ||
      action.kind == FaultAction::Kind::kPeerAnew)
    return absl::OkStatus();
  const std::uint32_t hfis = kHfisPerHub,
                      windows = hfis * static_cast<std::uint32_t>(parameters.windows_per_hfi);
  const bool there =
      action.end.node < topology.hubs() &&
      (action.kind != FaultAction::Kind::kHfiDown || action.count < hfis) &&
      (action.kind != FaultAction::Kind::kWindowDown || action.count < windows) &&
      (action.kind != FaultAction::Kind::kClockDrift || topology.spec().clock.has_value()) &&
      (action.kind != FaultAction::Kind::kPcieUnplugged ||
       (action.count < kPciePorts &&
        topology.DeviceAt(action.end.node, static_cast<int>(action.count))));
  if (there) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("number {} of node {}: a hub has HFIs 0..{}, windows 0..{}, a clock if one is "
                  "distributed, and the "
                  "devices in PCI Express ports that the scenario gives it",
                  action.count, action.end.node, hfis - 1, windows - 1));
}

absl::Status CheckRewiring(const FaultAction& action, const Topology& topology) {
  if (action.kind != FaultAction::Kind::kRewired) return absl::OkStatus();
  const LinkEnd peer = action.peer;
  if (peer.node < topology.hubs() && peer.node != action.end.node && peer.port < kLinkPorts &&
      topology.connected(peer.node, peer.port) && ClassOf(peer.port) == ClassOf(action.end.port)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("a cable from {} to port {} of node {}, where it does not fit",
                  topology.LinkName(action.end), peer.port, peer.node));
}

}  // namespace

absl::Status CheckAction(const FaultAction& action, const Topology& topology,
                         const P7ihParameters& parameters) {
  const LinkEnd end = action.end;
  if (end.node >= topology.nodes()) {
    return absl::InvalidArgumentError(
        fmt::format("a fault of node {}; there are nodes 0..{}", end.node, topology.nodes() - 1));
  }
  if (absl::Status s =
          action.of_hub() ? CheckOfHub(action, topology, parameters) : absl::OkStatus();
      !s.ok())
    return s;
  if (!action.of_hub() && (end.port >= kLinkPorts || !topology.connected(end.node, end.port))) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing is plugged in there", topology.LinkName(end)));
  }
  if (!(action.rate >= 0 && action.rate <= 1)) {
    return absl::InvalidArgumentError(
        fmt::format("a flit error rate of {}; it is a probability, 0 to 1", action.rate));
  }
  return CheckRewiring(action, topology);
}

}  // namespace percs
