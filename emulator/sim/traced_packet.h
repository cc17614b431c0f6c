// The records of all hubs put together: the way of each traced packet, hop by hop, and what it
// waited for.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "emulator/metrics/path_trace.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"

namespace percs {

// Flits of a packet that an output sent in one go.
struct TracedGrant {
  Time at = 0, until = 0;  // the first begins, the last has left
  int first = 0, flits = 0;
  std::array<Time, kWaits> waited{};  // by Wait, before it began
};

struct TracedHop {
  LinkEnd in, out;  // of the same hub
  VcId in_vc = 0, out_vc = 0;
  bool injected = false;            // `in` is an HFI port
  bool branch = false;              // of a multicast packet, which has a hop to kReplication before
  Time arrived = 0;                 // of the head; injected or branch: it is there as a whole
  std::vector<TracedGrant> grants;  // in order
};

struct TracedDrop {
  Time at = 0;
  NodeId node = 0;
  DropReason reason = DropReason::kLinkDown;
  int flits = 0;
};

struct TracedPacket {
  NodeId source = 0, destination = 0;
  std::uint64_t sequence = 0;
  int bytes = 0, flits = 0;
  RouteMode mode = RouteMode::kHwDirect;
  Time created = 0;
  Time hfi_wait = 0;            // in a send queue, before an HFI began to hand it over
  std::vector<TracedHop> hops;  // by arrival
  std::vector<std::pair<Time, NodeId>> deliveries;
  std::vector<TracedDrop> drops;
  std::string content;  // PacketAsBytes, if it was to be kept
  bool ended() const { return !deliveries.empty() || !drops.empty(); }
};

// Of every packet whose creation is among the events, by creation, then source and sequence. The
// events may come in any order.
std::vector<TracedPacket> MergeTrace(const P7ihParameters& parameters,
                                     std::vector<TraceEvent> events);

}  // namespace percs
