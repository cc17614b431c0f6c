// Short ways to say what is wrong with one link from a time on: each makes a fault without a name
// and without an end, which a later one for the same place replaces or ends
// (docs/semantics.md rule 23).
#pragma once

#include <cstdint>

#include "emulator/scenario/fault_spec.h"

namespace percs {

// Probability that a flit of 1024 bits has at least one wrong one.
double FlitErrorRate(double bit_error_rate);

FaultSpec SetLinkDown(Time at, LinkEnd link);
// Ends SetLinkDown; a link that replay gave up is retrained.
FaultSpec SetLinkUp(Time at, LinkEnd link);
// What `sender` sends is corrupted with this probability; 0: no longer.
FaultSpec SetErrorRate(Time at, LinkEnd sender, double flit_error_rate);
// The next transmissions of `sender` are corrupted, beside those that are still to be; 0: none.
FaultSpec SetCorruptNext(Time at, LinkEnd sender, std::uint32_t count);
// This many lanes on which `sender` sends are lost, spares included; 0: none.
FaultSpec SetLanesLost(Time at, LinkEnd sender, std::uint32_t count);
// What `sender` sends takes so much longer; 0: no longer than usual.
FaultSpec SetLatency(Time at, LinkEnd sender, Time latency);

}  // namespace percs
