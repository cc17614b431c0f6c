#include "emulator/workload/injection.h"

#include <bit>

#include "emulator/base/check.h"
#include "emulator/packet/packet.h"

namespace percs {

double NegativeLog(double u) {
  // u = m x 2^e with m in [1, 2); ln m by the series of atanh, which converges by 1/9 per term
  // here.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u);
  const int e = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  const double z = (m - 1.0) / (m + 1.0), z2 = z * z;
  // Divided by the compiler: thirteen divisions would cost more than all else here.
  static constexpr double kTerms[] = {1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
                                      1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,
                                      1.0 / 5,  1.0 / 3,  1.0};
  double sum = 0;
#pragma GCC unroll 13
  for (const double term : kTerms) sum = sum * z2 + term;
  return -(2.0 * z * sum + e * 0.69314718055994530942);
}

MeanGaps MeanGapsOf(const PatternWorkload& workload, Time w_flit_time) {
  const double flits = static_cast<double>(workload.message_bytes) / kFlitBytes;
  const double full = flits * static_cast<double>(w_flit_time), mean = full / workload.load;
  if (workload.burst_messages <= 1) return {mean, 0};
  const double within = full / workload.burst_load;
  const auto messages = static_cast<double>(workload.burst_messages);
  return {within, messages * mean - (messages - 1) * within};
}

InjectionProcess::InjectionProcess(const PatternWorkload& workload, Time w_flit_time) {
  const MeanGaps gaps = MeanGapsOf(workload, w_flit_time);
  gap_ps_ = gaps.message_ps;
  pause_ps_ = gaps.pause_ps;
  if (workload.injection == Injection::kBernoulli) {
    slot_ = w_flit_time;
    const double empty = 1.0 - static_cast<double>(w_flit_time) / gaps.message_ps;
    if (empty > 0) slots_per_log_ = 1.0 / NegativeLog(empty);
  }
  if (workload.burst_messages <= 1) return;
  per_message_ = NegativeLog(1.0 - 1.0 / static_cast<double>(workload.burst_messages));
  PERCS_CHECK(pause_ps_ > 0 && per_message_ > 0);
}

double InjectionProcess::BeginBurst(RandomStream& random) {
  left_ = static_cast<std::uint64_t>(NegativeLog(random.Unit()) / per_message_);
  return pause_ps_;
}

}  // namespace percs
