// Messages between windows of two hubs, measured as the OSU and Intel MPI benchmarks measure them:
// programs of windows on an otherwise idle machine, timed in virtual time (docs/hfi.md has the
// arithmetic).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "emulator/sim/run.h"

namespace percs {

enum class PerfFormat : std::uint8_t { kImmediate, kFifo, kRdma };
inline constexpr int kPerfFormats = 3;
const char* PerfFormatName(PerfFormat format);

// The longest message of each format: less than a cache line; as many packets as a window may have
// under way; as much as memory allows for a window of 64 messages that lie in one place.
std::uint64_t PerfBytesMax(PerfFormat format);

struct PerfPoint {
  std::uint64_t bytes = 0;  // of a message
  Time latency = 0;         // half the round trip of a message that goes back and forth
  Time latency_min = 0, latency_max = 0;  // of single round trips, halved
  double bandwidth = 0;                   // bytes per second, one way, several messages under way
  double bidirectional = 0;               // ... both ways at once, the sum
  double rate = 0;                        // messages per second, one way
};

// What is asked of MeasurePoint.
struct PerfOptions {
  PerfFormat format = PerfFormat::kRdma;
  std::uint64_t iterations = 20;  // of each loop, after one that warms up
  std::uint64_t in_flight =
      64;  // messages under way; fewer if a window cannot have so many packets
};

// The machine is that of `machine`; its workload is replaced. INVALID_ARGUMENT for nodes that are
// no hubs, or the same, for a message that is too long for the format or empty (RDMA), and for no
// iterations; INTERNAL if an operation failed.
absl::StatusOr<PerfPoint> MeasurePoint(const Scenario& machine, NodeId from, NodeId to,
                                       std::uint64_t bytes, const PerfOptions& options);
// Round trips of single messages, one after the other.
absl::StatusOr<std::vector<Time>> PingWindows(const Scenario& machine, NodeId from, NodeId to,
                                              std::uint64_t bytes, std::uint64_t count, Time period,
                                              PerfFormat format);

}  // namespace percs
