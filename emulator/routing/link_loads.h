// How many routes of an all-to-all cross each link, counted from the tables, and the bandwidth
// bound that follows (paper 000 section VII-A).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/routing/route_tables.h"
#include "emulator/topology/topology.h"

namespace percs {

// Of the links of one class, each direction on its own. Where a table offers several ports, each
// takes its share of the route, so a load need not be whole.
struct ClassLoad {
  double min = 0, max = 0;
  std::uint64_t directions = 0;
};

struct AllToAllLoads {
  ClassLoad ll, lr, d;
  double routes = 0;  // (source, destination) routes that arrive
};

// Every hub to every other hub once, over the direct tables.
AllToAllLoads CountAllToAll(const Topology& topology,
                            const std::vector<std::shared_ptr<const HubTables>>& tables);

// Link rates in GB/s per direction.
struct LinkRates {
  double ll = 24, lr = 5, d = 10;
  double injection = 96;  // of a hub; more than this it cannot offer
};

struct AllToAllBound {
  int d = 0;  // D links per hub, each to another supernode; 0 = one supernode alone
  int supernodes = 0;
  std::uint32_t hubs = 0;
  double c_ll = 0, c_lr = 0, c_d = 0;  // routes over the busiest link of each class
  double gb_per_second = 0;          // bound per hub: the busiest link shared evenly by its routes
  LinkClass limit = LinkClass::kLl;  // the class that sets it; kHfi = injection
};

// The bound for the full machine with d D links per hub: 32 d + 1 supernodes of 32 hubs, one D link
// per pair. INVALID_ARGUMENT if d is not in 0..16.
absl::StatusOr<AllToAllBound> BoundAllToAll(int d, const LinkRates& rates = {});

}  // namespace percs
