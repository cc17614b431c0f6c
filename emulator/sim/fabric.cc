#include "emulator/sim/fabric.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "emulator/base/check.h"
#include "emulator/collectives/trees.h"
#include "emulator/fault/network_manager.h"
#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/arrival_check.h"
#include "emulator/sim/fault_injector.h"
#include "emulator/sim/infiniband.h"
#include "emulator/sim/lookahead.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Smallest crossing delay a distributed run may have (docs/semantics.md rule 4).
constexpr Time kDistributedLookaheadMin = 20 * kNanosecond;

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
      return absl::FailedPreconditionError("network management lives in another process");
    return manager_->Load(std::move(tables), at);
  }
  absl::StatusOr<CauTreeId> CreateTree(const TreeSpec& tree, Time at) override {
    if (!manager_)
      return absl::FailedPreconditionError("network management lives in another process");
    return manager_->CreateTree(tree, at);
  }
  absl::Status DeleteTree(CauTreeId tree, Time at) override {
    if (!manager_)
      return absl::FailedPreconditionError("network management lives in another process");
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

absl::Status FabricImpl::Build(int threads) {
  if (const absl::Status status = CheckService(scenario_.service, topology_); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("service: ", status.message()));
  }
  lookahead_ = FindLookahead(topology_, scenario_);
  if (placement_.processes > 1 && lookahead_.time < kDistributedLookaheadMin) {
    return absl::InvalidArgumentError(fmt::format(
        "the lookahead of a distributed run is {} ({}); at least {} are needed",
        FormatTime(lookahead_.time), lookahead_.source, FormatTime(kDistributedLookaheadMin)));
  }
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    if (placement_.process_of_node[node] == placement_.self) nodes.push_back(node);
  }
  const std::size_t count =
      std::clamp<std::size_t>(nodes.size(), 1, static_cast<std::size_t>(threads));
  shards_ = std::vector<Shard>(count);
  hubs_.resize(topology_.nodes());
  blades_.resize(topology_.blades());
  shard_of_.resize(topology_.nodes());
  for (Shard& shard : shards_) {
    shard.to_shard.resize(count);
    shard.to_process.resize(static_cast<std::size_t>(placement_.processes));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t s = i * count / nodes.size();
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

void FabricImpl::MakeManagement() {
  manager_ = std::make_unique<NetworkManager>(
      topology_, scenario_.parameters, scenario_.reroute, &manager_work_, &events_,
      [this](ControlItem&& item) { RouteControl(std::move(item)); });
  Time longest_wire = 0;
  for (const Cable& cable : scenario_.cables) longest_wire = std::max(longest_wire, cable.wire);
  faults_ = std::make_unique<FaultService>(topology_, scenario_.parameters, scenario_.seed,
                                           longest_wire, &events_);
}

absl::Status FabricImpl::SetUpFaults() {
  if (absl::Status status = injector_.Inject(scenario_); !status.ok()) return status;
  for (const FaultSpec& fault : scenario_.fault_specs) {
    if (!faults_) break;
    if (const auto created = faults_->Create(fault, 0); !created.ok()) return created.status();
  }
  return absl::OkStatus();
}

Hub* FabricImpl::MakeHub(NodeId node, Shard& shard) {
  shard.hubs.push_back(
      std::make_unique<Hub>(node, scenario_, topology_, &shard.work, &on_delivery_));
  return shard.hubs.back().get();
}

absl::StatusOr<Hub*> FabricImpl::MakeNode(NodeId node, Shard& shard) {
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
absl::Status FabricImpl::SetUpTrees() {
  std::vector<int> used(topology_.hubs());
  for (std::size_t i = 0; i < scenario_.trees.size(); ++i) {
    const TreeSpec& spec = scenario_.trees[i];
    if (absl::Status status = CheckTree(topology_, spec); !status.ok()) return status;
    auto plan = PlanTree(topology_, spec, [](NodeId, NodeId) { return true; });
    if (!plan.ok()) return plan.status();
    plan->id = static_cast<CauTreeId>(i);
    const auto shared = std::make_shared<const TreePlan>(*std::move(plan));
    std::vector<NodeId> hubs;
    for (const TreeVertex& v : shared->vertices) {
      if (++used[v.node] > kCauTrees) {
        return ToStatus({TreeProblem::Code::kFull, CauOperation::kReduce, 0, v.node}, shared->id,
                        topology_);
      }
      if (HubAt(v.node)) hubs.push_back(v.node);
    }
    std::sort(hubs.begin(), hubs.end());
    hubs.erase(std::unique(hubs.begin(), hubs.end()), hubs.end());
    for (const NodeId hub : hubs) {
      if (absl::Status status = hubs_[hub]->AddTree(shared); !status.ok()) return status;
    }
    if (manager_) manager_->AdoptTree(spec, shared);
  }
  return absl::OkStatus();
}

Hub::WayTo FabricImpl::WayTo(NodeId from, NodeId to) {
  Shard& shard = shards_[shard_of_[from]];
  if (losses_.Severed(from, to)) return {nullptr, &shard.nowhere};
  Hub* other = HubAt(to);
  if (!other) return {nullptr, &shard.to_process[placement_.process_of_node[to]]};
  return {shard_of_[to] == shard_of_[from] ? &other->isr() : nullptr,
          &shard.to_shard[shard_of_[to]]};
}

void FabricImpl::Wire(Hub* hub) {
  const NodeId node = hub->context().node;
  Shard& shard = shards_[shard_of_[node]];
  hub->SetControlOutbox([&shard](ControlItem&& item) { shard.control.push_back(std::move(item)); });
  for (PortId port = 0; port < kLinkPorts; ++port) {
    const LinkEnd peer = topology_.Peer(node, port);
    if (peer.node == kNoNode) continue;
    const Hub::WayTo way = WayTo(node, peer.node);
    hub->isr().Connect(port, peer, way.local, way.outbox);
  }
  hub->SetWays([this, node](NodeId to) { return WayTo(node, to); });
  for (const Cable& cable : scenario_.cables) {
    for (const LinkEnd& end : {cable.link, topology_.Peer(cable.link.node, cable.link.port)}) {
      if (end.node == node) hub->isr().output(end.port).wire = cable.wire;
    }
  }
}

void FabricImpl::RunWindow(Time end, const Executor* executor) {
  if (faults_ && faults_->next_time() < end) {
    actions_.clear();
    faults_->Run(end, &actions_);
    for (const FaultAction& action : actions_) PERCS_CHECK(Inject(action).ok());
  }
  const auto run = [this, end](int s) {
    for (const auto& hub : shards_[static_cast<std::size_t>(s)].hubs) {
      if (hub->next_time() < end) hub->Run(end);
    }
    for (const auto& blade : shards_[static_cast<std::size_t>(s)].blades) {
      if (blade->next_time() < end) blade->Run(end);
    }
  };
  if (shards_.size() == 1) {
    run(0);
  } else {
    (*executor)(static_cast<int>(shards_.size()), run);
  }
  if (manager_ && manager_->next_time() < end) manager_->Run(end);
  now_ = end;
  Exchange(executor);
  if (!losses_.any_severed()) [[likely]]
    return;
  for (Shard& shard : shards_) shard.nowhere.Clear();
}

// Hands over what crossed between threads and to and from network management.
void FabricImpl::Exchange(const Executor* executor) {
  if (shards_.size() > 1) {
    const auto take = [this](int to) {
      for (Shard& from : shards_) {
        Outbox& box = from.to_shard[static_cast<std::size_t>(to)];
        if (!box.empty()) Apply(box);
      }
    };
    if (executor) {
      (*executor)(static_cast<int>(shards_.size()), take);
    } else {
      for (std::size_t s = 0; s < shards_.size(); ++s) take(static_cast<int>(s));
    }
  }
  for (std::size_t s = 0; s < shards_.size(); ++s) {
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
}

void FabricImpl::RouteControl(ControlItem&& item) {
  // A sync symbol says where it goes, not where it comes from.
  const bool symbol = item.kind == ControlItem::Kind::kClock;
  if (losses_.any_severed() &&
      losses_.Severed(symbol ? topology_.Peer(item.target, item.port).node : item.source,
                      item.target)) {
    return;
  }
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

void FabricImpl::Sever(const SeveredHubs& severed) {
  losses_.Sever(severed);
  for (const NodeId node : severed.from) {
    Hub* hub = HubAt(node);
    for (PortId port = 0; hub && port < kLinkPorts; ++port) {
      OutputPort& out = hub->isr().output(port);
      if (!out.connected || !losses_.Severed(node, out.peer)) continue;
      out.local = nullptr;
      out.outbox = &shards_[shard_of_[node]].nowhere;
    }
  }
}

void FabricImpl::Lose(const LostHubs& lost) {
  TakeAway(lost.nodes);
  losses_.Lose(lost, topology_.nodes());
  if (!manager_) return;
  manager_->Lose(lost);
  faults_->Lose(lost.nodes, lost.at);
}

void FabricImpl::Adopt(const LossRecord& losses) {
  losses_ = losses;
  TakeAway(local_nodes());
}

void FabricImpl::TakeAway(const std::vector<NodeId>& nodes) {
  const auto is_lost = [&](NodeId node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  std::erase_if(local_, [&](Hub* hub) { return is_lost(hub->context().node); });
  std::erase_if(local_blades_,
                [&](EdgeNode* blade) { return is_lost(blade->network().context().node); });
  for (Shard& shard : shards_) {
    for (auto& hub : shard.hubs) {
      if (is_lost(hub->context().node)) gone_.push_back(std::move(hub));
    }
    std::erase(shard.hubs, nullptr);
    for (auto& blade : shard.blades) {
      if (is_lost(blade->network().context().node)) gone_blades_.push_back(std::move(blade));
    }
    std::erase(shard.blades, nullptr);
  }
}

absl::StatusOr<RejoinedHubs> FabricImpl::Readmit(std::uint32_t loss, const std::string& who,
                                                 Time at) {
  if (!manager_)
    return absl::FailedPreconditionError("network management lives in another process");
  auto rejoined = losses_.Returning(loss, topology_);
  if (!rejoined.ok()) return rejoined;
  const auto generation = faults_->NewGeneration();
  if (!generation.ok()) return generation.status();
  rejoined->who = who;
  rejoined->at = at;
  rejoined->generation = *generation;
  rejoined->epoch = manager_->installed_epoch();
  for (const NodeId node : rejoined->nodes) rejoined->tables.push_back(manager_->tables(node));
  rejoined->faults = faults_->ActingOn(rejoined->nodes, at);
  injector_.commands().TellAgain(&*rejoined);
  return rejoined;
}

void FabricImpl::Rejoin(const RejoinedHubs& rejoined) {
  now_ = std::max(now_, rejoined.at);
  losses_.Rejoin(rejoined);
  TakeBack(rejoined);
  if (manager_) {
    faults_->Rejoin(rejoined.nodes);
    manager_->Rejoin(rejoined);
  }
  Exchange(nullptr);
}

// The new hubs, and what all of this process are to know of them.
void FabricImpl::TakeBack(const RejoinedHubs& rejoined) {
  const std::vector<Hub*> others = local_;
  for (const NodeId node : rejoined.nodes) {
    if (placement_.process_of_node[node] != placement_.self) continue;
    hubs_[node] = MakeHub(node, shards_[shard_of_[node]]);
    local_.push_back(hubs_[node]);
  }
  std::sort(local_.begin(), local_.end(),
            [](Hub* a, Hub* b) { return a->context().node < b->context().node; });
  FaultAction peer_anew;
  peer_anew.kind = FaultAction::Kind::kPeerAnew;
  peer_anew.at = rejoined.at;
  for (const NodeId node : rejoined.nodes) {
    peer_anew.peer.node = node;
    for (Hub* hub : others) {
      peer_anew.end.node = hub->context().node;
      PERCS_CHECK(injector_.Inject(peer_anew, now_).ok());
      for (PortId port = 0; port < kLinkPorts; ++port) {
        OutputPort& out = hub->isr().output(port);
        if (!out.connected || out.peer != node) continue;
        const Hub::WayTo way = WayTo(hub->context().node, node);
        out.local = way.local, out.outbox = way.outbox;
      }
    }
  }
  for (std::size_t i = 0; i < rejoined.nodes.size(); ++i) {
    Hub* hub = HubAt(rejoined.nodes[i]);
    if (!hub) continue;
    Wire(hub);
    hub->isr().router().Install(rejoined.tables[i], rejoined.epoch);
    hub->Rejoin(rejoined);
  }
  for (const FaultAction& action :
       ActionsOf(rejoined, topology_, [this](NodeId node) { return losses_.IsLost(node); })) {
    PERCS_CHECK(injector_.Inject(action, now_).ok());
  }
  PERCS_CHECK(injector_.TellAgain(rejoined, now_).ok());
}

absl::Status FabricImpl::Issue(NodeId node, Time at, WindowOperation operation,
                               WindowListener* listener) {
  if (absl::Status status = arrivals_.CheckOperation(node, at, now_); !status.ok()) return status;
  if (std::find(local_.begin(), local_.end(), hubs_[node]) == local_.end()) return absl::OkStatus();
  hubs_[node]->Issue(at, std::move(operation), listener);
  return absl::OkStatus();
}

void FabricImpl::Apply(Outbox& box) {
  for (FlitRun& run : box.flits) hubs_[run.node]->isr().ReceiveFlits(std::move(run));
  for (const CreditRun& run : box.credits) hubs_[run.node]->isr().ReceiveCredits(run);
  for (const PoisonMark& mark : box.marks) hubs_[mark.node]->isr().ReceiveMark(mark);
  box.Clear();
}

absl::Status FabricImpl::Accept(Outbox&& incoming) {
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

}  // namespace

Placement Placement::Single(NodeId nodes) {
  Placement placement;
  placement.process_of_node.assign(nodes, 0);
  return placement;
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
  absl::Status status = CheckMulticastParameters(topology->groups().size(), scenario.parameters);
  if (!status.ok()) return status;
  for (const Cable& cable : scenario.cables) {
    const bool plugged = topology->Peer(cable.link.node, cable.link.port).node != kNoNode;
    if (plugged && cable.wire >= 0 && cable.wire + scenario.parameters.credit_processing > 0)
      continue;
    return absl::InvalidArgumentError(fmt::format(
        "a wire of {} for {}: the link has to be plugged in, and its credits to take time",
        FormatTime(cable.wire), topology->LinkName(cable.link)));
  }
  status = CheckTableSize(topology->hubs_per_supernode(), topology->supernodes(),
                          scenario.parameters.route_table_entries);
  for (const RouteSetting& setting : {scenario.routing.fifo, scenario.routing.rdma}) {
    if (status.ok()) status = CheckRouteSetting(setting, topology->supernodes());
  }
  if (!status.ok()) return status;
  auto fabric = std::make_unique<FabricImpl>(scenario, *topology, placement);
  status = fabric->Build(threads);
  if (!status.ok()) return status;
  return fabric;
}

}  // namespace percs
