// What an SPE's memory flow controller has under way at one time. It is read off the queue, and no
// counter: neither a result nor a digest has it.
#pragma once

#include <cstdint>
#include <vector>

namespace percs::cell {

// Commands under way between the SPE's local store and one unit of a bus.
struct DmaMove {
  std::uint8_t cell = 0, unit = 0;
  bool out = false;  // from the SPE; a signal goes out too
  std::uint8_t commands = 0;

  bool operator==(const DmaMove&) const = default;
};

struct SpeInFlight {
  std::uint8_t spe = 0;
  std::uint8_t queued = 0;  // commands that wait for earlier ones
  std::vector<DmaMove> moves = {};

  bool operator==(const SpeInFlight&) const = default;
};

}  // namespace percs::cell
