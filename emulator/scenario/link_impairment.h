// What goes wrong on one direction of a link and does not by itself take it down (docs/semantics.md
// rule 18).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "emulator/base/time.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"

namespace percs {

struct LinkImpairment {
  enum class Kind : std::uint8_t {
    kErrorRate,    // from now on a transmitted flit is corrupted with probability `flit_error_rate`
    kCorruptNext,  // the next `count` transmissions are corrupted; 0: none of those ordered before
                   // any more
    kLanesLost,    // `count` lanes do not work, spares included
    kLatency,      // what is sent takes `latency` longer
  };
  Time at = 0;
  LinkEnd sender;  // the direction: this end as an output
  Kind kind = Kind::kErrorRate;
  double flit_error_rate = 0;
  std::uint32_t count = 0;
  Time latency = 0;  // not negative, at most kLatencyMax
};
inline constexpr Time kLatencyMax = kSecond;

// Probability that a flit of 1024 bits has at least one wrong one.
double FlitErrorRate(double bit_error_rate);
// INVALID_ARGUMENT for a link that is not there, a rate that is no probability, more lanes than
// there are, a latency out of range.
absl::Status CheckImpairment(const LinkImpairment& impairment, const Topology& topology,
                             const P7ihParameters& parameters);

}  // namespace percs
