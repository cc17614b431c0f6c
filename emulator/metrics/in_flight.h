// What a node has under way at one virtual time: operations of trees in its CAU, DMA commands in
// its SPEs. It is read off what the blocks hold, and no counter: neither a result nor a digest has
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/cell/dma_in_flight.h"
#include "emulator/cell/dma_log.h"
#include "emulator/packet/cau_types.h"

namespace percs {

// Packets of operations that a neighbour in the tree has not acknowledged.
struct TreePacketsInFlight {
  std::uint16_t neighbor = 0;  // vertex of the tree
  std::uint32_t packets = 0;

  bool operator==(const TreePacketsInFlight&) const = default;
};

// Of one vertex of a tree.
struct TreeInFlight {
  CauTreeId tree = 0;
  std::uint16_t vertex = 0;
  std::uint32_t held = 0;  // operands that wait here: others of their operations are not there
  std::vector<TreePacketsInFlight> sent = {};

  bool operator==(const TreeInFlight&) const = default;
};

// What an SPE of a node did by DMA.
struct NodeDmaSlice {
  NodeId node = 0;
  cell::DmaSlice slice;
};

struct InFlight {
  std::vector<TreeInFlight> trees = {};      // by vertex; those with something
  std::vector<cell::SpeInFlight> spes = {};  // ascending; likewise

  bool empty() const { return trees.empty() && spes.empty(); }
  bool operator==(const InFlight&) const = default;
};

}  // namespace percs
