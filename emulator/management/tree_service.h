// The tree service of network management: creates, deletes and repairs trees of CAUs (paper 003
// section 3.6: software builds the tree). Plans, sets up at every hub, and says ready when all have
// answered, out of band like route tables (docs/semantics.md rule 19). A tree that fails, for
// whatever reason, is set up again as another generation, without the hubs that its others cannot
// reach; and again with them as soon as they are reachable.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/chip/node_context.h"
#include "emulator/management/event_log.h"
#include "emulator/management/tree_status.h"
#include "emulator/routing/planner.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/wire/outbox.h"

namespace percs {

class TreeService {
 public:
  using Send = std::function<void(ControlItem&&)>;
  // `log` may be null.
  TreeService(const Topology& topology, const P7ihParameters& parameters, WorkCounters* work,
              EventLog* log, Send send)
      : topology_(topology),
        parameters_(parameters),
        work_(work),
        log_(log),
        send_(std::move(send)) {}

  // A tree that is there from the start; the hubs are set up by the caller.
  void Adopt(const TreeSpec& spec, std::shared_ptr<const TreePlan> plan);

  // Commands from outside; Execute(at) applies them. INVALID_ARGUMENT for a tree that cannot be
  // set up, RESOURCE_EXHAUSTED if a CAU has no index left, ALREADY_EXISTS for a name taken,
  // NOT_FOUND.
  absl::StatusOr<CauTreeId> Create(const TreeSpec& spec);
  absl::Status Delete(CauTreeId tree);
  void Execute(Time now);

  void Receive(const ControlItem& item, Time now);  // kTreeAnswer, kTreeAlert
  // New tables are in effect: trees whose links have no route any more are repaired, others take
  // back members that they lost. Pairs that were silent on the routes of before are tried again.
  void OnTables(const TableSet& tables, Time now);
  // A link is up again, and there will be no new tables.
  void OnLinkUp(Time now);

  // Goes on without these hubs: trees that have one are repaired, those that wait for one wait no
  // longer.
  void Lose(const std::vector<NodeId>& hubs, Time now);
  // They are there again, without what ran on them: trees that had them continue without, new ones
  // may have them.
  void Rejoin(const std::vector<NodeId>& hubs) {
    for (const NodeId hub : hubs) lost_.erase(hub);
  }

  const std::vector<TreeStatus>& trees() const { return status_; }

 private:
  struct Tree {
    TreeSpec spec;                                  // as asked for
    std::set<std::pair<NodeId, NodeId>> mute = {};  // pairs that a tree link does not work between
    std::set<NodeId> unanswered = {};
    std::set<NodeId> out = {};            // lost hubs: they have no participants
    bool create = false, remove = false;  // commands not carried out yet
  };
  CauTreeId made() const { return static_cast<CauTreeId>(trees_.size()); }  // at most kCauTreesMade
  bool Linked(const Tree& tree, NodeId a, NodeId b) const;
  absl::Status CheckRoom(const TreePlan& plan) const;
  std::vector<NodeId> Hubs(const TreePlan& plan) const;
  void SetUp(CauTreeId id, TreePlan plan, const TreeProblem& why, Time now);
  void Review(Time now);
  bool Broken(CauTreeId id, TreeProblem* why) const;
  absl::StatusOr<TreePlan> PlanOver(const Tree& tree, std::vector<NodeId> nodes) const;
  void TakeBack(CauTreeId id, Time now);
  void Repair(CauTreeId id, const TreeProblem& why, Time raised, Time now);
  std::vector<NodeId> Reachable(const Tree& tree, const std::vector<NodeId>& nodes) const;
  void OnAnswer(const ControlItem& item, Time now);
  void Answered(CauTreeId id, Time now);
  void OnAlert(const ControlItem& item, Time now);
  void TakeDown(CauTreeId id, const std::vector<NodeId>& hubs, const TreeProblem& why, Time now);
  void Tell(ControlItem::Kind kind, CauTreeId id, NodeId hub, const TreeProblem& why, Time now);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  WorkCounters* work_;
  EventLog* log_;
  Send send_;
  TableSet tables_;          // in effect; empty: those of an intact fabric
  std::vector<Tree> trees_;  // by id
  std::vector<TreeStatus> status_;
  std::set<NodeId> lost_;
};

}  // namespace percs
