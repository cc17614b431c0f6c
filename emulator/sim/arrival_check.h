// Looks at what another process says has crossed, before any hub of this one believes it: places
// that are there, times that have not passed, numbers in their ranges. INVALID_ARGUMENT says what
// is wrong with it.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/scenario/scenario.h"
#include "emulator/wire/outbox.h"

namespace percs {

class Hub;

class ArrivalCheck {
 public:
  // `hubs` by node; null where another process has it.
  ArrivalCheck(const Topology& topology, const Scenario& scenario, const std::vector<Hub*>& hubs)
      : topology_(topology), scenario_(scenario), hubs_(hubs) {}

  // `manages`: network management lives in this process.
  absl::Status Check(const Outbox& incoming, bool manages, Time now) const;
  // Of a program outside, for a window of `node`, which may live elsewhere.
  absl::Status CheckOperation(NodeId node, Time at, Time now) const;

 private:
  Hub* HubAt(NodeId node) const { return node < hubs_.size() ? hubs_[node] : nullptr; }
  absl::Status CheckEnd(const char* what, LinkEnd end, VcId vc, Time arrival, Time now) const;
  absl::Status CheckRun(const FlitRun& run) const;
  bool TreeFits(const ControlItem& item) const;

  const Topology& topology_;
  const Scenario& scenario_;
  const std::vector<Hub*>& hubs_;
};

}  // namespace percs
