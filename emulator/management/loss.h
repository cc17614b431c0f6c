// Hubs whose process is gone, and hubs that another process has brought back (docs/semantics.md
// rule 21). What such a process had not sent is lost with it, so the hubs stop at the end of the
// window in which that was noticed, count for nothing from then on, and the links to them are down.
// Those that come back are as new, but for what commands and faults do to them and to their links.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/digest.h"
#include "emulator/base/time.h"
#include "emulator/scenario/fault_action.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

// What hubs sent from a virtual time on and did not arrive: not the flits, credits and symbols for
// hubs of `to`, and not what was meant for network management.
struct SeveredHubs {
  std::vector<NodeId> from, to;
  bool management = false;
};

struct LostHubs {
  std::vector<NodeId> nodes;
  std::string who;           // for people: the process
  std::uint32_t number = 0;  // of the loss, from 1
  Time at = 0;
};

struct RejoinedHubs {
  std::vector<NodeId> nodes;      // of the loss, without blades: these stay lost
  std::string who;                // for people: the process that has them now
  std::uint32_t loss = 0;         // number of the loss
  std::uint32_t incarnation = 2;  // of these hubs; those that a run begins with are the first
  Time at = 0;
  // As network management has it:
  std::uint32_t generation = 0;  // of their links from then on, above all there were
  Epoch epoch = 1;
  std::vector<std::shared_ptr<const HubTables>> tables;  // one each of `nodes`
  std::vector<FaultAction> faults;                       // what acts on them and their links
};

// A loss holds the links of its hubs down as a fault of this number would.
inline constexpr std::uint32_t kLossNumbers = 0xffff0000u;

// One for each link of the hubs.
std::vector<FaultAction> ActionsOf(const LostHubs& lost, const Topology& topology);
// One for each link of the hubs to one that is there.
std::vector<FaultAction> ActionsOf(const RejoinedHubs& rejoined, const Topology& topology,
                                   const std::function<bool(NodeId)>& is_lost);

// Lost hubs, rejoined hubs, and hubs whose packets do not arrive, in the order of the events.
class LossRecord {
 public:
  void Sever(const SeveredHubs& severed) { severed_.push_back(severed); }
  void Lose(const LostHubs& lost, NodeId nodes);
  void Rejoin(const RejoinedHubs& rejoined);
  // Hubs of the loss of this number, which may come back. NOT_FOUND; FAILED_PRECONDITION if they
  // have done so already, or if it has none.
  absl::StatusOr<RejoinedHubs> Returning(std::uint32_t loss, const Topology& topology) const;

  bool any_severed() const { return !severed_.empty(); }
  // What `from` sends does not reach `to`, which may be network management.
  bool Severed(NodeId from, NodeId to) const;
  bool IsLost(NodeId node) const;
  // Lost and rejoined hubs, with times; nothing if no hub rejoined.
  void Fold(DigestStream& digest) const;
  const std::vector<LostHubs>& lost() const { return lost_; }
  const std::vector<RejoinedHubs>& rejoined() const { return rejoined_; }

 private:
  std::vector<SeveredHubs> severed_;
  std::vector<LostHubs> lost_;
  std::vector<RejoinedHubs> rejoined_;  // without what network management had for them
};

}  // namespace percs
