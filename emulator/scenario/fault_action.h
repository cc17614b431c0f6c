// One concrete thing that happens to one place at one virtual time: what a fault resolves to. The
// hubs it concerns keep those that hold (emulator/management/active_faults.h).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/routing/route_tables.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"

namespace percs {

struct FaultAction {
  enum class Kind : std::uint8_t {
    kLinkDown,      // the link of `end`, both ways
    kErrorRate,     // what `end` sends is corrupted with probability `rate`
    kCorruptNext,   // the next `count` transmissions of `end`; has no end
    kLanesLost,     // `count` lanes on which `end` sends
    kAlertsMuted,   // the hub of `end` raises no alert for its link; one action for each end
    kTableDamaged,  // the entry at `place` of the hub of `end`
    kRetrain,  // a link that replay gave up, and is not kept down otherwise, comes up; has no end
    kLatency,  // what `end` sends takes `value` longer
    kCauDown,  // the CAU of the hub of `end`
    kHfiDown,  // HFI `count` of the hub of `end`, with all its windows
    kWindowDown,     // window `count` of the hub of `end`
    kClockDrift,     // the oscillator of the hub of `end` is `value` parts per billion faster
    kPcieUnplugged,  // the device in PCI Express port `count` of the hub of `end`
    kRewired,  // the cable of `end` leads to `peer`, and again to where it belongs; one action for
               // each end. `count` is the generation of the link from then on
    kResetArbiters,  // resets the round-robin arbiters of the hub of `end`; of no fault, and has no
                     // end
    kRejoined,       // a lost hub has rejoined, and the link of `end` is no longer down for
                     // that; `count` is its generation from then on
    kPeerAnew,       // the hub of `end` hears that hub `peer` is another incarnation; has no end
  };
  Time at = 0;
  std::uint32_t fault = 0;     // number of the fault it belongs to
  std::uint32_t replaces = 0;  // begins: the fault whose action of this kind and end it replaces
  Kind kind = Kind::kLinkDown;
  bool begins = true;  // or ends
  LinkEnd end;
  double rate = 0;
  std::uint32_t count = 0;
  std::int64_t value = 0;
  TablePlace place;
  LinkEnd peer;

  // Both ends of the link act; else the hub of `end` alone.
  bool at_both_ends() const {
    return kind == Kind::kLinkDown || kind == Kind::kLanesLost || kind == Kind::kRetrain ||
           kind == Kind::kLatency || kind == Kind::kRejoined || of_sender();
  }
  // Only `end` does something different; the other end counts what it costs there.
  bool of_sender() const { return kind == Kind::kErrorRate || kind == Kind::kCorruptNext; }
  // No link is concerned.
  bool of_hub() const {
    return kind == Kind::kTableDamaged ||
           (kind >= Kind::kCauDown && kind <= Kind::kPcieUnplugged) ||
           kind == Kind::kResetArbiters || kind == Kind::kPeerAnew;
  }
};
inline constexpr int kFaultActionKinds =
    15;  // that processes tell each other; the last two follow from who rejoined

// INVALID_ARGUMENT for an action at a place that the machine does not have.
absl::Status CheckAction(const FaultAction& action, const Topology& topology,
                         const P7ihParameters& parameters);
absl::Status CheckPlace(NodeId node, const TablePlace& place, const Topology& topology);

}  // namespace percs
