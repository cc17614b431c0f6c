// Gives what goes wrong to the nodes of this process that it concerns, at its virtual time. All of
// these are for every process: a node that is not here is another one's business. INVALID_ARGUMENT
// for a place that is not there and for a time before `now`.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "emulator/management/link_commands.h"
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

  // All that a scenario has, at its beginning.
  absl::Status Inject(const Scenario& scenario);
  // The next two and table faults are work left until they have happened.
  absl::Status Inject(const LinkFault& fault, Time now);
  absl::Status Inject(const LinkImpairment& impairment, Time now);
  absl::Status Inject(const TableFault& fault, Time now);
  // FAILED_PRECONDITION if the blade cannot continue without the part.
  absl::Status Inject(const BladeFault& fault, Time now);
  // One action of a fault (emulator/management/fault_service.h), which is that service's work left.
  absl::Status Inject(const FaultAction& action, Time now);
  const LinkCommands& commands() const { return commands_; }
  // What hubs that came back are to know of all this, for those of them that are here.
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
  template <typename Command>
  absl::Status InjectAll(const std::vector<Command>& all, Time now);
  absl::Status CheckTime(Time at, Time now) const;
  absl::Status CheckPlace(NodeId node, const TablePlace& place) const;
  absl::Status CheckOfHub(const FaultAction& action) const;
  absl::Status CheckRewiring(const FaultAction& action) const;
  void Give(const FaultAction& action, LinkEnd end);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const std::vector<Hub*>& hubs_;
  const std::vector<EdgeNode*>& blades_;
  LinkCommands commands_{topology_};
  const std::vector<NodeId>* only_ = nullptr;  // if not null, only these get commands
};

}  // namespace percs
