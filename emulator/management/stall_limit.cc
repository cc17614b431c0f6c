#include "emulator/management/stall_limit.h"

#include <algorithm>

#include "emulator/base/payload.h"
#include "fmt/format.h"

namespace percs {
namespace {

// A packet is under way, then the credit that the next one waits for; or a flit is replayed; and
// the HFIs give what they hold to W.
Time LongestStep(const P7ihParameters& p, bool infiniband, Time longest_wire,
                 const std::vector<FaultSpec>& faults, bool corrupted) {
  const bool lanes_lost = std::any_of(faults.begin(), faults.end(), [](const FaultSpec& f) {
    return f.kind == FaultKind::kLaneLoss;
  });
  Time step = 0, latency = 0;
  for (const LinkClass c :
       {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi, LinkClass::kIb}) {
    const LinkParameters& link = p.link(c);
    const Time slower = lanes_lost ? (link.lanes + link.lanes_min - 1) / link.lanes_min : 1;
    step = std::max(step, kPacketFlitsMax * link.flit_time * slower + link.wire);
  }
  for (const FaultSpec& fault : faults) latency += fault.latency;
  const Time crossing = infiniband ? std::max(p.isr_latency, p.ib_crossbar) : p.isr_latency;
  const Time rounds = corrupted && p.link_replay ? p.replay_limit : 0;
  const Time ejected = kHfiPorts * p.hfi.buffer_flits * p.w_flit_time;
  return (1 + rounds) * (2 * (crossing + step + longest_wire + latency) + p.credit_processing) +
         ejected;
}

}  // namespace

absl::Status CheckStallLimit(const P7ihParameters& parameters, bool infiniband, Time longest_wire,
                             const std::vector<FaultSpec>& faults) {
  const bool corrupted = std::any_of(faults.begin(), faults.end(),
                                     [](const FaultSpec& f) { return CorruptsFlits(f.kind); });
  const Time longest = LongestStep(parameters, infiniband, longest_wire, faults, corrupted);
  const Time limit = parameters.stall_limit;
  if (limit > longest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("stall_limit = {}, but a packet and the credit for the next one may take 2 x "
                  "({} flits and the wire) + credit_processing{}, and what the HFIs of a hub hold "
                  "{} flits at w_rate, up to {} on this machine, which would be reported as a "
                  "deadlock; write more than that",
                  FormatTime(limit), kPacketFlitsMax,
                  corrupted ? ", as many times as replay_limit if it is corrupted" : "",
                  kHfiPorts * parameters.hfi.buffer_flits, FormatTime(longest)));
}

}  // namespace percs
