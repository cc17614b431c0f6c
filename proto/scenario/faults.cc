#include "proto/scenario/faults.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "emulator/topology/find_names.h"
#include "fmt/format.h"
#include "proto/process/printable.h"
#include "proto/scenario/validate.h"

namespace percs {
namespace {

constexpr std::size_t kNamesListed = 64;

// Their order is one; a unit test compares the names.
static_assert(v1::FaultKind_MAX == kFaultKinds);
static_assert(v1::FAULT_MODE_PERCENT == static_cast<int>(FaultMode::kPercent) + 1);
static_assert(v1::FAULT_DIRECTION_BACKWARD == static_cast<int>(FaultDirection::kBackward) + 1);
static_assert(v1::FAULT_LINK_CLASS_D == static_cast<int>(LinkClass::kD) + 1 &&
              v1::FAULT_LINK_CLASS_IB == static_cast<int>(LinkClass::kIb) + 1);

absl::Status BuildSelector(const v1::FaultSelector& from, const Topology& topology,
                           FaultSelector* select) {
  if (from.has_link()) {
    const auto link = topology.ParseLink(from.link());
    if (!link.ok()) return link.status();
    select->link = *link;
  }
  if (from.link_class() != v1::FAULT_LINK_CLASS_UNSPECIFIED) {
    select->link_class = static_cast<LinkClass>(from.link_class() - 1);
  }
  for (const auto& [names, hubs] :
       {std::pair(from.in(), &select->in), std::pair(from.to(), &select->to)}) {
    auto parsed = ParseHubs(names, topology);
    if (!parsed.ok()) return parsed.status();
    *hubs = *std::move(parsed);
  }
  return absl::OkStatus();
}

absl::Status BuildInjection(const v1::Injection& from, const Topology& topology, FaultSpec* spec) {
  const SourceMarks marks("fault");
  ErrorList errors(&marks);
  CheckFields(from, &errors);
  if (!errors.empty()) return errors.ToStatus();
  spec->kind = static_cast<FaultKind>(from.kind() - 1);
  if (from.mode() != v1::FAULT_MODE_UNSPECIFIED)
    spec->mode = static_cast<FaultMode>(from.mode() - 1);
  if (from.has_count()) spec->count = from.count();
  spec->percent = from.percent();
  if (from.has_seed()) spec->seed = from.seed();
  if (from.direction() != v1::FAULT_DIRECTION_UNSPECIFIED) {
    spec->direction = static_cast<FaultDirection>(from.direction() - 1);
  }
  spec->duration = from.duration();
  spec->period = from.period();
  if (from.has_duty()) spec->duty = from.duty();
  spec->repeats = from.repeats();
  spec->lanes = static_cast<std::uint32_t>(from.lanes());
  if (from.has_flit_error_rate() && from.has_bit_error_rate()) {
    return absl::InvalidArgumentError(
        "flit_error_rate and bit_error_rate exclude each other; remove one");
  }
  spec->flit_error_rate =
      from.has_bit_error_rate() ? FlitErrorRate(from.bit_error_rate()) : from.flit_error_rate();
  spec->corrupt = static_cast<std::uint32_t>(from.corrupt_next());
  if (from.has_destination()) {
    const auto hub = topology.ParseNode(from.destination());
    if (!hub.ok()) return hub.status();
    spec->destination = *hub;
  }
  spec->latency = from.latency();
  if (from.has_hfi()) spec->hfi = from.hfi();
  if (from.has_window()) spec->window = from.window();
  spec->drift_ppb = from.drift_ppb();
  if (from.has_pcie_port()) spec->pcie_port = from.pcie_port();
  if (from.has_with()) {
    const auto cable = topology.ParseLink(from.with());
    if (!cable.ok()) return cable.status();
    spec->with = *cable;
  }
  return BuildSelector(from.select(), topology, &spec->select);
}

absl::Status SelectLink(const std::string& link, const std::string& from, const Topology& topology,
                        FaultSpec* spec) {
  const auto end = topology.ParseLink(link);
  if (!end.ok()) return end.status();
  spec->select.link = *end;
  if (from.empty()) return absl::OkStatus();
  const auto node = topology.ParseNode(from);
  if (!node.ok()) return node.status();
  const LinkEnd far = topology.Peer(end->node, end->port);
  if (*node != end->node && *node != far.node) {
    return absl::InvalidArgumentError(fmt::format("{} is not an end of {}; write {} or {}", from,
                                                  link, topology.NodeName(end->node),
                                                  topology.NodeName(far.node)));
  }
  spec->direction = *node == end->node ? FaultDirection::kForward : FaultDirection::kBackward;
  return absl::OkStatus();
}

// A shortcut in a file or a command: the ranges of its fields are checked.
template <typename Message>
absl::Status CheckSetting(const Message& from) {
  const SourceMarks marks("fault");
  ErrorList errors(&marks);
  CheckFields(from, &errors);
  return errors.empty() ? absl::OkStatus() : errors.ToStatus();
}

absl::Status BuildErrors(const v1::LinkErrors& from, const Topology& topology, FaultSpec* spec) {
  if (absl::Status status = CheckSetting(from); !status.ok()) return status;
  spec->kind = from.has_corrupt_next() ? FaultKind::kCorruptNext : FaultKind::kBitErrors;
  spec->corrupt = static_cast<std::uint32_t>(from.corrupt_next());
  spec->flit_error_rate =
      from.has_bit_error_rate() ? FlitErrorRate(from.bit_error_rate()) : from.flit_error_rate();
  const bool none = spec->corrupt == 0 && spec->flit_error_rate == 0;
  spec->sets = none ? FaultSets::kMended : FaultSets::kBroken;
  return SelectLink(from.link(), from.from(), topology, spec);
}

absl::Status BuildLanes(const v1::LanesLost& from, const Topology& topology, FaultSpec* spec) {
  if (absl::Status status = CheckSetting(from); !status.ok()) return status;
  spec->kind = FaultKind::kLaneLoss;
  spec->lanes = static_cast<std::uint32_t>(from.count());
  spec->sets = from.count() == 0 ? FaultSets::kMended : FaultSets::kBroken;
  return SelectLink(from.link(), from.from(), topology, spec);
}

absl::Status BuildCut(const std::string& link, FaultSets sets, const Topology& topology,
                      FaultSpec* spec) {
  spec->kind = FaultKind::kLinkDown;
  spec->sets = sets;
  if (absl::Status status = SelectLink(link, "", topology, spec); !status.ok()) return status;
  const LinkEnd end = *spec->select.link, far = topology.Peer(end.node, end.port);
  if (far.node < end.node) spec->select.link = far;  // both of its names are the same link
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NodeId>> ParseHubs(const std::string& names, const Topology& topology) {
  std::vector<NodeId> hubs;
  for (const auto part : absl::StrSplit(names, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
    const std::string name(part);
    const std::vector<NodeId> named = HubsNamed(topology, name);
    hubs.insert(hubs.end(), named.begin(), named.end());
    if (!named.empty()) continue;
    const auto node = topology.ParseNode(name);  // a crossbar; for its words, or a blade
    if (!node.ok()) return node.status();
    if (topology.is_crossbar(*node)) {
      hubs.push_back(*node);
      continue;
    }
    return absl::InvalidArgumentError(
        fmt::format("{} is not a hub; name hubs, drawers (sn0-d1) or supernodes (sn0)", name));
  }
  std::sort(hubs.begin(), hubs.end());
  hubs.erase(std::unique(hubs.begin(), hubs.end()), hubs.end());
  return hubs;
}

absl::StatusOr<FaultSpec> BuildFaultSpec(const v1::Fault& fault, const Topology& topology) {
  FaultSpec spec;
  if (absl::Status status = CheckName(fault.id()); !status.ok()) return status;
  spec.id = fault.id();
  if (fault.has_at()) spec.at = fault.at();
  absl::Status status;
  switch (fault.action_case()) {
    case v1::Fault::kInject:
      status = BuildInjection(fault.inject(), topology, &spec);
      break;
    case v1::Fault::kLinkDown:
      status = BuildCut(fault.link_down(), FaultSets::kBroken, topology, &spec);
      break;
    case v1::Fault::kLinkUp:
      status = BuildCut(fault.link_up(), FaultSets::kMended, topology, &spec);
      break;
    case v1::Fault::kLinkErrors:
      status = BuildErrors(fault.link_errors(), topology, &spec);
      break;
    case v1::Fault::kLanesLost:
      status = BuildLanes(fault.lanes_lost(), topology, &spec);
      break;
    default:
      status = absl::InvalidArgumentError(
          "this fault cannot be a resource; write `inject`, link_down, link_up, link_errors or "
          "lanes_lost");
  }
  if (!status.ok()) return status;
  return spec;
}

std::string DescribeSetting(const FaultSpec& spec, const Topology& topology) {
  LinkEnd sender = *spec.select.link;
  if (spec.direction == FaultDirection::kBackward) sender = topology.Peer(sender.node, sender.port);
  const std::string link =
      topology.LinkName(sender) + (spec.direction == FaultDirection::kBoth ? ", both ways" : "");
  switch (spec.kind) {
    case FaultKind::kBitErrors:
      return fmt::format("{}: flit error rate {}", link, spec.flit_error_rate);
    case FaultKind::kCorruptNext:
      return fmt::format("{}: the next {} flits corrupted", link, spec.corrupt);
    case FaultKind::kLaneLoss:
      return fmt::format("{}: {} lanes lost", link, spec.lanes);
    case FaultKind::kLatency:
      return fmt::format("{}: {} of added latency", link, FormatTime(spec.latency));
    default:
      return fmt::format("{}: {}", link, spec.sets == FaultSets::kMended ? "up" : "down");
  }
}

void FaultToProto(const FaultStatus& fault, const Topology& topology, v1::FaultStatus* message) {
  message->set_id(fault.spec.id);
  message->set_number(fault.number);
  message->set_kind(FaultKindName(fault.spec.kind));
  message->set_phase(FaultPhaseName(fault.phase));
  message->set_seed(fault.seed);
  const auto list = [&](const std::string& name) {
    if (static_cast<std::size_t>(message->targets_size()) < kNamesListed)
      message->add_targets(name);
  };
  for (const LinkEnd& link : fault.targets.links) list(topology.LinkName(link));
  for (const NodeId hub : fault.targets.hubs) list(topology.NodeName(hub));
  message->set_selected(fault.targets.size());
  message->set_selected_at(fault.selected_at);
  message->set_begins_at(fault.begins_at);
  message->set_injections(fault.injections);
  message->set_recoveries(fault.recoveries);
  if (fault.injected_at != kNever) message->set_injected_at(fault.injected_at);
  if (fault.recovered_at != kNever) message->set_recovered_at(fault.recovered_at);
  if (fault.next != kNever) message->set_next_at(fault.next);
}

void TimelineToProto(const FaultTimeline& timeline, v1::FaultStatus* message) {
  if (timeline.detected == kNever) return;
  message->set_detected_at(timeline.detected);
  message->set_alerted_at(timeline.alerted);
  message->set_planned_at(timeline.planned);
  message->set_committed_at(timeline.committed);
  message->set_epoch(timeline.epoch);
  if (timeline.first_packet != kNever) message->set_first_packet_at(timeline.first_packet);
}

void LossesToProto(const Losses& losses, v1::FaultStatus* message) {
  message->set_packets_lost(losses.lost);
  message->set_packets_resent(losses.resent);
  message->set_replays(losses.replayed);
}

void FaultToProto(const FaultStatus& fault, const RunResult& result, const Topology& topology,
                  v1::FaultStatus* message) {
  FaultToProto(fault, topology, message);
  TimelineToProto(TimelineOf(fault, result.reroutes, topology), message);
  std::vector<FaultTally> tallies = result.tallies;
  LossesToProto(FaultTallies::Of(&tallies, fault.number), message);
}

void ActionToProto(const FaultAction& action, v1::FaultActionCommand* message) {
  message->set_at(action.at);
  message->set_fault(action.fault);
  if (action.replaces > 0) message->set_replaces(action.replaces);
  message->set_kind(static_cast<std::uint32_t>(action.kind));
  message->set_begins(action.begins);
  message->set_node(action.end.node);
  message->set_port(action.end.port);
  if (action.rate > 0) message->set_rate(action.rate);
  if (action.count > 0) message->set_count(action.count);
  if (action.value != 0) message->set_value(action.value);
  if (action.kind == FaultAction::Kind::kRewired) {
    message->set_peer_node(action.peer.node);
    message->set_peer_port(action.peer.port);
  }
  if (action.kind != FaultAction::Kind::kTableDamaged) return;
  message->set_table_kind(static_cast<std::uint32_t>(action.place.kind));
  message->set_table_port(action.place.port);
  message->set_table_intra(action.place.intra);
  message->set_table_index(action.place.index);
}

absl::StatusOr<FaultAction> ActionFromProto(const v1::FaultActionCommand& message) {
  if (message.kind() >= kFaultActionKinds || message.port() > kNoPort ||
      message.table_port() > kNoPort || message.table_kind() > kTableKinds ||
      message.table_index() > 0xffff) {
    return absl::InvalidArgumentError(
        fmt::format("an action of kind {} at port {} of node {}, table {}", message.kind(),
                    message.port(), message.node(), message.table_kind()));
  }
  FaultAction action;
  action.at = message.at();
  action.fault = message.fault();
  action.replaces = message.replaces();
  action.kind = static_cast<FaultAction::Kind>(message.kind());
  action.begins = message.begins();
  action.end = {message.node(), static_cast<PortId>(message.port())};
  action.rate = message.rate();
  action.count = message.count();
  action.value = message.value();
  if (action.kind == FaultAction::Kind::kRewired) {
    if (message.peer_port() > kNoPort) {
      return absl::InvalidArgumentError(fmt::format("a cable to port {}", message.peer_port()));
    }
    action.peer = {message.peer_node(), static_cast<PortId>(message.peer_port())};
  }
  action.place.kind = static_cast<TableKind>(message.table_kind());
  action.place.port = static_cast<PortId>(message.table_port());
  action.place.intra = message.table_intra();
  action.place.index = static_cast<std::uint16_t>(message.table_index());
  return action;
}

}  // namespace percs
