// What the tree service knows of a tree, and what it did to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/base/time.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/routing/tree_problem.h"

namespace percs {

enum class TreeState : std::uint8_t {
  kSettingUp,
  kReady,
  kFailed,  // and could not be set up (again)
  kDeleted,
};
const char* TreeStateName(TreeState state);

// One time a tree was set up again, because it failed or because members that it had lost can be
// reached again.
struct TreeRepair {
  TreeProblem problem;
  std::uint32_t generation = 0;      // that it brought
  Time raised = 0;                   // at the hub, or when network management noticed itself
  Time started = 0, ready = kNever;  // ready at every hub; kNever: not yet, or never
  std::vector<NodeId> lost = {};     // members left out from then on
  std::vector<NodeId> back = {};     // members taken in again
};

struct TreeStatus {
  CauTreeId id = 0;
  std::string name;
  TreeState state = TreeState::kSettingUp;
  std::shared_ptr<const TreePlan> plan;  // of the present generation
  TreeProblem problem;                   // kFailed: why
  Time since = 0;                        // of the state
  std::vector<TreeRepair> repairs;
};

}  // namespace percs
