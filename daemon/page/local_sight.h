// The page's view of a fabric that runs in this process: the same as of one over daemons.
#pragma once

#include <chrono>
#include <cstdint>

#include "daemon/page/fabric_sight.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"

namespace percs {

// Of one run, between its windows.
class LocalSight {
 public:
  static constexpr std::chrono::microseconds kLookTime{4000};

  // `number` of the run, from 1.
  LocalSight(const Topology& topology, std::uint64_t number)
      : links_(topology), rows_(topology), run_(number) {}

  // All hubs at the fabric's virtual time.
  FabricSight Look(const Fabric& fabric, bool ended) const;
  // Of a machine with more than kSeenNodesMax nodes only the next ones, as many as take about
  // kLookTime of a core by what the look before took: after some calls all have been seen, and
  // counted, each at its own time. Of others, and at the end of the run, as Look.
  FabricSight LookOn(const Fabric& fabric, bool ended);
  // Without wall times, but with network management's response to each fault.
  v1::StatusReply Status(const Fabric& fabric, std::uint64_t windows,
                         std::uint64_t packets_delivered) const;

 private:
  FabricSight Begin(const Fabric& fabric, bool ended) const;
  RowSight Row(const Fabric& fabric, int supernode, SeenLinks::SeenStats stats) const;

  const SeenLinks links_;
  const SeenRows rows_;
  const std::uint64_t run_;
  NodeId at_once_ = 512;  // LookOn
  NodeId next_ = 0;
  NodeStats passed_;  // of the nodes before it
  Epoch epoch_ = 0;   // the highest that they had
};

}  // namespace percs
