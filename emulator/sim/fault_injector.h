// Gives what goes wrong to the nodes of this process that it concerns, at its virtual time. All of these are for
// every process: a node that is not here is another one's business. INVALID_ARGUMENT for a place that is not
// there and for a time before `now`.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/fault/fault_action.h"
#include "emulator/node/edge_node.h"
#include "emulator/node/hub.h"
#include "emulator/sim/scenario.h"

namespace percs {

class FaultInjector {
 public:
  // `hubs` by node and `blades` by blade; null where another process has it.
  FaultInjector(const Topology& topology, const P7ihParameters& parameters, const std::vector<Hub*>& hubs,
                const std::vector<EdgeNode*>& blades)
      : topology_(topology), parameters_(parameters), hubs_(hubs), blades_(blades) {}

  // The first two and table faults are work left until they have happened.
  absl::Status Inject(const LinkFault& fault, Time now);
  absl::Status Inject(const LinkImpairment& impairment, Time now);
  absl::Status Inject(const TableFault& fault, Time now);
  // FAILED_PRECONDITION if the blade cannot go on without the part.
  absl::Status Inject(const BladeFault& fault, Time now);
  // One action of a fault (emulator/fault/fault_service.h), which is that service's work left.
  absl::Status Inject(const FaultAction& action, Time now);

 private:
  Hub* HubAt(NodeId node) const { return node < hubs_.size() ? hubs_[node] : nullptr; }
  EdgeNode* BladeAt(NodeId node) const {
    return topology_.is_blade(node) ? blades_[node - topology_.hubs()] : nullptr;
  }
  absl::Status CheckTime(Time at, Time now) const;
  absl::Status CheckPlace(NodeId node, const TablePlace& place) const;
  absl::Status CheckOfHub(const FaultAction& action) const;
  absl::Status CheckRewiring(const FaultAction& action) const;
  void Give(const FaultAction& action, LinkEnd end);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const std::vector<Hub*>& hubs_;
  const std::vector<EdgeNode*>& blades_;
};

}  // namespace percs
