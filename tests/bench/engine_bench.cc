// The engine in process, and the parts that its speed rests on.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/engine/event_queue.h"
#include "emulator/sim/run.h"
#include "tests/bench/scenarios.h"
#ifdef PERCS_BENCH_CLIENT
#include "client/lib/executor.h"
#endif
#ifdef PERCS_BENCH_DAEMON
#include "daemon/link/codec.h"
#endif

namespace percs {
namespace {

constexpr Time kMeasured = 100 * kMicrosecond;

// Counts what the runs moved; false if one failed.
bool RunOnce(benchmark::State& state, const Scenario& scenario, const RunOptions& options,
             RunResult* sum) {
  auto result = RunScenario(scenario, options);
  if (!result.ok()) {
    state.SkipWithError(result.status().ToString().c_str());
    return false;
  }
  sum->flit_hops += result->flit_hops;
  sum->packet_hops += result->packet_hops;
  sum->hfi_flits += result->hfi_flits;
  return true;
}

void Report(benchmark::State& state, const RunResult& sum) {
  const auto rate = [](std::uint64_t n) {
    return benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsRate);
  };
  state.counters["flit_hops"] = rate(sum.flit_hops);
  state.counters["packet_hops"] = rate(sum.packet_hops);
  state.counters["hfi_flits"] = rate(sum.hfi_flits);
}

// Argument: flits per packet.
void BM_UniformHalfLoad(benchmark::State& state) {
  const Scenario scenario =
      bench::UniformAtHalfLoad(static_cast<std::uint64_t>(state.range(0)) * kFlitBytes, kMeasured);
  RunResult sum;
  for (auto _ : state) {
    if (!RunOnce(state, scenario, {}, &sum)) return;
  }
  Report(state, sum);
}
BENCHMARK(BM_UniformHalfLoad)->ArgName("flits")->Arg(16)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_TightBuffers(benchmark::State& state) {
  const Scenario scenario = bench::TightBuffers(200);
  RunResult sum;
  for (auto _ : state) {
    if (!RunOnce(state, scenario, {}, &sum)) return;
  }
  Report(state, sum);
}
BENCHMARK(BM_TightBuffers)->Unit(benchmark::kMillisecond);

#ifdef PERCS_BENCH_CLIENT
// Arguments: threads, flits per packet. In wall time.
void BM_Threads(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  const Scenario scenario =
      bench::UniformAtHalfLoad(static_cast<std::uint64_t>(state.range(1)) * kFlitBytes, kMeasured);
  ThreadPool pool(threads);
  const Executor executor = pool.executor();
  RunOptions options;
  options.threads = pool.threads();
  options.executor = &executor;
  RunResult sum;
  for (auto _ : state) {
    if (!RunOnce(state, scenario, options, &sum)) return;
  }
  Report(state, sum);
}
BENCHMARK(BM_Threads)
    ->ArgNames({"threads", "flits"})
    ->ArgsProduct({{1, 2}, {16, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
#endif

// The hold model: take the earliest event, push one a little later. Argument: events pending.
void BM_EventQueueHold(benchmark::State& state) {
  RandomStream random(1, "bench/queue");
  EventNodes nodes;
  EventQueue queue(&nodes);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    queue.Push(static_cast<Time>(random.Unit() * 100'000),
               EventKey(EventClass::kFlit, static_cast<int>(i % kPorts), 0, 0), 0);
  }
  std::vector<Time> ahead(1024);
  for (Time& t : ahead) t = 1 + static_cast<Time>(random.Unit() * 200'000);
  std::size_t i = 0;
  for (auto _ : state) {
    const Event event = queue.Pop();
    queue.Push(event.time + ahead[i++ & 1023], event.key, event.data);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EventQueueHold)->ArgName("pending")->Arg(16)->Arg(256)->Arg(4096);

// All links of a large machine fail at one instant, and their alerts arrive together.
void BM_EventQueueCrowd(benchmark::State& state) {
  EventNodes nodes;
  EventQueue queue(&nodes);
  Time now = 0;
  for (auto _ : state) {
    now += 1'000;
    for (std::int64_t i = 0; i < state.range(0); ++i)
      queue.Push(now, EventKey(EventClass::kCommand, 0, 0, static_cast<std::uint64_t>(i)), 0);
    while (!queue.empty()) benchmark::DoNotOptimize(queue.Pop());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EventQueueCrowd)->ArgName("events")->Arg(16)->Arg(1024)->Arg(65536);

#ifdef PERCS_BENCH_DAEMON
// One window's crossings between two processes: whole packets and the credits for as many.
Outbox OneWindow(std::int64_t packets) {
  Outbox outbox;
  for (std::int64_t i = 0; i < packets; ++i) {
    FlitRun run;
    run.arrival = 1'000'000 + 5'334 * i;
    run.spacing = 5'334;
    run.node = 3;
    run.port = static_cast<PortId>(i % 7);
    run.count = 16;
    run.tail = true;
    run.header.source = 1;
    run.header.destination = 3;
    run.header.bytes = 2048;
    run.header.flits = 16;
    run.header.sequence = 1000 + static_cast<std::uint64_t>(i);
    run.header.created = 900'000;
    run.header.path = 0x123456789abcdefull * static_cast<std::uint64_t>(i + 1);
    outbox.flits.push_back(run);
    outbox.credits.push_back({run.arrival, run.spacing, 3, run.port, 0, 16, 0});
  }
  return outbox;
}

// Argument: packets in the batch.
void BM_EncodeOutbox(benchmark::State& state) {
  const Outbox outbox = OneWindow(state.range(0));
  std::string bytes;
  for (auto _ : state) {
    bytes.clear();
    EncodeOutbox(outbox, &bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes_per_packet"] =
      static_cast<double>(bytes.size()) / static_cast<double>(state.range(0));
}
BENCHMARK(BM_EncodeOutbox)->ArgName("packets")->Arg(1)->Arg(64);

void BM_DecodeOutbox(benchmark::State& state) {
  std::string bytes;
  EncodeOutbox(OneWindow(state.range(0)), &bytes);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  OutboxDecoder decoder(64);
  Outbox outbox;
  for (auto _ : state) {
    outbox.Clear();
    if (absl::Status status = decoder.Decode({data, bytes.size()}, &outbox); !status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_DecodeOutbox)->ArgName("packets")->Arg(1)->Arg(64);
#endif

}  // namespace
}  // namespace percs

BENCHMARK_MAIN();
