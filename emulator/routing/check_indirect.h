// Proof of the indirect tables: every packet of every live hub, over every middle supernode that
// its tables hold open, gets to every live hub of every other supernode.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/routing/channel_graph.h"
#include "emulator/routing/live_fabric.h"
#include "emulator/routing/planner.h"
#include "emulator/topology/topology.h"

namespace percs {

class IndirectCheck {
 public:
  IndirectCheck(const Topology& topology, const LiveFabric& live, const TableSet& tables,
                ChannelGraph* channels)
      : topology_(topology),
        live_(live),
        tables_(tables),
        channels_(*channels),
        seconds_(static_cast<std::size_t>(topology.hubs()) * kDPorts),
        landings_(static_cast<std::size_t>(topology.hubs()) * kDPorts) {}

  // FAILED_PRECONDITION with the walk as witness. Adds what packets may wait for to the channels.
  // REQUIRES: tables of the topology's shape.
  absl::Status Run(int* hops_max);

 private:
  static constexpr std::size_t kSupernodesMax = 513;
  using Supernodes = std::bitset<kSupernodesMax>;
  struct Place {
    NodeId node;
    PortId in_port;
    Position position;
  };
  // From a landing in the middle supernode: where every walk gets to all live hubs.
  struct Second {
    bool known = false;
    Supernodes reaches;
  };
  // From a landing after D1: which hubs of its supernode every walk gets to.
  struct Landing {
    bool known = false;
    HubMask reaches = 0;
  };

  std::size_t Index(const Place& place) const {
    return static_cast<std::size_t>(place.node) * kDPorts +
           static_cast<std::size_t>(place.in_port - kDFirst);
  }
  // The leg's entry: of a hub if `intra`, else of a supernode.
  PortMask Choices(const Place& place, bool intra, int index) const;
  Place Follow(const Place& place, PortId port) const;
  Place Walk(const Place& place, PortId port);
  absl::Status CheckSource(NodeId source);
  void AddDiversions(NodeId hub);
  bool FirstLeg(const Place& place, int middle, Supernodes* reaches);
  const Supernodes& SecondLeg(const Place& place);
  bool ReachesAll(const Place& place, int destination);
  HubMask Landed(const Place& place);
  // Appends the first walk that goes wrong; false if there is one.
  bool Explain(const Place& place, int middle, NodeId destination, std::string* walk) const;

  const Topology& topology_;
  const LiveFabric& live_;
  const TableSet& tables_;
  ChannelGraph& channels_;
  std::vector<Second> seconds_;    // by node and D port
  std::vector<Landing> landings_;  // by node and D port
  Supernodes alive_;
  int hops_max_ = 0;
};

}  // namespace percs
