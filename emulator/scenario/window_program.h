// Programs that use windows, as a scenario writes them: one step after the other on one hub,
// operations of windows and waiting for what comes back.
#pragma once

#include <string>
#include <vector>

#include "emulator/base/digest.h"
#include "emulator/base/random.h"
#include "emulator/scenario/window_operation.h"

namespace percs {

// Bytes that tell their place and `seed`.
inline std::vector<std::uint8_t> PatternBytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(Mix64(seed * 1'000'003 + i / 8) >> i % 8 * 8);
  }
  return bytes;
}

struct WindowStep {
  enum class Kind : std::uint8_t {
    kOperation,      // issue it; `wait`: continue when it has ended
    kAwaitAll,       // until every operation has ended
    kAwaitReceived,  // until `count` packets have come, and give their slots back
    kAwaitNotified,  // until `count` notifications have come
    kCompute,        // for `time`
    kAt,             // until `time` of the run, if that is still to come
    kMark,           // note the time
    kRepeat,         // the `steps` steps before this one, until they have been done `count` times
  };
  Kind kind = Kind::kOperation;
  // Its window, if kAnyWindow, is the one that the program reserved last; its job, if 0, the
  // program's.
  WindowOperation operation;
  bool wait = true;
  WindowStatus expect = WindowStatus::kOk;
  bool any_status = false;  // whatever comes is right
  bool or_ok = false;       // kOk is right, too
  // What the completion (read_memory), or every packet that has come, has to bring; empty:
  // anything.
  std::vector<std::uint8_t> expect_data;
  std::vector<std::uint64_t> expect_values;  // of an atomic, likewise
  bool keep_values = false;                  // in the result
  bool keep_slots = false;                   // received packets stay in the FIFO
  std::uint64_t count = 1;
  std::uint64_t steps = 1;
  Time time = 0;
};

struct WindowProgram {
  std::string name;
  NodeId node = 0;
  JobKey job = 1;
  std::vector<WindowStep> steps;
};

struct WindowWorkload {
  std::vector<WindowProgram> programs;
};

// What came of one program.
struct WindowProgramResult {
  std::uint32_t program = 0;  // in the order of the workload
  std::string name;
  NodeId node = 0;
  std::uint64_t operations = 0;  // that ended
  std::uint64_t wrong = 0;       // that ended with another status, data or values than expected
  std::uint64_t received = 0;    // packets
  std::string problem;           // of the first one that was wrong
  bool ended = false;            // all steps are done
  Time finished = 0;
  std::vector<Time> marks;
  std::vector<std::uint64_t> values;  // that were to be kept

  template <typename Stream>
  void Fold(Stream& digest) const {
    digest.Add(program), digest.Add(operations), digest.Add(wrong), digest.Add(received);
    digest.Add(static_cast<std::uint64_t>(finished));
    for (const Time mark : marks) digest.Add(static_cast<std::uint64_t>(mark));
    for (const std::uint64_t value : values) digest.Add(value);
  }
};

}  // namespace percs
