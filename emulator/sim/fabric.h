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
#include "emulator/metrics/node_stats.h"
#include "emulator/node/node_result.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/scenario.h"
#include "emulator/scenario/window_program.h"
#include "emulator/wire/outbox.h"

namespace percs {

// Which process owns which node. Network management is owned by `manager_process`.
struct Placement {
  std::vector<std::uint16_t> process_of_node;  // by node
  int processes = 1;                           // ids 0..processes-1
  int self = 0;
  int manager_process = 0;

  static Placement Single(NodeId nodes);
};

// Runs body(0..count-1), possibly at the same time, and returns when all are done. Threads live
// with the caller, never in emulator/.
using Executor = std::function<void(int count, absl::FunctionRef<void(int)> body)>;

// What is left to do. Things are counted where they begin and where they end, so the numbers of one
// process may be negative: only the sums over all processes, taken at the same window, mean
// something. A run ends when both sums are zero.
struct WorkLeft {
  std::int64_t unfinished =
      0;  // tasks, messages, phases, commands to come, alerts, plans in flight
  std::int64_t resident_packets = 0;  // created or synthesised, not yet delivered or dropped
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

class Fabric {
 public:
  // INVALID_ARGUMENT for a scenario the machine cannot be built from. `threads` partitions the
  // nodes of this process for RunWindow's executor.
  static absl::StatusOr<std::unique_ptr<Fabric>> Create(const Scenario& scenario,
                                                        const Placement& placement,
                                                        int threads = 1);
  virtual ~Fabric() = default;

  virtual const Topology& topology() const = 0;
  virtual const Scenario& scenario() const = 0;
  // Smallest crossing delay, and the link that sets it.
  virtual Time lookahead() const = 0;
  virtual std::string lookahead_source() const = 0;

  // Tables of epoch 1, before the first window. A process that owns network management plans them
  // itself and hands them out here too.
  virtual void InstallTables(NodeId node, std::shared_ptr<const HubTables> tables) = 0;
  virtual std::shared_ptr<const HubTables> tables(NodeId node) const = 0;
  virtual Epoch epoch(NodeId node) const = 0;

  // Starts workloads at time 0. After all local nodes have tables, before NextEventTime.
  virtual void Start() = 0;
  // Called with every delivery of the local nodes; one thread only.
  virtual void ObserveDeliveries(DeliveryObserver observer) = 0;

  // Follows packets that local nodes send from now on (emulator/metrics/path_trace.h).
  virtual void Trace(const TraceSelection& selection) = 0;
  // What local nodes recorded so far, node by node.
  virtual std::vector<TraceEvent> TraceEvents() const = 0;

  // Earliest local event, kNever if none.
  virtual Time NextEventTime() const = 0;
  // Without background events, which only keep the clock (docs/semantics.md rule 6).
  virtual Time NextForegroundTime() const = 0;
  // Runs all local events before `end`. REQUIRES: everything that arrives before `end` was
  // accepted.
  virtual void RunWindow(Time end, const Executor* executor = nullptr) = 0;
  // What the last windows left for another process; the caller empties it with Clear().
  virtual Outbox& outbox(int process) = 0;
  // Takes in what another process sent. INVALID_ARGUMENT names an item that cannot be: a node that
  // is not here, a port that is not connected, a VC out of range, an arrival before the current
  // window. Nothing of a refused outbox is applied.
  virtual absl::Status Accept(Outbox&& incoming) = 0;

  // Commands of a link fault for those of its two ends that live here (and none else).
  virtual absl::Status InjectLinkFault(const LinkFault& fault) = 0;
  // For those of the link's ends that live here and have to know.
  virtual absl::Status InjectLinkImpairment(const LinkImpairment& impairment) = 0;
  // If the blade runs here. INVALID_ARGUMENT for a part it does not have, FAILED_PRECONDITION if
  // the blade cannot continue without it.
  virtual absl::Status InjectBladeFault(const BladeFault& fault) = 0;
  // What a fault does to one place, for those of its hubs that live here. RunWindow does so by
  // itself with the faults of faults(); a process that takes what is due from there instead gives
  // it to the others with this.
  virtual absl::Status Inject(const FaultAction& action) = 0;
  // Faults as resources; null where network management does not live.
  virtual FaultService* faults() = 0;
  // What network management has to tell people.
  virtual const EventLog& events() const = 0;
  // What it believes to be broken; nothing where network management does not live.
  virtual Failures known_failures() const = 0;
  // Has network management install a table set at `at` (not before now()), as a new epoch.
  // FAILED_PRECONDITION with the witness if the set fails its proof, or where it does not live.
  virtual absl::StatusOr<LoadedRoutes> LoadRoutes(TableSet tables, Time at) = 0;
  // An entry of the tables of a node that lives here loses its parity.
  virtual absl::Status InjectTableFault(const TableFault& fault) = 0;
  // Has network management create or delete a tree of CAUs at `at` (not before now()). Errors as
  // TreeService; FAILED_PRECONDITION where network management does not live.
  virtual absl::StatusOr<CauTreeId> CreateTree(const TreeSpec& tree, Time at) = 0;
  virtual absl::Status DeleteTree(CauTreeId tree, Time at) = 0;
  // What local hubs of `severed` send from now on is lost on its way.
  virtual void Sever(const SeveredHubs& severed) = 0;
  // Hubs stop now: those that run here are no local nodes any more, and network management
  // continues without them. The links to them are not touched (ActionsOf). REQUIRES: lost.at ==
  // now() or later, before the next event.
  virtual void Lose(const LostHubs& lost) = 0;
  virtual const LossRecord& losses() const = 0;
  const std::vector<LostHubs>& lost() const { return losses().lost(); }
  // What the hubs of a loss need to be there again from `at` on. NOT_FOUND; FAILED_PRECONDITION
  // where network management does not live, and if they are there already; RESOURCE_EXHAUSTED after
  // too many. REQUIRES: at >= everything that has run.
  virtual absl::StatusOr<RejoinedHubs> Readmit(std::uint32_t loss, const std::string& who,
                                               Time at) = 0;
  // They begin now, in the process that has them, and every process takes notice: links to them
  // come up, nothing of the incarnation before reaches anybody any more. REQUIRES: what Readmit
  // returned, at its time, before the next event.
  virtual void Rejoin(const RejoinedHubs& rejoined) = 0;
  // Instead of Start, in a process that begins in the middle of a run: what has happened so far.
  // All its hubs are lost, until they rejoin.
  virtual void Adopt(const LossRecord& losses) = 0;
  // A command of a program outside for a window of `node`, at `at` (not before now()), if the hub
  // lives here and is not lost. What it leads to goes to the listener from within RunWindow, which
  // may be null and has to outlive the fabric; it is the same for any listener. Of one hub and
  // instant, operations are issued in the order of the calls. INVALID_ARGUMENT for a node that is
  // no hub, and a time that has passed.
  virtual absl::Status Issue(NodeId node, Time at, WindowOperation operation,
                             WindowListener* listener) = 0;
  // Ends workloads that run until stopped.
  virtual void StopWorkload(Time at) = 0;

  // Runs the workload again, at `at`, on a fabric in which nothing is to happen any more before
  // that. UNIMPLEMENTED for workloads that cannot begin later than at 0.
  virtual absl::Status RepeatWorkload(Time at) = 0;

  virtual Time now() const = 0;  // end of the last window
  virtual WorkLeft work_left() const = 0;
  virtual std::vector<NodeId> local_nodes() const = 0;
  virtual NodeResult Result(NodeId node) = 0;
  virtual const NodeStats& stats(NodeId node) const = 0;
  // What faults have cost at a local node so far, by their numbers.
  virtual std::vector<FaultTally> tallies(NodeId node) const = 0;
  // As in its NodeResult.
  virtual std::vector<std::pair<Epoch, Time>> first_rerouted(NodeId node) const = 0;
  virtual bool link_up(LinkEnd end) const = 0;
  // How often this end of the link went down since the start of the run.
  virtual std::uint32_t link_downs(LinkEnd end) const = 0;
  virtual std::vector<WaitEdge> WaitEdges() const = 0;
  // Programs of local blades and tasks of local hubs that wait, and for what.
  virtual std::vector<std::string> BlockedPrograms() const = 0;
  // Reroutes so far; empty where network management does not live.
  virtual const std::vector<Reroute>& reroutes() const = 0;
  // Trees of CAUs by number, deleted ones too; likewise.
  virtual const std::vector<TreeStatus>& trees() const = 0;
};

}  // namespace percs
