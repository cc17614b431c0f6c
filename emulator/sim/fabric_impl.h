// The one kind of Fabric there is.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulator/collectives/trees.h"
#include "emulator/management/network_manager.h"
#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/arrival_check.h"
#include "emulator/sim/fabric.h"
#include "emulator/sim/fault_injector.h"
#include "emulator/sim/infiniband.h"
#include "emulator/sim/lookahead.h"

namespace percs {

// Nodes that one thread runs.
struct Shard {
  WorkCounters work;
  std::vector<std::unique_ptr<Hub>> hubs;
  std::vector<std::unique_ptr<EdgeNode>> blades;
  std::vector<Outbox> to_shard;      // other threads of this process
  std::vector<Outbox> to_process;    // other processes
  Outbox nowhere;                    // what severed hubs send
  std::vector<ControlItem> control;  // of its hubs, to network management and to other hubs
};

class FabricImpl : public Fabric {
 public:
  FabricImpl(const Scenario& scenario, const Topology& topology, const Placement& placement)
      : scenario_(WithInfiniband(WithCollectiveTree(scenario))),
        topology_(topology),
        placement_(placement) {}

  absl::Status Build(int threads);

  const Topology& topology() const override { return topology_; }
  const Scenario& scenario() const override { return scenario_; }
  Time lookahead() const override { return lookahead_.time; }
  std::string lookahead_source() const override { return lookahead_.source; }

  void InstallTables(NodeId node, std::shared_ptr<const HubTables> tables) override {
    if (Hub* hub = HubAt(node)) hub->isr().router().Install(tables, 1);
    if (manager_) manager_->SetTables(node, std::move(tables));
  }
  std::shared_ptr<const HubTables> tables(NodeId node) const override {
    if (Hub* hub = HubAt(node)) return hub->isr().router().tables();
    return manager_ ? manager_->tables(node) : nullptr;
  }
  Epoch epoch(NodeId node) const override { return hubs_[node]->isr().router().epoch(); }
  void Start() override {
    for (Shard& shard : shards_) {
      for (auto& hub : shard.hubs) hub->Start();
      for (auto& blade : shard.blades) blade->Start();
    }
    Exchange(nullptr);
  }
  void ObserveDeliveries(DeliveryObserver observer) override { on_delivery_ = std::move(observer); }

  void Trace(const TraceSelection& selection) override {
    for (Hub* hub : local_) hub->context().Tracer().Add(selection);
  }
  std::vector<TraceEvent> TraceEvents() const override {
    std::vector<TraceEvent> events;
    for (Hub* hub : local_) {
      const auto& tracer = hub->context().tracer;
      if (tracer) events.insert(events.end(), tracer->events().begin(), tracer->events().end());
    }
    return events;
  }

  Time NextEventTime() const override {
    Time next = ManagementNext();
    for (const Hub* hub : local_) next = std::min(next, hub->next_time());
    for (EdgeNode* blade : local_blades_) next = std::min(next, blade->next_inside());
    return next;
  }
  Time NextForegroundTime() const override {
    if (!topology_.spec().clock) return NextEventTime();
    Time next = ManagementNext();
    for (const Hub* hub : local_) next = std::min(next, hub->next_foreground());
    for (EdgeNode* blade : local_blades_) next = std::min(next, blade->next_inside());
    return next;
  }
  void RunWindow(Time end, const Executor* executor) override;
  Outbox& outbox(int process) override {
    return shards_[0].to_process[static_cast<std::size_t>(process)];
  }
  absl::Status Accept(Outbox&& incoming) override;
  absl::Status InjectLinkFault(const LinkFault& fault) override {
    return injector_.Inject(fault, now_);
  }
  absl::Status InjectLinkImpairment(const LinkImpairment& impairment) override {
    return injector_.Inject(impairment, now_);
  }
  absl::Status InjectBladeFault(const BladeFault& fault) override {
    return injector_.Inject(fault, now_);
  }
  absl::Status InjectTableFault(const TableFault& fault) override {
    return injector_.Inject(fault, now_);
  }
  absl::Status Inject(const FaultAction& action) override { return injector_.Inject(action, now_); }
  FaultService* faults() override { return faults_.get(); }
  const EventLog& events() const override { return events_; }
  Failures known_failures() const override { return manager_ ? manager_->failures() : Failures(); }
  absl::StatusOr<LoadedRoutes> LoadRoutes(TableSet tables, Time at) override {
    if (!manager_)
      return absl::FailedPreconditionError("network management runs in another process");
    return manager_->Load(std::move(tables), at);
  }
  absl::StatusOr<CauTreeId> CreateTree(const TreeSpec& tree, Time at) override {
    if (!manager_)
      return absl::FailedPreconditionError("network management runs in another process");
    return manager_->CreateTree(tree, at);
  }
  absl::Status DeleteTree(CauTreeId tree, Time at) override {
    if (!manager_)
      return absl::FailedPreconditionError("network management runs in another process");
    return manager_->DeleteTree(tree, at);
  }
  void Sever(const SeveredHubs& severed) override;
  void Lose(const LostHubs& lost) override;
  const LossRecord& losses() const override { return losses_; }
  absl::StatusOr<RejoinedHubs> Readmit(std::uint32_t loss, const std::string& who,
                                       Time at) override;
  void Rejoin(const RejoinedHubs& rejoined) override;
  void Adopt(const LossRecord& losses) override;
  absl::Status Issue(NodeId node, Time at, WindowOperation operation,
                     WindowListener* listener) override;
  void StopWorkload(Time) override {
    for (Hub* hub : local_) hub->Stop();
  }

  absl::Status RepeatWorkload(Time at) override {
    for (Hub* hub : local_) {
      if (absl::Status status = hub->Repeat(scenario_, topology_, at); !status.ok()) return status;
    }
    Exchange(nullptr);
    return absl::OkStatus();
  }

  Time now() const override { return now_; }
  WorkLeft work_left() const override {
    WorkLeft left{manager_work_.unfinished + (faults_ ? faults_->unfinished() : 0),
                  manager_work_.resident};
    for (const Shard& shard : shards_) {
      left.unfinished += shard.work.unfinished;
      left.resident_packets += shard.work.resident;
    }
    return left;
  }
  std::vector<NodeId> local_nodes() const override {
    std::vector<NodeId> nodes;
    for (const Hub* hub : local_) nodes.push_back(const_cast<Hub*>(hub)->context().node);
    return nodes;
  }
  NodeResult Result(NodeId node) override {
    EdgeNode* blade = BladeAt(node);
    return blade ? blade->Result() : hubs_[node]->Result();
  }
  const NodeStats& stats(NodeId node) const override { return hubs_[node]->stats(); }
  std::vector<FaultTally> tallies(NodeId node) const override { return hubs_[node]->Tallies(); }
  std::vector<std::pair<Epoch, Time>> first_rerouted(NodeId node) const override {
    return hubs_[node]->isr().router().first_rerouted();
  }
  bool link_up(LinkEnd end) const override { return hubs_[end.node]->isr().output(end.port).up; }
  std::uint32_t link_downs(LinkEnd end) const override {
    return hubs_[end.node]->isr().output(end.port).downs;
  }
  std::vector<WaitEdge> WaitEdges() const override {
    std::vector<WaitEdge> edges;
    for (Hub* hub : local_) hub->isr().CollectWaits(&edges);
    return edges;
  }
  std::vector<std::string> BlockedPrograms() const override {
    std::vector<std::string> all;
    for (const Hub* hub : local_) {
      for (std::string& text : hub->Blocked()) all.push_back(std::move(text));
    }
    for (EdgeNode* blade : local_blades_) {
      for (std::string& text : blade->Blocked()) all.push_back(std::move(text));
    }
    return all;
  }
  const std::vector<Reroute>& reroutes() const override {
    static const std::vector<Reroute> kNone;
    return manager_ ? manager_->reroutes() : kNone;
  }
  const std::vector<TreeStatus>& trees() const override {
    static const std::vector<TreeStatus> kNone;
    return manager_ ? manager_->trees() : kNone;
  }

 private:
  Hub* HubAt(NodeId node) const { return node < hubs_.size() ? hubs_[node] : nullptr; }
  EdgeNode* BladeAt(NodeId node) const {
    return topology_.is_blade(node) ? blades_[node - topology_.hubs()] : nullptr;
  }
  Time ManagementNext() const {
    return manager_ ? std::min(manager_->next_time(), faults_->next_time()) : kNever;
  }
  Hub* MakeHub(NodeId node, Shard& shard);
  absl::StatusOr<Hub*> MakeNode(NodeId node, Shard& shard);
  void MakeManagement();
  absl::Status SetUpTrees();
  absl::Status SetUpFaults();
  Hub::WayTo WayTo(NodeId from, NodeId to);
  void Wire(Hub* hub);
  void TakeAway(const std::vector<NodeId>& nodes);
  void TakeBack(const RejoinedHubs& rejoined);
  void Exchange(const Executor* executor);
  void RouteControl(ControlItem&& item);
  void Apply(Outbox& box);

  const Scenario scenario_;
  const Topology topology_;
  const Placement placement_;
  Lookahead lookahead_;
  DeliveryObserver on_delivery_;
  std::vector<Shard> shards_;
  std::vector<Hub*>
      hubs_;  // by node, of a blade its network side; null where another process has it
  std::vector<Hub*> local_;                       // in node order
  std::vector<EdgeNode*> blades_, local_blades_;  // likewise; by blade
  std::vector<std::size_t> shard_of_;
  FaultInjector injector_{topology_, scenario_.parameters, hubs_, blades_};
  const ArrivalCheck arrivals_{topology_, scenario_, hubs_};
  WorkCounters manager_work_;
  EventLog events_;
  std::unique_ptr<NetworkManager> manager_;
  std::unique_ptr<FaultService> faults_;  // where manager_ is
  std::vector<FaultAction> actions_;
  LossRecord losses_;
  std::vector<std::unique_ptr<Hub>> gone_;  // lost ones, and what was on its way to them
  std::vector<std::unique_ptr<EdgeNode>> gone_blades_;
  Time now_ = 0;
};

}  // namespace percs
