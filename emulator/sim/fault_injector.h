// Gives what goes wrong to the nodes of this process that it concerns, at its virtual time. All of
// these are for every process: a node that is not here is another one's business. INVALID_ARGUMENT
// for a place that is not there and for a time before `now`.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "emulator/management/loss.h"
#include "emulator/scenario/fault_action.h"
#include "emulator/scenario/scenario.h"

namespace percs {

class EdgeNode;
class Hub;

class FaultInjector {
 public:
  // `hubs` by node and `blades` by blade; null where another process has it.
  FaultInjector(const Topology& topology, const P7ihParameters& parameters,
                const std::vector<Hub*>& hubs, const std::vector<EdgeNode*>& blades)
      : topology_(topology), parameters_(parameters), hubs_(hubs), blades_(blades) {}

  // Parts of blades that a scenario breaks.
  absl::Status Inject(const std::vector<BladeFault>& faults);
  // FAILED_PRECONDITION if the blade cannot continue without the part.
  absl::Status Inject(const BladeFault& fault, Time now);
  // One action of a fault (emulator/management/fault_service.h), which is that service's work left.
  absl::Status Inject(const FaultAction& action, Time now);
  // Actions that hubs that came back are to know, for those of them that are here.
  absl::Status TellAgain(const RejoinedHubs& rejoined, Time now);

 private:
  Hub* HubAt(NodeId node) const {
    const bool told =
        only_ == nullptr || std::find(only_->begin(), only_->end(), node) != only_->end();
    return told && node < hubs_.size() ? hubs_[node] : nullptr;
  }
  EdgeNode* BladeAt(NodeId node) const {
    return topology_.is_blade(node) ? blades_[node - topology_.hubs()] : nullptr;
  }
  absl::Status CheckTime(Time at, Time now) const;
  void Give(const FaultAction& action, LinkEnd end);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const std::vector<Hub*>& hubs_;
  const std::vector<EdgeNode*>& blades_;
  const std::vector<NodeId>* only_ = nullptr;  // if not null, only these get commands
};

}  // namespace percs
