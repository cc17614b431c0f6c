// Where an MPI rank is: ranks are the SPEs of the machine in order of triblade, blade, Cell, SPE.
// All of it is arithmetic: there is no table of processes (paper 004, Cell Messaging Layer).
#pragma once

#include <cstdint>

#include "emulator/roadrunner/parameters.h"

namespace percs::roadrunner {

using Rank = std::int32_t;

enum class Distance : std::uint8_t { kSelf, kChip, kBlade, kNode, kNetwork };
constexpr const char* DistanceName(Distance d) {
  constexpr const char* kNames[] = {"self", "chip", "blade", "node", "network"};
  return kNames[static_cast<int>(d)];
}

constexpr int NodeOf(Rank rank) { return rank / kSpesPerTriblade; }
constexpr int BladeOf(Rank rank) { return rank / cell::kSpes; }  // of the machine
constexpr int CellOf(Rank rank) {
  return rank / cell::kSpesPerCell;
}  // of the machine, and its Opteron core
constexpr int SpeOf(Rank rank) { return rank % cell::kSpes; }  // of the blade
constexpr int CellOnBlade(Rank rank) { return SpeOf(rank) / cell::kSpesPerCell; }

constexpr Distance DistanceOf(Rank a, Rank b) {
  return a == b                     ? Distance::kSelf
         : CellOf(a) == CellOf(b)   ? Distance::kChip
         : BladeOf(a) == BladeOf(b) ? Distance::kBlade
         : NodeOf(a) == NodeOf(b)   ? Distance::kNode
                                    : Distance::kNetwork;
}

}  // namespace percs::roadrunner
