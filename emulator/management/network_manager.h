// Network management: hears alerts, replans, checks, installs in two phases (docs/semantics.md rule
// 19; paper 000 section VI: hardware alerts, software reroutes). A partition of virtual time of its
// own, the same code in process and in percs-controller. It never sees the fault list.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "emulator/base/pool.h"
#include "emulator/chip/node_context.h"
#include "emulator/engine/event_queue.h"
#include "emulator/management/event_log.h"
#include "emulator/management/loss.h"
#include "emulator/management/reroute.h"
#include "emulator/management/tree_service.h"
#include "emulator/routing/planner.h"
#include "emulator/wire/outbox.h"

namespace percs {

// WIDE: 28 members; its parts (faults, trees, losses, planner) are members, the others what they
// share.
class NetworkManager {
 public:
  // Above this number of nodes plans are installed unchecked, and the pairs that they leave
  // unreachable are not counted: a proof after every alert would take longer than the run it
  // serves.
  static constexpr NodeId kCheckedNodesMax = 2112;
  using Send = std::function<void(ControlItem&&)>;
  using Plan = std::function<TableSet(const Failures&)>;
  // `log` may be null. `plan` is Planner's if it is null; for any planner, what fails the check is
  // not installed.
  NetworkManager(const Topology& topology, const P7ihParameters& parameters, bool reroute,
                 WorkCounters* work, EventLog* log, Send send, Plan plan = nullptr);

  void SetTables(NodeId node, std::shared_ptr<const HubTables> tables) {
    tables_[node] = std::move(tables);
  }

  // What it has had installed, or is about to.
  const std::shared_ptr<const HubTables>& tables(NodeId node) const { return tables_[node]; }

  // Installs a table set from outside as the next epoch; the next reroute plans again and replaces
  // it. FAILED_PRECONDITION with the witness if the set fails the proof, and while another one is
  // in flight. REQUIRES: at >= everything that has run.
  absl::StatusOr<LoadedRoutes> Load(TableSet tables, Time at);

  // Trees of CAUs. Commands take effect at `at`, and reach the hubs as messages. Errors as
  // TreeService. REQUIRES: at >= everything that has run.
  void AdoptTree(const TreeSpec& spec, std::shared_ptr<const TreePlan> plan) {
    trees_.Adopt(spec, std::move(plan));
  }
  absl::StatusOr<CauTreeId> CreateTree(const TreeSpec& spec, Time at);
  absl::Status DeleteTree(CauTreeId tree, Time at);
  const std::vector<TreeStatus>& trees() const { return trees_.trees(); }

  // Continues without these hubs: sends them nothing, and does not wait for them. REQUIRES: lost.at
  // >= everything that has run.
  void Lose(const LostHubs& lost);
  // Has them take part again: in an install that is in flight, in the next ones, and in trees to
  // come. They have tables(node) of installed_epoch(). REQUIRES: rejoined.at >= everything that has
  // run.
  void Rejoin(const RejoinedHubs& rejoined);
  Epoch installed_epoch() const { return unanswered_.empty() ? epoch_ : epoch_ - 1; }

  void Receive(const ControlItem& item);
  Time next_time() const { return queue_.next_time(); }
  void Run(Time end);

  const std::vector<Reroute>& reroutes() const { return reroutes_; }
  const Failures& failures() const { return failures_; }

 private:
  enum class Step : std::uint64_t { kStartPlanning, kPlanned, kCommitted, kTrees };
  using Link = std::pair<NodeId, PortId>;  // by its lower end
  void OnAlert(const ControlItem& alert);
  void NoteAlert(const ControlItem& alert);
  // Whether the loss or the return of hubs, which is an event already, explains it.
  bool Explained(const ControlItem& alert) const;
  // Of links between these hubs and others that are not lost.
  std::size_t LinksOf(const std::vector<NodeId>& nodes) const;
  Link LinkOf(LinkEnd end) const;
  std::string Wiring(LinkEnd end, LinkEnd found) const;
  void KeepWiring(const ControlItem& alert);
  void FollowLinks();
  void OnPrepared(const ControlItem& answer);
  void StartPlanning();
  void FinishPlanning();
  bool SendPrepare(NodeId node);
  void Commit();
  void Committed();
  void Schedule(Time at, Step step);
  void Note(const char* kind, const std::string& subject, const std::string& text);
  bool Verified();

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const bool reroute_;
  WorkCounters* work_;
  EventLog* log_;
  Send send_;
  TreeService trees_;
  EventQueue queue_{&work_->events};
  Pool<ControlItem> items_;
  Time now_ = 0;

  std::set<Link> down_;  // as their ends say
  std::map<Link, Link>
      swapped_;        // cables that are not where they belong, and what each is swapped with
  Failures failures_;  // both
  std::vector<ControlItem> news_;  // alerts that no plan has answered yet
  bool busy_ = false;              // a plan is scheduled or in flight
  Epoch epoch_ = 1;
  Planner planner_;
  const Plan plan_;
  bool proven_ = false;     // planned_ has passed the proof already
  bool unchecked_ = false;  // planned_ is installed without a proof
  TableSet tables_, planned_;
  std::set<NodeId> lost_, unanswered_;            // hubs
  std::map<NodeId, Time> lost_at_, rejoined_at_;  // the last time
  Reroute current_;
  std::vector<Reroute> reroutes_;
};

}  // namespace percs
