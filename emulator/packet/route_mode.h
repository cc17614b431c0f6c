// Route modes (paper 000 section VI; names of the POWER 775 manual), and how software asks for
// them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"

namespace percs {

enum class RouteMode : std::uint8_t {
  kHwDirect,         // shortest routes; hardware takes turns where there are several
  kHwDirectStriped,  // every parallel D link to the destination supernode in turn
  kSwIndirect,       // over a middle supernode that software names
  kHwIndirect,       // over a middle supernode that hardware picks
  kAdaptive,  // not in the machine: kHwDirect or kHwIndirect by the state of the source's queues
};
// What packets are counted by: a packet of an adaptive setting carries what was chosen for it, and
// kAdaptive only while it is on its first link and its next hub will choose (kInTransit).
inline constexpr int kPacketRouteModes = 4;
constexpr bool IsIndirect(RouteMode mode) {
  return mode == RouteMode::kSwIndirect || mode == RouteMode::kHwIndirect;
}
constexpr const char* RouteModeName(RouteMode mode) {
  constexpr const char* kNames[] = {"hw_direct", "hw_direct_striped", "sw_indirect", "hw_indirect",
                                    "adaptive"};
  return kNames[static_cast<int>(mode)];
}

// How hardware picks the middle supernode of an indirect route.
enum class MiddleSelection : std::uint8_t { kRoundRobin, kRandom };

// Kinds of traffic with a route mode each.
enum class TrafficClass : std::uint8_t { kFifo, kRdma };

// By what kAdaptive chooses (docs/semantics.md B.2). The first is UGAL with what the source knows
// by itself; the others also use what the hubs of its supernode tell each other about their D links
// (B.12; docs/routing.md says what the literature does).
enum class AdaptiveAlgorithm : std::uint8_t {
  kUgalL,  // queues of the source
  kUgalG,  // and those of the D links, in flits: more than hardware would tell, a bound
  kPb,     // congestion bits of the D links, then the queues of the source
  // As kPb; a packet that goes directly is weighed again by the hub that has the D link.
  kInTransit,
};
constexpr const char* AdaptiveName(AdaptiveAlgorithm algorithm) {
  constexpr const char* kNames[] = {"ugal_l", "ugal_g", "pb", "in_transit"};
  return kNames[static_cast<int>(algorithm)];
}
// What hubs tell each other for that.
enum class CongestionReport : std::uint8_t { kNone, kBits, kCounts };

inline constexpr std::uint16_t kNoMiddle = 0xffff;

struct RouteSetting {
  RouteMode mode = RouteMode::kHwDirect;
  // kHwIndirect and kAdaptive; the others pick no middle supernode, so that modes can be compared
  // with the rest of a setting as it is.
  MiddleSelection selection = MiddleSelection::kRoundRobin;
  std::uint16_t middle = kNoMiddle;  // kSwIndirect: the same for all; else one per pair of hubs
  int adaptive_threshold = 0;        // kAdaptive: flits by which direct has to be worse
  AdaptiveAlgorithm adaptive = AdaptiveAlgorithm::kUgalL;
  CongestionReport reports() const {
    return adaptive == AdaptiveAlgorithm::kUgalL   ? CongestionReport::kNone
           : adaptive == AdaptiveAlgorithm::kUgalG ? CongestionReport::kCounts
                                                   : CongestionReport::kBits;
  }
  bool operator==(const RouteSetting&) const = default;
};

// INVALID_ARGUMENT for what no machine of this size can do, with what would be right.
absl::Status CheckRouteSetting(const RouteSetting& setting, int supernodes);
// Likewise for the setting of one packet where hubs tell each other `reports`.
absl::Status CheckReports(const RouteSetting& setting, CongestionReport reports);

struct RoutingSettings {
  RouteSetting fifo, rdma;
  TrafficClass workload = TrafficClass::kFifo;  // what the workload's packets are
  const RouteSetting& of(TrafficClass traffic) const {
    return traffic == TrafficClass::kRdma ? rdma : fifo;
  }
  // What both settings need.
  CongestionReport reports() const { return std::max(fifo.reports(), rdma.reports()); }
};

}  // namespace percs
