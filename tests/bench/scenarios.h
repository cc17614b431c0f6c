// What the benchmarks run; tests/bench/headline asks percsctl for the same scenarios.
#pragma once

#include <cstdint>

#include "emulator/scenario/scenario.h"

namespace percs::bench {

// One supernode, raw packets to random hubs at half of what a hub can offer.
inline Scenario UniformAtHalfLoad(std::uint64_t packet_bytes, Time measure) {
  Scenario scenario;
  scenario.name = "uniform-half-load";
  scenario.topology = {1, 4, 8, 1};
  PatternWorkload workload;
  workload.message_bytes = packet_bytes;
  workload.load = 0.5;
  workload.measure = measure;
  scenario.workload = workload;
  return scenario;
}

// Four supernodes, whole packets as fast as the HFIs take them, over links whose buffers hold one
// packet: less than LL and D need for their credit round trip, and a packet that waits at a slower
// link gives its slots back more slowly than the faster link before it fills them. A packet fits
// its buffer, so that a run never ends because flits have yet to arrive; what ends one early is a
// credit.
inline Scenario TightBuffers(std::uint64_t packets_per_hub) {
  Scenario scenario;
  scenario.name = "tight-buffers";
  scenario.topology = {4, 4, 8, 4};
  for (LinkParameters* link :
       {&scenario.parameters.ll, &scenario.parameters.lr, &scenario.parameters.d}) {
    link->buffer_flits = 16;
  }
  PatternWorkload workload;
  workload.load = 0;
  workload.count = packets_per_hub;
  scenario.workload = workload;
  return scenario;
}

}  // namespace percs::bench
