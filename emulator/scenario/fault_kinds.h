// The kinds of faults, one row each: where a kind acts, with what action, by which field of the
// fault, and what that does to packets. A kind that combines what is there is a value and a row
// here, and its value in percs/v1/fault.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "emulator/scenario/fault_action.h"

namespace percs {

enum class FaultKind : std::uint8_t {
  kLinkDown,   // both directions, noticed at both ends
  kPortDown,   // one direction goes dark: all it sends is corrupted, until replay gives the link up
  kFlap,       // a link that goes down and comes up again and again
  kLaneLoss,   // lanes of a link do not work (docs/semantics.md rule 18)
  kBitErrors,  // transmissions are corrupted at random
  kCorruptNext,      // a number of next transmissions are corrupted
  kHubDown,          // every link of a hub
  kPartition,        // every link between a group of hubs and the others
  kTableDamage,      // an entry of a hub's source table loses its parity
  kAlertSuppressed,  // the ends of a link raise no alert for it
  kLatency,          // what a link carries takes longer
  kCauDown,          // the CAU of a hub takes no packets and sends none
  kHfiDown,          // all windows of an HFI
  kWindowDown,       // nothing leaves a window or reaches it
  kClockDrift,       // the oscillator of a hub is faster or slower
  kMiswired,         // two D cables are swapped at the far end
  kPcieUnplugged,    // what is in a PCI Express port of a hub is unplugged, until the fault is over
};

enum class FaultPlaces : std::uint8_t {
  kLinks,        // one action for a link that goes down, else one for each direction
  kHubs,         // one action for a hub
  kLinksOfHubs,  // one for each link of a hub
  kCables,       // four for two cables that are swapped
};

// What a fault of the kind has to say, and no other; a number of its actions.
enum class FaultField : std::uint8_t {
  kNone,
  kLanes,
  kErrorRate,
  kCorrupt,
  kEntry,
  kLatency,
  kHfi,
  kWindow,
  kDrift,
  kPciePort,
};

enum class FaultCost : std::uint8_t {
  kNothing,    // no packet is lost
  kErrors,     // packets are lost where flits are not replayed, or as the numbers have it
  kEntry,      // packets that need the entry are lost
  kSilence,    // the place takes no packets and sends none
  kLinksDown,  // links go down
};

struct FaultKindRow {
  const char* name;
  FaultPlaces places;
  FaultAction::Kind action;
  FaultField field = FaultField::kNone;
  FaultCost cost = FaultCost::kErrors;
  bool one_way = false;  // may have a direction
};

inline constexpr FaultKindRow kFaultKindRows[] = {
    {"link_down", FaultPlaces::kLinks, FaultAction::Kind::kLinkDown, FaultField::kNone,
     FaultCost::kLinksDown},
    {"port_down", FaultPlaces::kLinks, FaultAction::Kind::kErrorRate, FaultField::kNone,
     FaultCost::kLinksDown, true},
    {"flap", FaultPlaces::kLinks, FaultAction::Kind::kLinkDown, FaultField::kNone,
     FaultCost::kLinksDown},
    {"lane_loss", FaultPlaces::kLinks, FaultAction::Kind::kLanesLost, FaultField::kLanes,
     FaultCost::kErrors, true},
    {"bit_errors", FaultPlaces::kLinks, FaultAction::Kind::kErrorRate, FaultField::kErrorRate,
     FaultCost::kErrors, true},
    {"corrupt_next", FaultPlaces::kLinks, FaultAction::Kind::kCorruptNext, FaultField::kCorrupt,
     FaultCost::kErrors, true},
    {"hub_down", FaultPlaces::kLinksOfHubs, FaultAction::Kind::kLinkDown, FaultField::kNone,
     FaultCost::kLinksDown},
    {"partition", FaultPlaces::kLinks, FaultAction::Kind::kLinkDown, FaultField::kNone,
     FaultCost::kLinksDown},
    {"table_damage", FaultPlaces::kHubs, FaultAction::Kind::kTableDamaged, FaultField::kEntry,
     FaultCost::kEntry},
    {"alert_suppressed", FaultPlaces::kLinks, FaultAction::Kind::kAlertsMuted},
    {"latency", FaultPlaces::kLinks, FaultAction::Kind::kLatency, FaultField::kLatency,
     FaultCost::kNothing, true},
    {"cau_down", FaultPlaces::kHubs, FaultAction::Kind::kCauDown, FaultField::kNone,
     FaultCost::kSilence},
    {"hfi_down", FaultPlaces::kHubs, FaultAction::Kind::kHfiDown, FaultField::kHfi,
     FaultCost::kSilence},
    {"window_down", FaultPlaces::kHubs, FaultAction::Kind::kWindowDown, FaultField::kWindow,
     FaultCost::kSilence},
    {"clock_drift", FaultPlaces::kHubs, FaultAction::Kind::kClockDrift, FaultField::kDrift,
     FaultCost::kNothing},
    {"miswired", FaultPlaces::kCables, FaultAction::Kind::kRewired, FaultField::kNone,
     FaultCost::kLinksDown},
    {"pcie_unplugged", FaultPlaces::kHubs, FaultAction::Kind::kPcieUnplugged, FaultField::kPciePort,
     FaultCost::kNothing},
};
inline constexpr int kFaultKinds = static_cast<int>(std::size(kFaultKindRows));

constexpr const FaultKindRow& RowOf(FaultKind kind) {
  return kFaultKindRows[static_cast<std::size_t>(kind)];
}
constexpr const char* FaultKindName(FaultKind kind) { return RowOf(kind).name; }  // "link_down"
constexpr bool IsOfHubs(FaultKind kind) {
  const FaultPlaces places = RowOf(kind).places;
  return places == FaultPlaces::kHubs || places == FaultPlaces::kLinksOfHubs;
}
// Replay may give a link up because of it, so its end retrains the links.
constexpr bool CorruptsFlits(FaultKind kind) {
  const FaultAction::Kind action = RowOf(kind).action;
  return action == FaultAction::Kind::kErrorRate || action == FaultAction::Kind::kCorruptNext;
}

}  // namespace percs
