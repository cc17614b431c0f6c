// The second time that a hub runs its workload: what it delivered and counted since then, reckoned
// from the start of it, so that it compares with a first time.
#pragma once

#include "absl/status/status.h"
#include "emulator/base/digest.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/packet/packet.h"
#include "emulator/scenario/scenario.h"
#include "emulator/topology/topology.h"

namespace percs {

struct RepeatedWorkload {
  Time started = 0;
  NodeStats before;  // counted until then
  DigestStream digest;

  void Deliver(Time now, const PacketHeader& header, std::uint64_t payload_hash) {
    digest.Add(static_cast<std::uint64_t>(now - started));
    digest.Add(static_cast<std::uint64_t>(header.source) << 32 | header.flits);
    digest.Add(header.sequence);
    digest.Add(header.path);
    if (payload_hash) digest.Add(payload_hash);
  }
};

// UNIMPLEMENTED for a workload that cannot begin later than at 0.
absl::Status CheckRepeatable(const Scenario& scenario, const Topology& topology);

}  // namespace percs
