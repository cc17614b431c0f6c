// A machine that spoils what it can, for random programs of windows.
#pragma once

#include "emulator/base/random.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"

namespace percs::test {

inline constexpr Time kSpoiledFrom = 20 * kMicrosecond;

// Errors on every link, D links that flap, ways that differ from packet to packet. Several seeds,
// several machines.
inline Scenario Spoiled(Scenario scenario, std::uint64_t seed, double flit_error_rate = 0.01) {
  scenario.seed = seed;
  scenario.routing.rdma.mode = seed % 2 ? RouteMode::kHwDirectStriped : RouteMode::kHwDirect;
  const Topology topology = *Topology::Create(scenario.topology);
  RandomStream random(seed, "spoil");
  for (const LinkEnd& end : topology.Links()) {
    for (const LinkEnd& sender : {end, topology.Peer(end.node, end.port)}) {
      scenario.faults.push_back(SetErrorRate(0, sender, flit_error_rate));
    }
    if (random.Below(3) != 0) continue;
    Time at = kSpoiledFrom;
    for (int flap = 0; flap < 3; ++flap) {
      at += random.Below(30'000) * kNanosecond;
      scenario.faults.push_back(SetLinkDown(at, end));
      at += kMicrosecond + random.Below(10'000) * kNanosecond;
      scenario.faults.push_back(SetLinkUp(at, end));
    }
  }
  // Without replay a corrupted flit costs its packet.
  scenario.parameters.link_replay = seed % 3 != 0;
  scenario.reroute = false;
  scenario.parameters.retransmit_timeout = 5 * kMicrosecond;
  scenario.parameters.retransmit_tries = 12;
  return scenario;
}

}  // namespace percs::test
