// When a hub under synthetic traffic offers its next message: at random, in slots, or in bursts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/base/random.h"
#include "emulator/base/time.h"
#include "emulator/scenario/scenario.h"

namespace percs {

// -ln(u) for u in (0, 1], from +, * and / only: the same bits on every host, as the digest needs.
double NegativeLog(double u);

// Gaps between messages are drawn from the exponential distribution, so that a hub is a Poisson
// source of the pattern's load. With bursts it is a two-state (on-off) source: a burst has a
// geometric number of messages, `burst_messages` on average, which come at `burst_load`; the pause
// after it makes the mean load that of the pattern. A Bernoulli source decides in each flit time of
// W, with the same probability, whether a message comes: gaps are whole slots, of geometric
// distribution (W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks,
// section 24.2).
class InjectionProcess {
 public:
  // `w_flit_time`: of the HFI; load 1.0 is one flit in it. REQUIRES: load above 0, and with bursts
  // below burst_load; of a Bernoulli source no bursts, and a mean gap of one slot at least.
  InjectionProcess(const PatternWorkload& workload, Time w_flit_time);
  // To the next message; at least 1 ps, and of a Bernoulli source one slot. One draw, and at the
  // end of a burst one before that.
  Time Gap(RandomStream& random) {
    const double mean = NextMean(random);
    return GapOf(mean, NegativeLog(random.Unit()));
  }
  // The same in two steps, so that the logarithms of several gaps are computed side by side.
  double NextMean(RandomStream& random) {
    if (per_message_ == 0) return gap_ps_;
    if (left_ == 0) return BeginBurst(random);
    --left_;
    return gap_ps_;
  }
  Time GapOf(double mean, double negative_log) const {
    if (slot_ > 0) return slot_ * (1 + static_cast<Time>(negative_log * slots_per_log_));
    return std::max<Time>(1, static_cast<Time>(mean * negative_log));
  }

 private:
  double BeginBurst(RandomStream& random);  // returns the mean pause before it

  double gap_ps_ = 0;         // mean, within a burst if there are bursts
  double pause_ps_ = 0;       // mean, between bursts
  Time slot_ = 0;             // 0: no Bernoulli source
  double slots_per_log_ = 0;  // 1 / -ln of the probability that a slot is empty
  double per_message_ = 0;    // -ln of the probability that a burst goes on; 0: no bursts
  std::uint64_t left_ = 0;    // messages of this burst
};

// Mean time between messages of a load, in ps: inside a burst, and between two bursts (0 without).
struct MeanGaps {
  double message_ps = 0, pause_ps = 0;
};
MeanGaps MeanGapsOf(const PatternWorkload& workload, Time w_flit_time);

}  // namespace percs
