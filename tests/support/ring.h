// Three packets chase each other round a ring of three hubs, each too long for the buffers: with
// one VC a deadlock, with VCs by position none.
#pragma once

#include <memory>

#include "emulator/routing/route_tables.h"
#include "emulator/scenario/scenario.h"

namespace percs::test {

inline Scenario Ring(VcPolicy policy) {
  Scenario scenario;
  scenario.name = "ring";
  scenario.topology = {.supernodes = 1, .drawers = 1, .hubs = 3};
  scenario.parameters.ll.buffer_flits = 4;
  scenario.parameters.vc_policy = policy;
  scenario.workload = ScriptedWorkload{{{0, 0, 2}, {0, 1, 0}, {0, 2, 1}}};
  scenario.reroute = false;
  return scenario;
}

// Everybody sends everything to the next of the three.
inline TableSet RingTables(const Topology& topology) {
  TableSet tables;
  for (NodeId node = 0; node < 3; ++node) {
    auto table = std::make_shared<RouteTable>();
    table->intra.assign(3, PortBit(topology.LPort(node, (node + 1) % 3)));
    table->inter.resize(1);
    auto hub = std::make_shared<HubTables>();
    hub->source_direct = hub->source_striped = hub->source_indirect = table;
    hub->port_direct.fill(table);
    hub->port_indirect.fill(table);
    tables.push_back(hub);
  }
  return tables;
}

}  // namespace percs::test
