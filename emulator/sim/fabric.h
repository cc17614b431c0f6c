// The nodes of a scenario that live in one process, ready to be given windows of virtual time. The
// in-process run, the threads of one and every daemon drive this same class.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "emulator/base/digest.h"
#include "emulator/chip/fault_tally.h"
#include "emulator/chip/node_context.h"
#include "emulator/chip/wait_edge.h"
#include "emulator/clock/hub_clock.h"
#include "emulator/management/event_log.h"
#include "emulator/management/fault_service.h"
#include "emulator/management/loss.h"
#include "emulator/management/reroute.h"
#include "emulator/management/tree_status.h"
#include "emulator/metrics/in_flight.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/metrics/rank_log.h"
#include "emulator/node/node_result.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/scenario.h"
#include "emulator/scenario/window_program.h"
#include "emulator/sim/arrival_check.h"
#include "emulator/sim/fault_injector.h"
#include "emulator/sim/lookahead.h"
#include "emulator/wire/outbox.h"

namespace percs {

class CauPort;
class EdgeNode;
class Hub;
class Isr;
class NetworkManager;

// Which process owns which node. Network management is owned by `manager_process`.
struct Placement {
  std::vector<std::uint16_t> process_of_node;  // by node
  int processes = 1;                           // ids 0..processes-1
  int self = 0;
  int manager_process = 0;

  static Placement Single(NodeId nodes);
};

// Calls step(0..count-1) turn after turn, those of one turn possibly at the same time, until they
// return false, which all of one turn do or none. A turn begins when all have ended the one before.
// Threads live with the caller, never in emulator/.
using ExecutorStep = absl::FunctionRef<bool(int)>;
using Executor = std::function<void(int count, ExecutorStep step)>;

// What is left to do. Things are counted where they begin and where they end, so the numbers of one
// process may be negative: only the sums over all processes, taken at the same window, mean
// something. A run ends when both sums are zero.
struct WorkLeft {
  // Tasks, messages, phases, commands to come, alerts, management packets, plans in flight.
  std::int64_t unfinished = 0;
  // Created or synthesised, not yet delivered or dropped; without management packets.
  std::int64_t resident_packets = 0;
  bool done() const { return unfinished == 0 && resident_packets == 0; }
  WorkLeft& operator+=(const WorkLeft& other) {
    unfinished += other.unfinished;
    resident_packets += other.resident_packets;
    return *this;
  }
};

// INVALID_ARGUMENT unless every link buffer holds a whole packet and the table an entry for each
// group.
absl::Status CheckMulticastParameters(std::size_t groups, const P7ihParameters& parameters);

// What decides about the next window.
struct Prospect {
  Time next = kNever;  // the earliest event
  WorkLeft left;
};

// WIDE: it is all that the outside can ask of a machine, and each method is one line in it.
class Fabric {
 public:
  // INVALID_ARGUMENT for a scenario the machine cannot be built from. `threads` partitions the
  // nodes of this process for RunWindow's executor.
  static absl::StatusOr<std::unique_ptr<Fabric>> Create(const Scenario& scenario,
                                                        const Placement& placement,
                                                        int threads = 1);
  ~Fabric();

  const Topology& topology() const { return topology_; }
  const Scenario& scenario() const { return scenario_; }
  // Smallest crossing delay, and the link that sets it.
  Time lookahead() const { return lookahead_.time; }
  std::string lookahead_source() const { return lookahead_.source; }
  // Smallest crossing delay between two processes; in one process there is none (kNever).
  Time crossing() const { return crossing_.time; }

  // Tables of epoch 1, before the first window. A process that owns network management plans them
  // itself and hands them out here too.
  void InstallTables(NodeId node, std::shared_ptr<const HubTables> tables);
  std::shared_ptr<const HubTables> tables(NodeId node) const;
  Epoch epoch(NodeId node) const;

  // Starts workloads at time 0. After all local nodes have tables, before NextEventTime.
  void Start();
  // Called with every delivery of the local nodes; one thread only.
  void ObserveDeliveries(DeliveryObserver observer);

  // Follows packets that local nodes send from now on (emulator/metrics/path_trace.h).
  void Trace(const TraceSelection& selection);
  // What local nodes recorded so far, node by node.
  std::vector<TraceEvent> TraceEvents() const;
  // Keeps what the ranks of local nodes do from now on, at most so many slices of each node.
  void KeepRankSlices(std::size_t slices_max);
  // Those that were kept, node by node, and what goes on now.
  std::vector<RankSlice> RankSlices() const;
  // Keeps what SPEs of local nodes do by DMA from now on, at most so many commands of each blade.
  void KeepDmaSlices(std::size_t slices_max);
  // Those that were kept, node by node.
  std::vector<NodeDmaSlice> DmaSlices() const;
  // What the ranks of a local node do now; empty if it has none.
  std::vector<RankNow> ranks(NodeId node) const;
  // What a local node has under way.
  InFlight in_flight(NodeId node) const;

  // Earliest local event, kNever if none.
  Time NextEventTime() const;
  // If nothing arrives from another process, nothing that happens here reaches one before this. At
  // least NextEventTime() + crossing().
  Time EarliestOutput() const;
  Prospect prospect() const { return {NextEventTime(), work_left()}; }
  // prospect() of the end of the last window: each thread has looked at its own nodes for it.
  // REQUIRES: nothing but looks has happened since.
  Prospect ProspectAfterWindow() const;
  // Without background events, which only keep the clock (docs/semantics.md rule 6). The same, if
  // the scenario has none.
  Time NextForegroundTime() const;
  // Runs all local events before `end`. REQUIRES: everything that arrives before `end` was
  // accepted.
  void RunWindow(Time end, const Executor* executor = nullptr);
  // How far the window that begins with the event at `next` may reach. In one process that is
  // further than the lookahead, in steps after which only the threads wait for each other. But not
  // if a fault or network management acts in it, of whose events people are told in the order in
  // which they happen.
  Time WindowEnd(Time next) const;
  // What the last windows left for another process; the caller empties it with Clear().
  Outbox& outbox(std::uint32_t process);
  // How far this process may run if nothing reaches it before `end` but answers to what is in the
  // outboxes: not before now(), and each answer takes as long as a crossing. Credits are answered
  // only by the processes that wait for them.
  Time WindowReach(Time end, absl::Span<const std::uint32_t> waiting) const;
  // Processes for whose credits a local output waits now. What others return is no event here
  // before the next one.
  std::vector<std::uint32_t> AwaitedForCredits() const;
  // Takes in what another process sent. INVALID_ARGUMENT names an item that cannot be: a node that
  // is not here, a port that is not connected, a VC out of range, an arrival before the current
  // window. Nothing of a refused outbox is applied.
  absl::Status Accept(Outbox&& incoming);

  // If the blade runs here. INVALID_ARGUMENT for a part it does not have, FAILED_PRECONDITION if
  // the blade cannot continue without it.
  absl::Status InjectBladeFault(const BladeFault& fault);
  // What a fault does to one place, for those of its hubs that live here. RunWindow does so by
  // itself with the faults of faults(); a process that takes what is due from there instead gives
  // it to the others with this.
  absl::Status Inject(const FaultAction& action);
  // Faults as resources; null where network management does not live.
  FaultService* faults() { return faults_.get(); }
  const FaultService* faults() const { return faults_.get(); }
  // What network management has to tell people.
  const EventLog& events() const { return events_; }
  // What it believes to be broken; nothing where network management does not live.
  Failures known_failures() const;
  // Has network management install a table set at `at` (not before now()), as a new epoch.
  // FAILED_PRECONDITION with the witness if the set fails its proof, or where it does not live.
  absl::StatusOr<LoadedRoutes> LoadRoutes(TableSet tables, Time at);
  // Has network management create or delete a tree of CAUs at `at` (not before now()). Errors as
  // TreeService; FAILED_PRECONDITION where network management does not live.
  absl::StatusOr<CauTreeId> CreateTree(const TreeSpec& tree, Time at);
  absl::Status DeleteTree(CauTreeId tree, Time at);
  // What local hubs of `severed` send from now on is lost on its way.
  void Sever(const SeveredHubs& severed);
  // Hubs stop now: those that run here are no local nodes any more, and network management
  // continues without them. The links to them are not touched (ActionsOf). REQUIRES: lost.at ==
  // now() or later, before the next event.
  void Lose(const LostHubs& lost);
  const LossRecord& losses() const { return losses_; }
  const std::vector<LostHubs>& lost() const { return losses().lost(); }
  // What the hubs of a loss need to be there again from `at` on. NOT_FOUND; FAILED_PRECONDITION
  // where network management does not live, and if they are there already; RESOURCE_EXHAUSTED after
  // too many. REQUIRES: at >= everything that has run.
  absl::StatusOr<RejoinedHubs> Readmit(std::uint32_t loss, const std::string& who, Time at);
  // They begin now, in the process that has them, and every process takes notice: links to them
  // come up, nothing of the incarnation before reaches anybody any more. REQUIRES: what Readmit
  // returned, at its time, before the next event.
  void Rejoin(const RejoinedHubs& rejoined);
  // Instead of Start, in a process that begins in the middle of a run: what has happened so far.
  // All its hubs are lost, until they rejoin.
  void Adopt(const LossRecord& losses);
  // A command of a program outside for a window of `node`, at `at` (not before now()), if the hub
  // lives here and is not lost. What it leads to goes to the listener from within RunWindow, which
  // may be null and has to outlive the fabric; it is the same for any listener. Of one hub and
  // instant, operations are issued in the order of the calls. INVALID_ARGUMENT for a node that is
  // no hub, and a time that has passed.
  absl::Status Issue(NodeId node, Time at, WindowOperation operation, WindowListener* listener);
  // A program outside uses the CAU of `node` at `at`: `use` is called in an event of that time,
  // within RunWindow, if the hub lives here and is not lost. FAILED_PRECONDITION if the node has no
  // CAU; else as Issue.
  absl::Status UseCau(NodeId node, Time at, std::function<void(CauPort& cau)> use);
  // Of the event in which a local node is, or was last: for who hears from within RunWindow.
  Time event_time(NodeId node) const;
  // Ends workloads that run until stopped.
  void StopWorkload(Time at);

  // Runs the workload again, at `at`, on a fabric in which nothing is to happen any more before
  // that. UNIMPLEMENTED for workloads that cannot begin later than at 0.
  absl::Status RepeatWorkload(Time at);

  Time now() const { return now_; }  // end of the last window
  // Of the last thing at a local node that a result shows.
  Time last_event() const;
  WorkLeft work_left() const;
  // Of the local nodes since the start; each call looks at all of them. Flits over links and into
  // HFIs, without management packets.
  std::uint64_t flits_moved() const;
  std::uint64_t packets_delivered() const;
  std::vector<NodeId> local_nodes() const;
  NodeResult Result(NodeId node);
  const NodeStats& stats(NodeId node) const;
  // What faults have cost at a local node so far, by their numbers.
  std::vector<FaultTally> tallies(NodeId node) const;
  // As in its NodeResult.
  std::vector<std::pair<Epoch, Time>> first_rerouted(NodeId node) const;
  bool link_up(LinkEnd end) const;
  // How often this end of the link went down since the start of the run.
  std::uint32_t link_downs(LinkEnd end) const;
  std::vector<WaitEdge> WaitEdges() const;
  // Programs of local blades and tasks of local hubs that wait, and for what.
  std::vector<std::string> BlockedPrograms() const;
  // Reroutes so far; empty where network management does not live.
  const std::vector<Reroute>& reroutes() const;
  // Trees of CAUs by number, deleted ones too; likewise.
  const std::vector<TreeStatus>& trees() const;

 private:
  // Nodes that one thread runs.
  struct Shard;
  // How a window is divided: its first event, its end, and how far a step reaches at most.
  struct Steps {
    Time first, end, reach;
  };

  Fabric(const Scenario& scenario, const Topology& topology, const Placement& placement);
  absl::Status Build(int threads);
  Hub* HubAt(NodeId node) const { return node < hubs_.size() ? hubs_[node] : nullptr; }
  EdgeNode* BladeAt(NodeId node) const {
    return topology_.is_blade(node) ? blades_[node - topology_.hubs()] : nullptr;
  }
  Time ManagementNext() const;
  WorkLeft ManagementLeft() const;
  // The next step of a part. Whether there is another one.
  bool RunStep(int shard, const Steps& steps);
  void RunSupernodes(Shard& shard);
  void RunNodes(Shard& shard);
  // What a part has sent to others in this step is theirs from now on.
  void HandOn(Shard& shard, unsigned step);
  // Control items from number `from` on for hubs of this process.
  void HandOnControl(Shard& shard, std::size_t from);
  Hub* MakeHub(NodeId node, Shard& shard);
  absl::StatusOr<Hub*> MakeNode(NodeId node, Shard& shard);
  void MakeManagement();
  absl::Status SetUpTrees();
  absl::Status SetUpFaults();
  // Straight there if the same thread runs both, else by an outbox.
  std::pair<Isr*, Outbox*> WayTo(NodeId from, NodeId to);
  void Wire(Hub* hub);
  void TakeAway(const std::vector<NodeId>& nodes);
  void TakeBack(const RejoinedHubs& rejoined);
  // A part takes in what the others have handed on to it in a step. Returns the time before which
  // nothing happens any more in any part.
  Time TakeIn(int shard, unsigned step);
  // All parts hand on and take in what is there, and then network management does.
  void Exchange();
  bool HandOverControl();                         // whether there was anything
  bool IsSevered(const ControlItem& item) const;  // it is lost on its way
  void RouteControl(ControlItem&& item);
  void Apply(Outbox& box);
  void ApplyPackets(const std::vector<PacketRun>& packets);

  const Scenario scenario_;
  const Topology topology_;
  const Placement placement_;
  Lookahead lookahead_;
  bool runs_supernodes_ = false;     // each supernode for itself up to the end of a step
  Time step_max_ = 0, horizon_ = 0;  // of one step of a window, of all; no horizon: 0
  Lookahead crossing_;               // between two processes
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
  bool looked_ahead_ = false;  // every shard has its prospect
  Time now_ = 0;
};

}  // namespace percs
