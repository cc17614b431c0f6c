#include "emulator/scenario/fault_spec.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emulator/base/random.h"
#include "fmt/format.h"

namespace percs {
namespace {

bool Among(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

absl::Status Wrong(const FaultSpec& spec, const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", TitleOf(spec), what));
}

absl::Status CheckTimes(const FaultSpec& spec) {
  if (spec.at.value_or(0) < 0 || spec.at.value_or(0) >= kNever || spec.duration < 0 ||
      spec.period < 0) {
    return Wrong(spec, "times must not be negative");
  }
  if (spec.period == 0) {
    if (spec.repeats > 0)
      return Wrong(spec, "repeats without a period; write for example `period: 20us`");
    return spec.kind == FaultKind::kFlap
               ? Wrong(spec, "a flap needs a period; write for example `period: 20us`")
               : absl::OkStatus();
  }
  if (!(spec.duty > 0 && spec.duty < 1)) {
    return Wrong(spec,
                 fmt::format("a duty cycle of {}; write a share above 0 and below 1", spec.duty));
  }
  const Time on = static_cast<Time>(static_cast<double>(spec.period) * spec.duty);
  if (on < 1 || on >= spec.period) return Wrong(spec, "the period is too short for its duty cycle");
  return absl::OkStatus();
}

absl::Status CheckMode(const FaultSpec& spec) {
  if (spec.mode == FaultMode::kFixed && spec.count < 1) return Wrong(spec, "a count below 1");
  if (spec.mode == FaultMode::kPercent && !(spec.percent > 0 && spec.percent <= 100)) {
    return Wrong(spec, fmt::format("{} percent; above 0, at most 100", spec.percent));
  }
  return absl::OkStatus();
}

bool Has(const FaultSpec& spec, FaultField field) {
  switch (field) {
    case FaultField::kNone:
      return false;
    case FaultField::kLanes:
      return spec.lanes > 0;
    case FaultField::kErrorRate:
      return spec.flit_error_rate > 0;
    case FaultField::kCorrupt:
      return spec.corrupt > 0;
    case FaultField::kEntry:
      return spec.destination != kNoNode || spec.entry.has_value();
    case FaultField::kLatency:
      return spec.latency != 0;
    case FaultField::kHfi:
      return spec.hfi.has_value();
    case FaultField::kWindow:
      return spec.window.has_value();
    case FaultField::kDrift:
      return spec.drift_ppb != 0;
    case FaultField::kPciePort:
      return spec.pcie_port.has_value();
  }
  return false;
}

constexpr const char* kFieldNames[] = {"",
                                       "lanes",
                                       "flit_error_rate or bit_error_rate",
                                       "corrupt_next",
                                       "destination",
                                       "latency",
                                       "hfi",
                                       "window",
                                       "drift",
                                       "pcie_port"};

// Every field is given if and only if the kind needs it; a repair has no numbers.
absl::Status CheckValues(const FaultSpec& spec) {
  const FaultKindRow& row = RowOf(spec.kind);
  const auto extra = [&](const char* field) {
    return Wrong(spec, fmt::format("{} belongs to other kinds", field));
  };
  for (int f = 1; f <= static_cast<int>(FaultField::kPciePort); ++f) {
    const auto field = static_cast<FaultField>(f);
    const bool wanted = row.field == field && spec.sets != FaultSets::kMended;
    if (wanted == Has(spec, field)) continue;
    return wanted ? Wrong(spec, fmt::format("{} is missing", kFieldNames[f]))
                  : extra(kFieldNames[f]);
  }
  if (spec.with && row.places != FaultPlaces::kCables) return extra("with");
  if (spec.direction != FaultDirection::kBoth && !row.one_way) return extra("direction");
  if (!(spec.flit_error_rate >= 0 && spec.flit_error_rate <= 1)) {
    return Wrong(spec, fmt::format("a flit error rate of {}; it is a probability, 0 to 1",
                                   spec.flit_error_rate));
  }
  if (spec.kind == FaultKind::kPortDown && spec.direction == FaultDirection::kBoth) {
    return Wrong(spec, "port_down needs a direction; write `direction: forward` or `backward`");
  }
  return absl::OkStatus();
}

// What depends on the machine.
absl::Status CheckMachine(const FaultSpec& spec, const Topology& topology,
                          const P7ihParameters& parameters) {
  if (!parameters.link_replay && spec.kind == FaultKind::kPortDown) {
    return Wrong(
        spec, "without link_replay a failed direction never takes the link down; use bit_errors");
  }
  if (spec.latency < 0 || spec.latency > kLatencyMax) {
    return Wrong(spec, fmt::format("a latency of {}; above 0, at most {}", FormatTime(spec.latency),
                                   FormatTime(kLatencyMax)));
  }
  if (spec.hfi && (*spec.hfi < 0 || *spec.hfi >= kHfisPerHub)) {
    return Wrong(spec,
                 fmt::format("there is no HFI {}; a hub has 0..{}", *spec.hfi, kHfisPerHub - 1));
  }
  const int windows = kHfisPerHub * parameters.windows_per_hfi;
  if (spec.window && (*spec.window < 0 || *spec.window >= windows)) {
    return Wrong(spec,
                 fmt::format("there is no window {}; a hub has 0..{}", *spec.window, windows - 1));
  }
  if (spec.pcie_port && (*spec.pcie_port < 0 || *spec.pcie_port >= kPciePorts)) {
    return Wrong(spec, fmt::format("there is no PCI Express port {}; a hub has 0..{}",
                                   *spec.pcie_port, kPciePorts - 1));
  }
  for (const NodeId hub : spec.select.in) {
    if (!spec.pcie_port || topology.DeviceAt(hub, *spec.pcie_port)) continue;
    return Wrong(spec, fmt::format("{} has no device in PCI Express port {}; add one under `pcie`",
                                   topology.NodeName(hub), *spec.pcie_port));
  }
  if (spec.kind != FaultKind::kClockDrift) return absl::OkStatus();
  if (!topology.spec().clock)
    return Wrong(spec, "this machine distributes no clock; add `clock: {}`");
  if (spec.drift_ppb > kDriftMax || spec.drift_ppb < -kDriftMax) {
    return Wrong(spec, fmt::format("a drift of {} parts per billion; write {} to {}",
                                   spec.drift_ppb, -kDriftMax, kDriftMax));
  }
  return absl::OkStatus();
}

// Two D cables between hubs, whose far ends can be swapped.
absl::Status CheckSwap(const FaultSpec& spec, const FaultTargets& targets,
                       const Topology& topology) {
  if (targets.links.size() != 2) {
    return Wrong(spec,
                 fmt::format("miswired swaps two cables, but this selects {}; name them by "
                             "`select.link` and `with`, or write `mode: fixed` and `count: 2`",
                             targets.links.size()));
  }
  const LinkEnd near[] = {targets.links[0], targets.links[1]};
  const LinkEnd far[] = {topology.Peer(near[0].node, near[0].port),
                         topology.Peer(near[1].node, near[1].port)};
  for (int i = 0; i < 2; ++i) {
    if (ClassOf(near[i].port) != LinkClass::kD || near[i].node >= topology.hubs() ||
        far[i].node >= topology.hubs()) {
      return Wrong(spec,
                   fmt::format("{} is no D cable between two hubs", topology.LinkName(near[i])));
    }
    if (near[i].node == far[1 - i].node) {
      return Wrong(spec, fmt::format("the swap would join {} to itself; choose two other cables",
                                     topology.NodeName(near[i].node)));
    }
  }
  if (near[0] == near[1] || near[0] == far[1]) return Wrong(spec, "`with` is the same cable");
  return absl::OkStatus();
}

absl::Status CheckSelector(const FaultSpec& spec, const Topology& topology) {
  const FaultSelector& select = spec.select;
  if (IsOfHubs(spec.kind) && (select.link || select.link_class || !select.to.empty())) {
    return Wrong(spec, "this kind acts on hubs; select them by `in` only");
  }
  if (spec.kind == FaultKind::kMiswired && spec.period > 0)
    return Wrong(spec, "miswired cannot be periodic");
  if (spec.with && (!select.link || spec.mode != FaultMode::kAll)) {
    return Wrong(spec,
                 "`with` names the second cable and needs `select.link` to name the first, without "
                 "a random choice");
  }
  if (spec.with && (spec.with->node >= topology.nodes() || spec.with->port >= kLinkPorts ||
                    !topology.connected(spec.with->node, spec.with->port))) {
    return Wrong(spec, "the link `with` does not exist");
  }
  if (spec.kind == FaultKind::kPartition && (select.in.empty() || select.link)) {
    return Wrong(spec, "a partition cuts off the hubs of `in`; name at least one");
  }
  if (select.link && (select.link->node >= topology.nodes() || select.link->port >= kLinkPorts ||
                      !topology.connected(select.link->node, select.link->port))) {
    return Wrong(spec, "its link does not exist");
  }
  for (const auto* hubs : {&select.in, &select.to}) {
    for (const NodeId hub : *hubs) {
      const bool crossbar =
          topology.is_crossbar(hub) && (!IsOfHubs(spec.kind) || spec.kind == FaultKind::kHubDown);
      if (hub >= topology.hubs() && !crossbar)
        return Wrong(spec, fmt::format("{} is no hub", topology.NodeName(hub)));
    }
  }
  if (spec.destination != kNoNode && spec.destination >= topology.hubs()) {
    return Wrong(spec, "its destination is no hub");
  }
  return absl::OkStatus();
}

bool Selected(const FaultSpec& spec, const Topology& topology, LinkEnd link) {
  const FaultSelector& select = spec.select;
  const LinkEnd far = topology.Peer(link.node, link.port);
  if (select.link && !(link == *select.link || far == *select.link)) return false;
  if (select.link_class && topology.ClassOfLink(link) != *select.link_class) return false;
  const bool near_in = Among(select.in, link.node), far_in = Among(select.in, far.node);
  if (spec.kind == FaultKind::kPartition && near_in == far_in) return false;
  if (!select.in.empty() && !near_in && !far_in) return false;
  if (select.to.empty()) return true;
  const bool near_to = Among(select.to, link.node), far_to = Among(select.to, far.node);
  return select.in.empty() ? near_to || far_to : (near_in && far_to) || (far_in && near_to);
}

// `count` of `items`, drawn; they keep their order.
template <typename T>
void Draw(std::vector<T>* items, std::size_t count, std::uint64_t seed, const std::string& id) {
  RandomStream random(seed, "fault/" + id);
  std::vector<std::size_t> order(items->size());
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(order[i], order[i + random.Below(static_cast<std::uint32_t>(order.size() - i))]);
  }
  order.resize(count);
  std::sort(order.begin(), order.end());
  std::vector<T> drawn;
  for (const std::size_t i : order) drawn.push_back((*items)[i]);
  *items = std::move(drawn);
}

std::size_t Wanted(const FaultSpec& spec, std::size_t places) {
  switch (spec.mode) {
    case FaultMode::kAll:
      return places;
    case FaultMode::kOne:
      return 1;
    case FaultMode::kFixed:
      return static_cast<std::size_t>(spec.count);
    case FaultMode::kPercent:
      return std::max<std::size_t>(
          1, static_cast<std::size_t>(
                 std::floor(spec.percent / 100 * static_cast<double>(places) + 1e-9)));
  }
  return places;
}

std::vector<LinkEnd> Senders(const FaultSpec& spec, LinkEnd end, const Topology& topology) {
  const LinkEnd far = topology.Peer(end.node, end.port);
  if (spec.direction == FaultDirection::kForward) return {end};
  if (spec.direction == FaultDirection::kBackward) return {far};
  return {end, far};
}

// With the number of the fault, if its kind has one.
FaultAction ActionOf(const FaultSpec& spec) {
  const FaultKindRow& row = RowOf(spec.kind);
  FaultAction action;
  action.kind = row.action;
  switch (row.field) {
    case FaultField::kNone:
      if (action.kind == FaultAction::Kind::kErrorRate) action.rate = 1;  // all of them
      break;
    case FaultField::kLanes:
      action.count = spec.lanes;
      break;
    case FaultField::kErrorRate:
      action.rate = spec.flit_error_rate;
      break;
    case FaultField::kCorrupt:
      action.count = spec.corrupt;
      break;
    case FaultField::kEntry:  // the entry differs from hub to hub
      break;
    case FaultField::kLatency:
      action.value = spec.latency;
      break;
    case FaultField::kHfi:
      action.count = static_cast<std::uint32_t>(*spec.hfi);
      break;
    case FaultField::kWindow:
      action.count = static_cast<std::uint32_t>(*spec.window);
      break;
    case FaultField::kDrift:
      action.value = spec.drift_ppb;
      break;
    case FaultField::kPciePort:
      action.count = static_cast<std::uint32_t>(*spec.pcie_port);
      break;
  }
  return action;
}

void AddLinkActions(const FaultSpec& spec, LinkEnd link, const Topology& topology,
                    std::vector<FaultAction>* all) {
  FaultAction action = ActionOf(spec);
  if (action.kind == FaultAction::Kind::kLinkDown) {
    // By its lower end, so that both names of a link are one place.
    const LinkEnd far = topology.Peer(link.node, link.port);
    action.end = std::pair(far.node, far.port) < std::pair(link.node, link.port) ? far : link;
    return all->push_back(action);
  }
  for (const LinkEnd& sender : Senders(spec, link, topology)) {
    action.end = sender;
    all->push_back(action);
  }
}

void AddSwap(const FaultTargets& targets, const Topology& topology, std::vector<FaultAction>* all) {
  for (int i = 0; i < 2; ++i) {
    const LinkEnd near = targets.links[static_cast<std::size_t>(i)];
    const LinkEnd other = targets.links[static_cast<std::size_t>(1 - i)];
    FaultAction action;
    action.kind = FaultAction::Kind::kRewired;
    action.end = near;
    action.peer = topology.Peer(other.node, other.port);
    all->push_back(action);
    std::swap(action.end, action.peer);
    all->push_back(action);
  }
}

TablePlace EntryOf(const FaultSpec& spec, NodeId hub, const Topology& topology) {
  if (spec.entry) return *spec.entry;
  const bool intra = topology.supernode_of(hub) == topology.supernode_of(spec.destination);
  TablePlace place;
  place.intra = intra;
  place.index = static_cast<std::uint16_t>(intra ? topology.hub_in_supernode(spec.destination)
                                                 : topology.supernode_of(spec.destination));
  return place;
}

void AddHubActions(const FaultSpec& spec, NodeId hub, const Topology& topology,
                   std::vector<FaultAction>* all) {
  FaultAction action = ActionOf(spec);
  action.end = {hub, 0};
  if (RowOf(spec.kind).field == FaultField::kEntry) action.place = EntryOf(spec, hub, topology);
  if (RowOf(spec.kind).places == FaultPlaces::kHubs) return all->push_back(action);
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (!topology.connected(hub, port)) continue;
    action.end.port = port;
    all->push_back(action);
  }
}

}  // namespace

std::string TitleOf(const FaultSpec& spec) {
  const char* kind = FaultKindName(spec.kind);
  return spec.id.empty() ? fmt::format("fault {}", kind)
                         : fmt::format("fault {} ({})", spec.id, kind);
}

absl::Status CheckFault(const FaultSpec& spec, const Topology& topology,
                        const P7ihParameters& parameters) {
  if (spec.sets == FaultSets::kNo && spec.id.empty())
    return absl::InvalidArgumentError("a fault without an id; give every fault a name");
  if (spec.sets != FaultSets::kNo && (!spec.select.link || spec.duration > 0 || spec.period > 0))
    return Wrong(spec, "what is set names its link, and has no duration and no period");
  for (const absl::Status& status :
       {CheckTimes(spec), CheckMode(spec), CheckValues(spec), CheckSelector(spec, topology),
        CheckMachine(spec, topology, parameters)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::uint64_t FaultSeed(const FaultSpec& spec, std::uint64_t scenario_seed) {
  if (spec.seed) return *spec.seed;
  return RandomStream(scenario_seed, "fault/" + spec.id).Next() >>
         32;  // short enough to be typed in again
}

absl::StatusOr<FaultTargets> SelectTargets(const FaultSpec& spec, const Topology& topology,
                                           std::uint64_t seed) {
  FaultTargets targets;
  if (IsOfHubs(spec.kind)) {
    for (NodeId hub = 0; hub < topology.nodes(); ++hub) {
      if (hub >= topology.hubs() && !Among(spec.select.in, hub))
        continue;  // crossbars that are named
      if (spec.pcie_port && !topology.DeviceAt(hub, *spec.pcie_port)) continue;
      const bool aims_at_itself = spec.kind == FaultKind::kTableDamage && hub == spec.destination;
      if ((spec.select.in.empty() || Among(spec.select.in, hub)) && !aims_at_itself)
        targets.hubs.push_back(hub);
    }
  } else {
    for (const LinkEnd& link : topology.Links()) {
      if (!Selected(spec, topology, link)) continue;
      const bool far_named = spec.select.link && !(link == *spec.select.link);
      targets.links.push_back(far_named ? *spec.select.link : link);
    }
    if (spec.with) targets.links.push_back(*spec.with);
    // A draw takes D cables alone.
    if (spec.kind == FaultKind::kMiswired && !spec.with) {
      std::erase_if(targets.links, [&](LinkEnd link) {
        return ClassOf(link.port) != LinkClass::kD ||
               topology.Peer(link.node, link.port).node >= topology.hubs();
      });
    }
  }
  if (targets.size() == 0) {
    return absl::NotFoundError(
        fmt::format("{}: its selector matches no {} of this machine; see `percsctl "
                    "links`, or remove conditions",
                    TitleOf(spec), IsOfHubs(spec.kind) ? "hub" : "link"));
  }
  const std::size_t wanted = Wanted(spec, targets.size());
  if (wanted > targets.size()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} places requested, but its selector matches {}", TitleOf(spec), wanted,
                    targets.size()));
  }
  if (wanted < targets.size()) {
    Draw(&targets.links, wanted, seed, spec.id);
    Draw(&targets.hubs, wanted, seed, spec.id);
  }
  if (spec.kind == FaultKind::kMiswired) {
    if (absl::Status status = CheckSwap(spec, targets, topology); !status.ok()) return status;
  }
  return targets;
}

absl::Status CheckTargets(const FaultSpec& spec, const FaultTargets& targets,
                          const Topology& topology, const P7ihParameters& parameters) {
  for (const NodeId hub : targets.hubs) {
    if (!spec.entry) break;
    if (absl::Status status = CheckPlace(hub, *spec.entry, topology); !status.ok()) return status;
  }
  if (spec.kind != FaultKind::kLaneLoss) return absl::OkStatus();
  for (const LinkEnd& end : targets.links) {
    const LinkParameters& link = parameters.link(topology.ClassOfLink(end));
    const auto lanes = static_cast<std::uint32_t>(link.lanes + link.spare_lanes);
    if (spec.lanes <= lanes) continue;
    return Wrong(spec,
                 fmt::format("{} lanes, but {}, which it selects, has {} + {} spare; write {} to "
                             "{}, or select links of another class",
                             spec.lanes, topology.LinkName(end), link.lanes, link.spare_lanes,
                             spec.sets == FaultSets::kNo ? 1 : 0, lanes));
  }
  return absl::OkStatus();
}

std::vector<FaultAction> ActionsOf(const FaultSpec& spec, const FaultTargets& targets,
                                   const Topology& topology) {
  std::vector<FaultAction> all;
  if (spec.kind == FaultKind::kMiswired) {
    AddSwap(targets, topology, &all);
    return all;
  }
  for (const LinkEnd& link : targets.links) AddLinkActions(spec, link, topology, &all);
  for (const NodeId hub : targets.hubs) AddHubActions(spec, hub, topology, &all);
  return all;
}

std::string DescribeTargets(const FaultTargets& targets, const Topology& topology,
                            std::size_t listed_max) {
  std::string text =
      targets.links.empty()
          ? fmt::format("{} hub{}", targets.hubs.size(), targets.hubs.size() == 1 ? "" : "s")
          : fmt::format("{} link{}", targets.links.size(), targets.links.size() == 1 ? "" : "s");
  std::size_t listed = 0;
  const auto add = [&](const std::string& name) {
    if (listed < listed_max) text += (listed == 0 ? ": " : ", ") + name;
    if (++listed == listed_max + 1) text += ", ...";
  };
  for (const LinkEnd& link : targets.links) add(topology.LinkName(link));
  for (const NodeId hub : targets.hubs) add(topology.NodeName(hub));
  return text;
}

}  // namespace percs
