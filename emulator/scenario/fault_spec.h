// A fault as it is requested, by kind, place and time. One
// description for scenario files, the Control service and percsctl;
// emulator/management/fault_service.h carries it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/time.h"
#include "emulator/scenario/fault_action.h"
#include "emulator/scenario/fault_kinds.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"

namespace percs {

// How many of the places that the selector names.
enum class FaultMode : std::uint8_t {
  kAll,
  kOne,      // one, drawn
  kFixed,    // `count`, drawn
  kPercent,  // `percent` of them, at least one, drawn
};
// Of a link: what its end with the lower (node, port) sends is forward; if one end is named, what
// that sends.
enum class FaultDirection : std::uint8_t { kBoth, kForward, kBackward };

// A fault that has no end of its own but is set, by a file or a command that names one place
// (emulator/scenario/link_settings.h). Of one place and kind the last one holds.
enum class FaultSets : std::uint8_t {
  kNo,      // a fault like any other: it adds to the others, until its own end
  kBroken,  // replaces what was set there before
  kMended,  // ends what was set there before, retrains the link of kLinkDown, and is over
};

// Places, as the conjunction of what is given. Hubs in the order of nodes, each once.
struct FaultSelector {
  std::optional<LinkEnd> link;
  std::optional<LinkClass> link_class;
  std::vector<NodeId> in;  // hubs, or links with an end in one of them; empty: any
  std::vector<NodeId> to;  // ... and the other end in one of these; of links only
  bool operator==(const FaultSelector&) const = default;
};

struct FaultSpec {
  std::string id;  // names the fault; may be empty if it is one that is set
  FaultKind kind = FaultKind::kLinkDown;
  FaultSelector select;
  FaultMode mode = FaultMode::kAll;
  int count = 1;       // kFixed
  double percent = 0;  // kPercent; above 0, at most 100
  std::optional<std::uint64_t>
      seed;  // of what is drawn; else it follows from the scenario's and the id
  FaultDirection direction = FaultDirection::kBoth;
  std::optional<Time> at;  // absent: when it is created
  Time duration = 0;       // 0: until it is deleted
  // Again and again: on for `duty` of every `period`, `repeats` times (0: until its duration ends
  // or it is deleted). period 0: once.
  Time period = 0;
  double duty = 0.5;
  std::uint64_t repeats = 0;
  std::uint32_t lanes = 0;          // kLaneLoss
  double flit_error_rate = 0;       // kBitErrors
  std::uint32_t corrupt = 0;        // kCorruptNext
  NodeId destination = kNoNode;     // kTableDamage: the entry towards this hub ...
  std::optional<TablePlace> entry;  // ... or this one
  Time latency = 0;                 // kLatency
  std::optional<int> hfi;           // kHfiDown: 0 or 1
  std::optional<int> window;        // kWindowDown: 0..2 x windows_per_hfi - 1
  std::int64_t drift_ppb = 0;       // kClockDrift; above 0: too fast
  std::optional<int> pcie_port;     // kPcieUnplugged: 0..2; selects hubs that have a device there
  std::optional<LinkEnd>
      with;  // kMiswired: the other cable, by one end, if `select.link` names the first
  FaultSets sets = FaultSets::kNo;
  bool operator==(const FaultSpec&) const = default;
};

// What a fault acts on: links by one of their ends, or hubs.
struct FaultTargets {
  std::vector<LinkEnd> links;
  std::vector<NodeId> hubs;
  std::size_t size() const { return links.size() + hubs.size(); }
  bool operator==(const FaultTargets&) const = default;
};

inline constexpr std::int64_t kDriftMax = 100'000'000;  // a tenth
inline constexpr Time kLatencyMax = kSecond;

// How errors name it: "fault cut (link_down)", "fault link_down" without a name.
std::string TitleOf(const FaultSpec& spec);
// INVALID_ARGUMENT for a fault that cannot be: no id, times and numbers out of range, or fields
// that its kind has no use for.
absl::Status CheckFault(const FaultSpec& spec, const Topology& topology,
                        const P7ihParameters& parameters);
// The seed that its targets are drawn with.
std::uint64_t FaultSeed(const FaultSpec& spec, std::uint64_t scenario_seed);
// NOT_FOUND if the selector names nothing. REQUIRES: CheckFault.
absl::StatusOr<FaultTargets> SelectTargets(const FaultSpec& spec, const Topology& topology,
                                           std::uint64_t seed);
// INVALID_ARGUMENT for targets that do not have what the fault takes from them: lanes, an entry.
absl::Status CheckTargets(const FaultSpec& spec, const FaultTargets& targets,
                          const Topology& topology, const P7ihParameters& parameters);
// Everything that begins, or ends, with the fault, by target; times, the fault's number and
// generations of links are the caller's. REQUIRES: targets of this spec.
std::vector<FaultAction> ActionsOf(const FaultSpec& spec, const FaultTargets& targets,
                                   const Topology& topology);
// "2 links: sn0-d0-h0:LR0, sn0-d0-h0:LR1".
std::string DescribeTargets(const FaultTargets& targets, const Topology& topology,
                            std::size_t listed_max);

}  // namespace percs
