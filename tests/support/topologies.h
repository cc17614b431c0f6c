#pragma once

#include "emulator/topology/topology.h"
#include "gtest/gtest.h"

namespace percs {

// REQUIRES: the spec is legal; the test fails otherwise.
inline Topology Make(const TopologySpec& spec) {
  auto topology = Topology::Create(spec);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *topology;
}

}  // namespace percs
