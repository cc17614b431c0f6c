// The benchmark loop on the tasks of one node.
#pragma once

#include <memory>
#include <vector>

#include "emulator/collectives/factory.h"
#include "emulator/collectives/pattern.h"
#include "emulator/runtime/node_runtime.h"

namespace percs {

class CollectiveLoop final : public NodeRuntime {
 public:
  // REQUIRES: CheckCollectiveWorkload and CheckCollectiveSize.
  CollectiveLoop(const CollectiveWorkload& workload, HubServices& hub);
  CollectiveResult collective() const override { return result_; }
  std::vector<std::string> Blocked() const override;

 private:
  Task<> Loop(Rank& rank);

  const CollectiveWorkload& workload_;
  const CollectivePattern pattern_;
  std::vector<std::unique_ptr<Collective>> collectives_;  // by local task
  CollectiveResult result_;
};

}  // namespace percs
