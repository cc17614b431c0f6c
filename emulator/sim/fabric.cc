#include "emulator/sim/fabric.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "emulator/base/check.h"
#include "emulator/base/prefetch.h"
#include "emulator/collectives/trees.h"
#include "emulator/management/network_manager.h"
#include "emulator/sim/check_scenario.h"
#include "emulator/sim/fabric_shard.h"
#include "emulator/sim/infiniband.h"
#include "fmt/format.h"

namespace percs {
namespace {
// Steps of a window, and for how many nodes together: more would save little, and nothing is told
// meanwhile.
constexpr std::size_t kStepsMax = 32, kNodeStepsMax = 1'024;
}  // namespace

Fabric::Fabric(const Scenario& scenario, const Topology& topology, const Placement& placement)
    : scenario_(WithInfiniband(WithCollectiveTree(scenario))),
      topology_(topology),
      placement_(placement) {}

Fabric::~Fabric() = default;

absl::Status Fabric::Build(int threads) {
  lookahead_ = FindLookahead(topology_, scenario_);
  if (placement_.processes > 1) {
    if (absl::Status status = CheckDistributed(lookahead_); !status.ok()) return status;
    crossing_ = FindCrossing(topology_, scenario_, placement_.process_of_node);
  }
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    if (placement_.process_of_node[node] == placement_.self) nodes.push_back(node);
  }
  const std::size_t count =
      std::clamp<std::size_t>(nodes.size(), 1, static_cast<std::size_t>(threads));
  step_max_ = lookahead_.time;
  std::size_t unit = 1;  // nodes that are never divided between threads
  const auto supernodes = static_cast<std::size_t>(topology_.supernodes());
  if (placement_.processes == 1 && topology_.nodes() == topology_.hubs()) {
    if (supernodes > 1 && supernodes >= count)
      unit = static_cast<std::size_t>(topology_.hubs_per_supernode());
    // What only keeps the clock may happen after a run's end, if its last window reaches further.
    if (!scenario_.has_background()) {
      if (unit > 1) step_max_ = FindHorizon(topology_, scenario_).time;
      runs_supernodes_ = step_max_ > lookahead_.time;
      const auto steps = std::clamp<std::size_t>(kNodeStepsMax / nodes.size(), 1, kStepsMax);
      horizon_ =
          std::min(scenario_.parameters.management_latency, static_cast<Time>(steps) * step_max_);
    }
  }
  shards_ = std::vector<Shard>(count);
  hubs_.resize(topology_.nodes());
  blades_.resize(topology_.blades());
  shard_of_.resize(topology_.nodes());
  for (Shard& shard : shards_) {
    shard.work.fetches = nodes.size() > HubPipeline::kFewHubs;
    if (shard.work.fetches && unit > 1) shard.events.resize(supernodes);
    shard.to_shard.resize(count);
    for (Outbox& box : shard.to_shard) box.takes_packets = true;
    for (Shard::HandedOn& handed : shard.handed_on) handed.to_shard = shard.to_shard;
    shard.owed.resize(count);
    shard.to_process.resize(static_cast<std::size_t>(placement_.processes));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t s = i / unit * count / (nodes.size() / unit);
    Shard& shard = shards_[s];
    shard_of_[nodes[i]] = s;
    const auto hub = MakeNode(nodes[i], shard);
    if (!hub.ok()) return hub.status();
    hubs_[nodes[i]] = *hub;
    local_.push_back(*hub);
  }
  for (Hub* hub : local_) Wire(hub);
  if (placement_.manager_process == placement_.self) MakeManagement();
  if (absl::Status status = SetUpTrees(); !status.ok()) return status;
  return SetUpFaults();
}

void Fabric::MakeManagement() {
  manager_ = std::make_unique<NetworkManager>(
      topology_, scenario_.parameters, scenario_.reroute, &manager_work_, &events_,
      [this](ControlItem&& item) { RouteControl(std::move(item)); });
  faults_ = MakeFaultService(scenario_, topology_, lookahead_.time, &events_);
}

absl::Status Fabric::SetUpFaults() {
  absl::Status status = injector_.Inject(scenario_.blade_faults);
  return status.ok() && faults_ ? CreateFaults(scenario_, *faults_) : status;
}

Hub* Fabric::MakeHub(NodeId node, Shard& shard) {
  if (!shard.events.empty()) {
    shard.work.events_apart = &shard.events[static_cast<std::size_t>(topology_.supernode_of(node))];
  }
  shard.hubs.push_back(
      std::make_unique<Hub>(node, scenario_, topology_, &shard.work, &on_delivery_));
  return shard.hubs.back().get();
}

absl::StatusOr<Hub*> Fabric::MakeNode(NodeId node, Shard& shard) {
  if (!topology_.is_blade(node)) {
    Hub* hub = MakeHub(node, shard);
    if (absl::Status status = hub->MakeWorkload(scenario_, topology_); !status.ok()) return status;
    return hub;
  }
  auto blade = MakeEdgeNode(node, scenario_, topology_, &shard.work, &on_delivery_);
  if (!blade.ok()) return blade.status();
  shard.blades.push_back(*std::move(blade));
  EdgeNode* made = shard.blades.back().get();
  blades_[node - topology_.hubs()] = made;
  local_blades_.push_back(made);
  return &made->network();
}

// Trees of the scenario are there before it starts. Every process plans them alike.
absl::Status Fabric::SetUpTrees() {
  const auto plans = PlanTrees(scenario_, topology_);
  if (!plans.ok()) return plans.status();
  for (std::size_t i = 0; i < plans->size(); ++i) {
    const std::shared_ptr<const TreePlan>& plan = (*plans)[i];
    std::set<NodeId> hubs;
    for (const TreeVertex& v : plan->vertices) {
      if (HubAt(v.node)) hubs.insert(v.node);
    }
    for (const NodeId hub : hubs) {
      if (absl::Status status = hubs_[hub]->AddTree(plan); !status.ok()) return status;
    }
    if (manager_) manager_->AdoptTree(scenario_.trees[i], plan);
  }
  return absl::OkStatus();
}

std::pair<Isr*, Outbox*> Fabric::WayTo(NodeId from, NodeId to) {
  Shard& shard = shards_[shard_of_[from]];
  if (losses_.Severed(from, to)) return {nullptr, &shard.nowhere};
  Hub* other = HubAt(to);
  if (!other) return {nullptr, &shard.to_process[placement_.process_of_node[to]]};
  return {shard_of_[to] == shard_of_[from] ? &other->isr() : nullptr,
          &shard.to_shard[shard_of_[to]]};
}

void Fabric::Wire(Hub* hub) {
  const NodeId node = hub->context().node;
  Shard& shard = shards_[shard_of_[node]];
  hub->SetControlOutbox([&shard](ControlItem&& item) { shard.control.push_back(std::move(item)); });
  for (PortId port = 0; port < kLinkPorts; ++port) {
    const LinkEnd peer = topology_.Peer(node, port);
    if (peer.node == kNoNode) continue;
    const auto [local, outbox] = WayTo(node, peer.node);
    hub->isr().Connect(port, peer, local, outbox);
  }
  hub->SetWays([this, node](NodeId to) {
    const auto [local, outbox] = WayTo(node, to);
    return Hub::WayTo{local, outbox};
  });
  for (const Cable& cable : scenario_.cables) {
    for (const LinkEnd& end : {cable.link, topology_.Peer(cable.link.node, cable.link.port)}) {
      if (end.node == node) hub->isr().output(end.port).wire = cable.wire;
    }
  }
}

void Fabric::RunWindow(Time end, const Executor* executor) {
  if (faults_ && faults_->next_time() < end) {
    actions_.clear();
    faults_->Run(end, &actions_);
    for (const FaultAction& action : actions_) PERCS_CHECK(Inject(action).ok());
  }
  // A window that is no longer than a step is one, whenever its first event is.
  const bool several = horizon_ > 0 && end - now_ > step_max_;
  const Steps steps =
      several ? Steps{NextEventTime(), end, step_max_} : Steps{now_, end, end - now_};
  for (Shard& shard : shards_) shard.step = 0;
  const auto step = [this, &steps](int s) { return RunStep(s, steps); };
  if (shards_.size() > 1) {
    (*executor)(static_cast<int>(shards_.size()), step);
  } else {
    while (step(0)) continue;
  }
  const bool managed = manager_ && manager_->next_time() < end;
  if (managed) manager_->Run(end);
  now_ = end;
  looked_ahead_ = !HandOverControl() && !managed;
  if (!losses_.any_severed()) [[likely]]
    return;
  for (Shard& shard : shards_) shard.nowhere.Clear();
}

Prospect Fabric::ProspectAfterWindow() const {
  if (!looked_ahead_) return prospect();
  Prospect all{ManagementNext(), ManagementLeft()};
  for (const Shard& shard : shards_) {
    all.next = std::min(all.next, shard.prospect.next);
    all.left += shard.prospect.left;
  }
  return all;
}

Time Fabric::WindowEnd(Time next) const {
  const bool far = horizon_ > lookahead_.time && ManagementNext() >= next + horizon_;
  return next + (far ? horizon_ : lookahead_.time);
}

// Every part knows the same of all, so they have the same steps, and the same last one.
bool Fabric::RunStep(int s, const Steps& steps) {
  Shard& shard = shards_[static_cast<std::size_t>(s)];
  const unsigned step = shard.step++;
  const Time next = step == 0 ? steps.first : TakeIn(s, step - 1);
  if (next >= steps.end) {
    shard.prospect = {shard.NextEventTime(), shard.work_left()};
    return false;
  }
  shard.begin = next;
  shard.step_end = std::min(steps.end, next + steps.reach);
  runs_supernodes_ ? RunSupernodes(shard) : RunNodes(shard);
  HandOn(shard, step);
  return true;
}

void Fabric::RunNodes(Shard& shard) {
  const Time begin = shard.begin, end = shard.step_end;
  // In a longer window a partition would run past arrivals that others may still send.
  const auto acts = [this, begin, end](const auto& node) {
    const Time next = node.next_time();
    PERCS_CHECK(next >= end || (next >= begin && end - next <= lookahead_.time));
    return next < end;
  };
  for (const auto& hub : shard.hubs) {
    if (acts(*hub)) shard.pipeline.Add(hub.get());
  }
  shard.pipeline.Run(end, shard.work.fetches);
  for (const auto& blade : shard.blades) {
    if (acts(*blade)) blade->Run(end);
  }
}

void Fabric::RunSupernodes(Shard& shard) {
  const Time end = shard.step_end;
  const auto supernode_of = [this, &shard](std::size_t hub) {
    return topology_.supernode_of(shard.hubs[hub]->context().node);
  };
  for (std::size_t first = 0, last = 0; first < shard.hubs.size(); first = last) {
    const int supernode = supernode_of(first);
    while (last < shard.hubs.size() && supernode_of(last) == supernode) ++last;
    const std::span<const std::unique_ptr<Hub>> hubs(&shard.hubs[first], last - first);
    const std::size_t from = shard.control.size();
    while (true) {
      Time next = kNever;
      for (const auto& hub : hubs) next = std::min(next, hub->next_time());
      if (next >= end) break;
      PERCS_CHECK(next >= shard.begin && end - next <= step_max_);
      const Time inner = std::min(end, next + lookahead_.time);
      for (const auto& hub : hubs) {
        if (hub->next_time() < inner) shard.pipeline.Add(hub.get());
      }
      shard.pipeline.Run(inner, shard.work.fetches);
      if (shard.control.size() > from) HandOnControl(shard, from);
    }
  }
}

// They arrive, in another part at the end of the step, or are lost. The others, for network
// management and other processes, wait for the end of the window.
void Fabric::HandOnControl(Shard& shard, std::size_t from) {
  const auto goes = [this, &shard](const ControlItem& item) {
    Hub* const hub = HubAt(item.target);
    if (hub == nullptr) return false;
    if (IsSevered(item)) return true;
    const std::size_t to = shard_of_[item.target];
    &shards_[to] == &shard ? hub->Receive(item) : shard.to_shard[to].control.push_back(item);
    return true;
  };
  std::vector<ControlItem>& items = shard.control;
  const auto first = items.begin() + static_cast<std::ptrdiff_t>(from);
  items.erase(std::remove_if(first, items.end(), goes), items.end());
}

void Fabric::HandOn(Shard& shard, unsigned step) {
  if (!shard.control.empty()) HandOnControl(shard, 0);
  shard.BalancePackets();
  Shard::HandedOn& handed = shard.handed_on[step % 2];
  bool any = false;
  for (std::size_t to = 0; to < shards_.size(); ++to) {
    if (shard.to_shard[to].empty()) continue;
    std::swap(shard.to_shard[to], handed.to_shard[to]);
    any = true;
  }
  handed.next = any ? shard.step_end : shard.NextEventTime();
}

Time Fabric::TakeIn(int s, unsigned step) {
  Shard& shard = shards_[static_cast<std::size_t>(s)];
  Time next = kNever;
  for (std::size_t from = 0; from < shards_.size(); ++from) {
    Shard::HandedOn& handed = shards_[from].handed_on[step % 2];
    next = std::min(next, handed.next);
    Outbox& box = handed.to_shard[static_cast<std::size_t>(s)];
    if (box.empty()) continue;
    shard.owed[from] += static_cast<std::int64_t>(box.packets.size() + box.spare.size());
    for (Packet* packet : box.spare) shard.work.packets.Give(packet);
    for (const ControlItem& item : box.control) hubs_[item.target]->Receive(item);
    Apply(box);
  }
  return next;
}

void Fabric::Exchange() {
  for (Shard& shard : shards_) HandOn(shard, 0);
  for (std::size_t s = 0; s < shards_.size(); ++s) TakeIn(static_cast<int>(s), 0);
  HandOverControl();
}

bool Fabric::HandOverControl() {
  bool any = false;
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    any |= !shards_[s].control.empty();
    for (ControlItem& item : shards_[s].control) RouteControl(std::move(item));
    shards_[s].control.clear();
    if (s == 0) continue;
    for (std::size_t p = 0; p < shards_[s].to_process.size(); ++p) {
      Outbox& from = shards_[s].to_process[p];
      Outbox& to = shards_[0].to_process[p];
      for (FlitRun& run : from.flits) to.flits.push_back(std::move(run));
      to.credits.insert(to.credits.end(), from.credits.begin(), from.credits.end());
      to.marks.insert(to.marks.end(), from.marks.begin(), from.marks.end());
      from.Clear();
    }
  }
  return any;
}

bool Fabric::IsSevered(const ControlItem& item) const {
  if (!losses_.any_severed()) [[likely]]
    return false;
  // A sync symbol says where it goes, not where it comes from.
  const bool symbol = item.kind == ControlItem::Kind::kClock;
  const NodeId from = symbol ? topology_.Peer(item.target, item.port).node : item.source;
  return losses_.Severed(from, item.target);
}

void Fabric::RouteControl(ControlItem&& item) {
  if (IsSevered(item)) return;
  const int process = item.target == kManagerNode ? placement_.manager_process
                                                  : placement_.process_of_node[item.target];
  if (process != placement_.self) {
    outbox(process).control.push_back(std::move(item));
  } else if (item.target == kManagerNode) {
    manager_->Receive(item);
  } else {
    hubs_[item.target]->Receive(item);
  }
}

absl::Status Fabric::Issue(NodeId node, Time at, WindowOperation operation,
                           WindowListener* listener) {
  if (absl::Status status = arrivals_.CheckOperation(node, at, now_); !status.ok()) return status;
  if (std::find(local_.begin(), local_.end(), hubs_[node]) == local_.end()) return absl::OkStatus();
  hubs_[node]->Issue(at, std::move(operation), listener);
  return absl::OkStatus();
}

absl::Status Fabric::UseCau(NodeId node, Time at, std::function<void(CauPort& cau)> use) {
  if (absl::Status status = arrivals_.CheckOperation(node, at, now_); !status.ok()) return status;
  if (std::find(local_.begin(), local_.end(), hubs_[node]) == local_.end()) return absl::OkStatus();
  if (hubs_[node]->cau() == nullptr)
    return absl::FailedPreconditionError(topology_.NodeName(node) + " has no CAU");
  hubs_[node]->UseCau(at, std::move(use));
  return absl::OkStatus();
}

Time Fabric::event_time(NodeId node) const { return hubs_[node]->context().now; }

void Fabric::Apply(Outbox& box) {
  for (std::size_t i = 0; i < box.credits.size(); i += 2) FetchLine(&box.credits[i]);
  ApplyPackets(box.packets);
  for (FlitRun& run : box.flits) hubs_[run.node]->isr().ReceiveFlits(std::move(run));
  for (const CreditRun& run : box.credits) hubs_[run.node]->isr().ReceiveCredits(run);
  for (const PoisonMark& mark : box.marks) hubs_[mark.node]->isr().ReceiveMark(mark);
  box.Clear();
}

// What is to come is fetched into the cache: of many hubs their event queues, of few, whose queues
// are there, the packets, which come from another core and are looked at soon.
void Fabric::ApplyPackets(const std::vector<PacketRun>& packets) {
  constexpr std::size_t kLead = 6;
  const bool many = shards_[0].work.fetches;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i + 2 * kLead < packets.size()) FetchLine(&packets[i + 2 * kLead]);
    if (many && i + kLead < packets.size()) {
      hubs_[packets[i + kLead].node]->context().queue.Fetch();
    } else if (!many) {
      FetchPacket(packets[i].packet);
    }
    hubs_[packets[i].node]->isr().ReceivePacket(packets[i]);
  }
}

absl::Status Fabric::Accept(Outbox&& incoming) {
  if (absl::Status status = arrivals_.Check(incoming, manager_ != nullptr, now_); !status.ok())
    return status;
  for (const ControlItem& item : incoming.control) {
    if (item.target == kManagerNode) {
      manager_->Receive(item);
    } else {
      hubs_[item.target]->Receive(item);
    }
  }
  Apply(incoming);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Fabric>> Fabric::Create(const Scenario& scenario,
                                                       const Placement& placement, int threads) {
  auto topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return topology.status();
  if (placement.process_of_node.size() != topology->nodes()) {
    return absl::InvalidArgumentError(fmt::format("a placement of {} nodes for a topology of {}",
                                                  placement.process_of_node.size(),
                                                  topology->nodes()));
  }
  std::unique_ptr<Fabric> fabric(new Fabric(scenario, *topology, placement));
  absl::Status status = CheckMachine(fabric->scenario(), *topology);
  if (!status.ok()) return status;
  status = fabric->Build(threads);
  if (!status.ok()) return status;
  return fabric;
}

}  // namespace percs
