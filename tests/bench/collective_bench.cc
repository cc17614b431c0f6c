// Collectives among the tasks of many nodes, in process.
#include <benchmark/benchmark.h>

#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

// 4,096 tasks on 128 hubs of four supernodes; one iteration is the paper's loop with 1,000 calls,
// results checked. Argument: 0 with CAUs between leaders, 1 with messages.
void BM_HybridAllreduce4096(benchmark::State& state) {
  CollectiveWorkload w;
  w.operation = Operation::kAllreduce;
  w.algorithm = state.range(0) == 0 ? "hybrid:cau" : "hybrid:p2p";
  w.placement = {.nodes = 128, .tasks_per_node = 32, .threads_per_core = 2};
  w.iterations = 1000;
  double nanoseconds = 0;
  for (auto _ : state) {
    const auto result = MeasureCollective(w);
    if (!result.ok() || result->collective.wrong != 0) {
      state.SkipWithError("the loop failed");
      return;
    }
    nanoseconds = result->collective.Nanoseconds();
  }
  state.counters["virtual_ns"] = nanoseconds;
}
BENCHMARK(BM_HybridAllreduce4096)->Arg(0)->Arg(1)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace percs

BENCHMARK_MAIN();
