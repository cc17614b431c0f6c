// The page's view of a fabric at one virtual time: made once for all browsers, from counters that
// hubs have anyway.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "emulator/base/time.h"
#include "emulator/metrics/in_flight.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/metrics/rank_log.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"

namespace percs {

// Of a machine with more nodes the page gets the use of links by supernode (SeenRows), not of each
// link.
inline constexpr std::uint64_t kSeenNodesMax = 512;

// A link as it is named; the same for all of a run.
struct LinkPlace {
  std::string name;  // sn0-d0-h0:LR12, of the lower end
  std::string ends;  // sn0-d0-h0/sn0-d1-h4
  std::string link_class;
};

// One direction of a link, as an output, since the run began.
struct WaySight {
  std::uint64_t flits = 0, packets = 0, credit_stall_ps = 0, crc_errors = 0, replays = 0,
                lanes_lost = 0;
  double busy_ps = 0;  // virtual time in which it was sending

  bool operator==(const WaySight&) const = default;
};

struct LinkSight {
  bool up = false;
  WaySight forward, backward;  // from the lower end, and to it

  bool operator==(const LinkSight&) const = default;
};

// What a hub has counted since the run began.
struct HubSight {
  std::uint64_t packets_dropped = 0;
  std::uint64_t reroutes = 0;  // after which it sent packets another way than before

  bool operator==(const HubSight&) const = default;
};

// The links and hubs of a machine that the page gets: none for more than kSeenNodesMax nodes.
class SeenLinks {
 public:
  // Null for a hub without data.
  using SeenStats = absl::FunctionRef<const NodeStats*(NodeId)>;
  // Whether the link is up as far as this end knows.
  using SeenUp = absl::FunctionRef<bool(LinkEnd)>;
  // HubSight::reroutes of a hub with data.
  using SeenReroutes = absl::FunctionRef<std::uint64_t(NodeId)>;

  explicit SeenLinks(const Topology& topology);

  const std::shared_ptr<const std::vector<LinkPlace>>& places() const { return places_; }
  // As places(), of the same topology.
  std::vector<LinkSight> Look(const Topology& topology, const P7ihParameters& parameters,
                              SeenStats stats, SeenUp up) const;
  // Names, by hub.
  const std::shared_ptr<const std::vector<std::string>>& hubs() const { return hubs_; }
  // As hubs().
  std::vector<HubSight> LookAtHubs(SeenStats stats, SeenReroutes reroutes) const;

 private:
  std::vector<LinkEnd> links_;
  std::shared_ptr<const std::vector<LinkPlace>> places_;
  std::shared_ptr<const std::vector<std::string>> hubs_;
};

// Adds `"name":[...]` to the members of an object of JSON: docs/page.md, `link_columns`. What is
// used is a share, 0 to 1.
void AddLinkRow(const LinkPlace& place, const LinkSight& link, double used_forward,
                double used_backward, std::string* rows);
// `links` of a message.
std::string LinksJson(Time at, const std::string& rows);

// The links that leave the hubs of one supernode, by the supernode that they lead to; those between
// its own hubs count for itself.
struct RowSight {
  int supernode = 0;
  Time at = 0;
  std::vector<double> busy_ps;  // by supernode: virtual time of sending, sum over the outputs
  std::vector<int> down;        // by supernode: outputs that are down
};

// The supernodes of a machine with more than kSeenNodesMax nodes; there are none of others.
class SeenRows {
 public:
  explicit SeenRows(const Topology& topology);

  int supernodes() const { return supernodes_; }
  // Outputs from supernode `a` to `b`, at a * supernodes + b.
  const std::shared_ptr<const std::vector<int>>& outputs() const { return outputs_; }
  // REQUIRES: 0 <= supernode < supernodes(); the topology is that of the constructor.
  RowSight Look(const Topology& topology, const P7ihParameters& parameters, int supernode,
                SeenLinks::SeenStats stats, SeenLinks::SeenUp up) const;

 private:
  int supernodes_ = 0;
  std::vector<std::int16_t> behind_;  // by hub and port: supernode; -1: no link of hubs
  std::shared_ptr<const std::vector<int>> outputs_;
};

// The ranks of one hub and what they do.
struct HubRanks {
  std::string name;  // of the hub
  std::vector<RankNow> ranks;
  bool operator==(const HubRanks&) const = default;
};

// What a node has under way.
struct NodeInFlight {
  std::string name;
  InFlight in_flight;
  bool operator==(const NodeInFlight&) const = default;
};

struct FabricSight {
  std::uint64_t run = 0;
  Time virtual_time = 0;
  bool run_ended = false;
  bool counted = true;  // `total` is of all nodes; else it says nothing
  // What it cost to look: of a run in this process processor time of its thread, of daemons wall
  // time from the end of the window in which they were asked to their answers.
  std::chrono::nanoseconds cost{0};
  NodeStats total;
  std::shared_ptr<const std::vector<LinkPlace>> places;
  std::vector<LinkSight> links;  // as `places`
  std::shared_ptr<const std::vector<std::string>> hub_names;
  std::vector<HubSight> hubs;                       // as `hub_names`
  std::shared_ptr<const std::vector<int>> outputs;  // SeenRows::outputs
  std::vector<RowSight> rows;                       // those that were looked at
  std::vector<HubRanks> ranks;  // of hubs that have some; of machines with kSeenNodesMax nodes
  std::vector<NodeInFlight> in_flight;  // of nodes that have something; likewise
};

// Calls back once, from any thread or before it returns; with an error while there is no run, or
// its hubs cannot be asked.
using SightDone = std::function<void(absl::StatusOr<FabricSight>)>;
using LookAtFabric = std::function<void(SightDone done)>;

}  // namespace percs
