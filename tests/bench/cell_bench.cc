// The Cell blade in process: barriers, broadcasts and DMA streams.
#include <benchmark/benchmark.h>

#include "emulator/cell/collectives/measure.h"
#include "emulator/experiments/cell_probes.h"

namespace percs::cell {
namespace {

void Loop(benchmark::State& state, CollectiveLoop loop, std::uint64_t iterations) {
  loop.iterations = iterations;
  std::uint64_t operations = 0, calls = 0;
  for (auto _ : state) {
    const auto timing = MeasureCollective(*ParametersOfBlade("QS20"), loop);
    if (!timing.ok() || timing->wrong != 0) {
      state.SkipWithError("the loop failed");
      return;
    }
    operations += timing->blade.stats.operations;
    calls += iterations;
  }
  state.counters["spe_operations"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
  state.counters["calls"] =
      benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kIsRate);
}

// Argument: the Algorithm. One iteration is 10,000 barriers of 16 SPEs.
void BM_CellBarrier(benchmark::State& state) {
  CollectiveLoop loop;
  loop.spec.algorithm = static_cast<Algorithm>(state.range(0));
  Loop(state, loop, 10'000);
}
BENCHMARK(BM_CellBarrier)
    ->Arg(static_cast<int>(Algorithm::kAllToOneBlade))
    ->Arg(static_cast<int>(Algorithm::kPairwise))
    ->Unit(benchmark::kMillisecond);

// One million 16-SPE barriers, as in the paper's loop.
void BM_CellMillionBarriers(benchmark::State& state) {
  CollectiveLoop loop;
  loop.spec.algorithm = Algorithm::kAllToOneBlade;
  Loop(state, loop, 1'000'000);
}
BENCHMARK(BM_CellMillionBarriers)->Iterations(1)->Unit(benchmark::kSecond);

void BM_CellBroadcast16KiB(benchmark::State& state) {
  CollectiveLoop loop;
  loop.collective = Collective::kBroadcast;
  loop.spec = {Algorithm::kTreeBlade, 2};
  loop.bytes = kDmaBytesMax;
  Loop(state, loop, 100);
}
BENCHMARK(BM_CellBroadcast16KiB)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace percs::cell
BENCHMARK_MAIN();
