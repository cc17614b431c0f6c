// The benchmark loop by itself: on a fabric as small as its nodes need, in process, to the end.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/sim/run.h"

namespace percs {

// Full drawers, then full supernodes, as many as the nodes need; between two supernodes one D link
// per hub. INVALID_ARGUMENT for none, and for more than 512 nodes.
absl::StatusOr<TopologySpec> FabricOf(std::uint32_t nodes);
absl::StatusOr<Scenario> CollectiveScenario(const CollectiveWorkload& workload);
// INTERNAL if a result was wrong or a check of the run failed.
absl::StatusOr<RunResult> MeasureCollective(const CollectiveWorkload& workload,
                                            const RunOptions& options = {},
                                            const P7ihParameters& parameters = {});

// The number of calls at which a mean time has settled: kFirstCalls, then twice the number, until
// the mean changes by at most kSettledChange of it, but no more than kCallsMax.
class SettlingCalls {
 public:
  static constexpr std::uint64_t kFirstCalls = 10, kCallsMax = 1000;
  static constexpr double kSettledChange = 0.005;

  std::uint64_t calls() const { return calls_; }
  // `mean` of calls() calls; false if they are to be measured again, as many as calls() says then.
  bool Settled(double mean);

 private:
  std::uint64_t calls_ = kFirstCalls;
  double last_ = 0;  // 0: nothing measured yet
};

}  // namespace percs
