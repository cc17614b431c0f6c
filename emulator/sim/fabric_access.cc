// What a fabric answers, and what it passes on to its hubs and to network management.
#include <algorithm>
#include <set>
#include <utility>

#include "emulator/management/network_manager.h"
#include "emulator/node/edge_node.h"
#include "emulator/sim/fabric_shard.h"

namespace percs {
namespace {

absl::Status ManagedElsewhere() {
  return absl::FailedPreconditionError("network management runs in another process");
}

}  // namespace

Time Fabric::ManagementNext() const {
  return manager_ ? std::min(manager_->next_time(), faults_->next_time()) : kNever;
}

WorkLeft Fabric::ManagementLeft() const {
  return {manager_work_.unfinished + (faults_ ? faults_->unfinished() : 0), manager_work_.resident};
}

void Fabric::InstallTables(NodeId node, std::shared_ptr<const HubTables> tables) {
  if (Hub* hub = HubAt(node)) hub->isr().router().Install(tables, 1);
  if (manager_) manager_->SetTables(node, std::move(tables));
}

std::shared_ptr<const HubTables> Fabric::tables(NodeId node) const {
  if (Hub* hub = HubAt(node)) return hub->isr().router().tables();
  return manager_ ? manager_->tables(node) : nullptr;
}

Epoch Fabric::epoch(NodeId node) const { return hubs_[node]->isr().router().epoch(); }

void Fabric::Start() {
  for (Shard& shard : shards_) {
    for (auto& hub : shard.hubs) hub->Start();
    for (auto& blade : shard.blades) blade->Start();
  }
  Exchange();
}

void Fabric::ObserveDeliveries(DeliveryObserver observer) { on_delivery_ = std::move(observer); }

void Fabric::Trace(const TraceSelection& selection) {
  for (Hub* hub : local_) hub->context().Tracer().Add(selection);
}

std::vector<TraceEvent> Fabric::TraceEvents() const {
  std::vector<TraceEvent> events;
  for (Hub* hub : local_) {
    const auto& tracer = hub->context().tracer;
    if (tracer) events.insert(events.end(), tracer->events().begin(), tracer->events().end());
  }
  return events;
}

void Fabric::KeepRankSlices(std::size_t slices_max) {
  for (Hub* hub : local_)
    if (RankLog* const log = hub->rank_log()) log->Keep(slices_max);
}

std::vector<RankSlice> Fabric::RankSlices() const {
  std::vector<RankSlice> slices;
  for (Hub* hub : local_)
    if (const RankLog* const log = hub->rank_log())
      log->AddSlices(hub->context().node, now_, &slices);
  return slices;
}

void Fabric::KeepDmaSlices(std::size_t slices_max) {
  for (EdgeNode* blade : local_blades_) blade->KeepDma(slices_max);
}

std::vector<NodeDmaSlice> Fabric::DmaSlices() const {
  std::vector<NodeDmaSlice> slices;
  for (EdgeNode* blade : local_blades_) {
    for (const cell::DmaSlice& slice : blade->DmaSlices())
      slices.push_back({blade->network().context().node, slice});
  }
  return slices;
}

std::vector<RankNow> Fabric::ranks(NodeId node) const {
  const RankLog* const log = hubs_[node]->rank_log();
  return log == nullptr ? std::vector<RankNow>() : log->now();
}

InFlight Fabric::in_flight(NodeId node) const {
  const EdgeNode* const blade = BladeAt(node);
  return {hubs_[node]->TreesInFlight(),
          blade ? blade->DmaInFlight() : std::vector<cell::SpeInFlight>()};
}

Time Fabric::NextEventTime() const {
  Time next = ManagementNext();
  for (const Shard& shard : shards_) next = std::min(next, shard.NextEventTime());
  return next;
}

Time Fabric::NextForegroundTime() const {
  Time next = ManagementNext();
  for (const Hub* hub : local_) next = std::min(next, hub->next_foreground());
  for (EdgeNode* blade : local_blades_) next = std::min(next, blade->next_inside());
  return next;
}

Time Fabric::EarliestOutput() const {
  const Time at_once = std::min(NextEventTime() + crossing(), kNever);
  if (topology_.graph() || !losses().lost().empty()) return at_once;
  const OutputDelays delays{crossing_.time, crossing_.flit};
  const auto here = [this](NodeId node) { return HubAt(node) != nullptr; };
  Time earliest = std::min(ManagementNext() + crossing(), kNever);
  for (const Hub* hub : local_) {
    const std::optional<Time> output = hub->EarliestOutput(delays, here);
    if (!output) return at_once;
    earliest = std::min(earliest, *output);
    if (earliest <= at_once) break;
  }
  return earliest;
}

Outbox& Fabric::outbox(std::uint32_t process) {
  return shards_[0].to_process[static_cast<std::size_t>(process)];
}

Time Fabric::WindowReach(Time end, absl::Span<const std::uint32_t> waiting) const {
  Time sent = kNever;
  for (const Outbox& box : shards_[0].to_process) sent = std::min(sent, box.EarliestEvent());
  for (const std::uint32_t process : waiting)
    sent = std::min(sent, shards_[0].to_process[process].EarliestCredit());
  return sent > end - crossing() ? end : std::max(now_, sent + crossing());
}

std::vector<std::uint32_t> Fabric::AwaitedForCredits() const {
  std::set<std::uint32_t> processes;
  for (Hub* hub : local_) {
    if (hub->isr().stalled_outputs() == 0) continue;
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const OutputPort& out = hub->isr().output(port);
      if (out.connected && out.stall_since >= 0 && !HubAt(out.peer))
        processes.insert(placement_.process_of_node[out.peer]);
    }
  }
  return {processes.begin(), processes.end()};
}

absl::Status Fabric::InjectBladeFault(const BladeFault& fault) {
  return injector_.Inject(fault, now_);
}

absl::Status Fabric::Inject(const FaultAction& action) { return injector_.Inject(action, now_); }

Failures Fabric::known_failures() const { return manager_ ? manager_->failures() : Failures(); }

absl::StatusOr<LoadedRoutes> Fabric::LoadRoutes(TableSet tables, Time at) {
  if (!manager_) return ManagedElsewhere();
  return manager_->Load(std::move(tables), at);
}

absl::StatusOr<CauTreeId> Fabric::CreateTree(const TreeSpec& tree, Time at) {
  if (!manager_) return ManagedElsewhere();
  return manager_->CreateTree(tree, at);
}

absl::Status Fabric::DeleteTree(CauTreeId tree, Time at) {
  if (!manager_) return ManagedElsewhere();
  return manager_->DeleteTree(tree, at);
}

void Fabric::StopWorkload(Time) {
  for (Hub* hub : local_) hub->Stop();
}

absl::Status Fabric::RepeatWorkload(Time at) {
  for (Hub* hub : local_) {
    if (absl::Status status = hub->Repeat(scenario_, topology_, at); !status.ok()) return status;
  }
  Exchange();
  return absl::OkStatus();
}

WorkLeft Fabric::work_left() const {
  WorkLeft left = ManagementLeft();
  for (const Shard& shard : shards_) left += shard.work_left();
  return left;
}

std::uint64_t Fabric::flits_moved() const {
  std::uint64_t flits = 0;
  for (Hub* hub : local_) flits += hub->isr().flits_sent();
  return flits;
}

std::uint64_t Fabric::packets_delivered() const {
  std::uint64_t packets = 0;
  for (Hub* hub : local_) packets += hub->context().stats.packets_delivered;
  return packets;
}

std::vector<NodeId> Fabric::local_nodes() const {
  std::vector<NodeId> nodes;
  for (const Hub* hub : local_) nodes.push_back(const_cast<Hub*>(hub)->context().node);
  return nodes;
}

NodeResult Fabric::Result(NodeId node) {
  EdgeNode* blade = BladeAt(node);
  return blade ? blade->Result() : hubs_[node]->Result();
}

Time Fabric::last_event() const {
  Time last = 0;
  for (Hub* hub : local_) last = std::max(last, hub->context().last_event);
  for (EdgeNode* blade : local_blades_) last = std::max(last, blade->Result().last_event);
  return last;
}

const NodeStats& Fabric::stats(NodeId node) const { return hubs_[node]->stats(); }

std::vector<FaultTally> Fabric::tallies(NodeId node) const { return hubs_[node]->Tallies(); }

std::vector<std::pair<Epoch, Time>> Fabric::first_rerouted(NodeId node) const {
  return hubs_[node]->isr().router().first_rerouted();
}

bool Fabric::link_up(LinkEnd end) const { return hubs_[end.node]->isr().output(end.port).up; }

std::uint32_t Fabric::link_downs(LinkEnd end) const {
  return hubs_[end.node]->isr().output(end.port).downs;
}

std::vector<WaitEdge> Fabric::WaitEdges() const {
  std::vector<WaitEdge> edges;
  for (Hub* hub : local_) hub->isr().CollectWaits(&edges);
  return edges;
}

std::vector<std::string> Fabric::BlockedPrograms() const {
  std::vector<std::string> all;
  for (const Hub* hub : local_) {
    for (std::string& text : hub->Blocked()) all.push_back(std::move(text));
  }
  for (EdgeNode* blade : local_blades_) {
    for (std::string& text : blade->Blocked()) all.push_back(std::move(text));
  }
  return all;
}

const std::vector<Reroute>& Fabric::reroutes() const {
  static const std::vector<Reroute> kNone;
  return manager_ ? manager_->reroutes() : kNone;
}

const std::vector<TreeStatus>& Fabric::trees() const {
  static const std::vector<TreeStatus> kNone;
  return manager_ ? manager_->trees() : kNone;
}

}  // namespace percs
