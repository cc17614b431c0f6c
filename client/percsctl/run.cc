// percsctl run: a scenario from start to end inside this process.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "client/lib/checkpoint.h"
#include "client/lib/executor.h"
#include "client/lib/huge_pages.h"
#include "client/lib/interrupt.h"
#include "client/lib/route_file.h"
#include "client/lib/run_page.h"
#include "client/lib/scenario_file.h"
#include "client/lib/state_digest.h"
#include "client/percsctl/capture.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/report.h"
#include "client/percsctl/scenario_options.h"
#include "proto/process/replace_file.h"
#include "proto/process/version.h"
#include "proto/scenario/build.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/reader.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/trees.h"

namespace percs {
namespace {

constexpr int kThreadsMax = 256;
constexpr std::uint64_t kPerfettoPackets = 1000;  // of each source

struct RunArguments {
  std::string file, format;
  int threads = 1;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> settings;
  std::string routes;
  bool events = false, progress = false;
  std::string checkpoint, checkpoint_at;
  std::string perfetto, page;
  std::uint64_t perfetto_every = 1;
};

Outcome RunFailed(const absl::Status& status) {
  Outcome outcome = FromStatus(status);
  if (status.code() == absl::StatusCode::kFailedPrecondition) outcome.code = ExitCode::kDeadlock;
  return outcome;
}

// Holds virtual time back to its pace against the wall clock, for clock `live`.
class Pacer {
 public:
  explicit Pacer(const Pacing& pacing) : pace_(pacing.live ? pacing.pace : 0) {}
  bool active() const { return pace_ > 0; }
  void Await(Time now) const {
    if (!active()) return;
    const std::chrono::duration<double> due(static_cast<double>(now) / static_cast<double>(pace_));
    while (!InterruptGuard::raised() && std::chrono::steady_clock::now() - start_ < due) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  Time pace_;  // virtual time per wall second; 0: do not wait
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Where the run is at a virtual time that it passes.
absl::Status PrepareCheckpoint(const RunArguments& a, const ScenarioInput& input,
                               Checkpoint& checkpoint, RunOptions& options) {
  const auto at = ParseUserTime(a.checkpoint_at);
  if (!at.ok()) return at.status();
  if (at->wall) return absl::InvalidArgumentError("--checkpoint-at: a virtual time");
  checkpoint.versions.set_wire(kWireVersion);
  checkpoint.versions.set_format(kFormatVersion);
  checkpoint.versions.set_model(kModelVersion);
  checkpoint.versions.set_software(kSoftwareVersion);
  checkpoint.scenario = input.message;
  if (auto inlined = InlineFiles(&checkpoint.scenario, input.directory); !inlined.ok())
    return inlined;
  options.commands.push_back({at->time, [&checkpoint](Fabric& fabric, Time now) {
                                checkpoint.at = now;
                                checkpoint.digest = DeliveredDigest(fabric);
                                return absl::OkStatus();
                              }});
  return absl::OkStatus();
}

absl::Status KeepCheckpoint(const RunArguments& a, const Checkpoint& checkpoint) {
  if (!checkpoint.digest.empty()) return WriteCheckpoint(a.checkpoint, checkpoint);
  return absl::FailedPreconditionError(
      fmt::format("--checkpoint-at {}: the run stopped before that time (run.stop_at); no "
                  "checkpoint was written",
                  a.checkpoint_at));
}

absl::Status KeepTrace(const RunArguments& a, const Scenario& scenario, const Topology& topology,
                       std::vector<TraceEvent> events, const NodeSlices& slices) {
  TracedPackets packets;
  TracedToProto(MergeTrace(scenario.parameters, std::move(events)), topology, &packets);
  return ReplaceFile(a.perfetto, AsPerfetto(packets, slices, /*scale=*/1));
}

// A paced run has few windows per second, and its windows are short, as each one waits for its
// time. So the progress line is shown by wall time, not by a number of windows, and packets are
// counted only when it is shown.
void FollowPace(const Pacer& pacer, LocalRunProgress& progress, RunOptions& options) {
  options.progress = nullptr;
  options.watch = [&, watch = std::move(options.watch)](const Fabric& fabric, std::uint64_t windows,
                                                        bool ended) {
    if (watch) watch(fabric, windows, ended);
    if (progress.Due()) progress.Show(fabric.now(), fabric.packets_delivered());
    if (!ended) pacer.Await(fabric.now());
    return true;
  };
}

// Null: none is asked for.
absl::StatusOr<std::unique_ptr<RunPage>> StartPage(const RunArguments& a, const Topology& topology,
                                                   RunOptions& options) {
  if (a.page.empty()) return nullptr;
  auto page = RunPage::Start(a.page, topology);
  if (!page.ok()) return page.status();
  fmt::print(stderr, "page: {}\n", (*page)->link());
  options.watch = [shown = page->get()](const Fabric& fabric, std::uint64_t windows, bool ended) {
    return shown->Watch(fabric, windows, ended);
  };
  return page;
}

Outcome Report(const RunArguments& a, const Topology& topology, RunReport report) {
  for (const TreeStatus& tree : report.result.trees)
    TreeToProto(tree, topology, false, report.trees.Add());
  for (const FaultStatus& fault : report.result.faults)
    FaultToProto(fault, report.result, topology, report.faults.Add());
  return PrintReport(report, topology, IsJson(a.format));
}

Outcome Run(const RunArguments& a) {
  const auto input = LoadScenario(a.file, a.settings, a.seed);
  if (!input.ok()) return FromStatus(input.status());
  if (auto status = CheckLoaded(a.file, input->scenario, RunsOn::kProcess); !status.ok())
    return FromStatus(status);
  const auto topology = Topology::Create(input->scenario.topology);
  if (!topology.ok()) return FromStatus(topology.status());

  InterruptGuard interrupt;
  ThreadPool pool(a.threads);
  const Executor executor = pool.executor();
  RunOptions options;
  const auto page = StartPage(a, *topology, options);
  if (!page.ok()) return FromStatus(page.status());
  LocalRunProgress progress(input->scenario, topology->nodes(), a.progress, options);
  constexpr std::size_t kBytesPerNode = 768 << 10;  // with full buffers, docs/benchmarks.md
  ExpectMemory(topology->nodes() * kBytesPerNode);
  const Pacer pacer(PacingOf(input->message));
  options.threads = pool.threads();
  options.executor = &executor;
  if (pacer.active()) FollowPace(pacer, progress, options);
  options.cancelled = [] { return InterruptGuard::raised(); };
  RouteFile routes;
  if (!a.routes.empty()) {
    auto file = ReadRouteFile(a.routes);
    if (!file.ok()) return FromStatus(file.status());
    routes = *std::move(file);
    if (auto status = CheckRouteFile(routes, *topology); !status.ok()) return FromStatus(status);
    options.tables = &routes.tables;
  }
  Checkpoint checkpoint;
  if (!a.checkpoint.empty()) {
    if (auto status = PrepareCheckpoint(a, *input, checkpoint, options); !status.ok())
      return FromStatus(status);
  }
  std::vector<TraceEvent> traced;
  std::vector<RankSlice> ranks;
  std::vector<NodeDmaSlice> dma;
  if (!a.perfetto.empty()) {
    options.rank_slices = &ranks;
    options.dma_slices = &dma;
    options.trace.emplace().count = kPerfettoPackets;
    options.trace->every = a.perfetto_every;
    options.traced = &traced;
  }
  auto result = RunScenario(input->scenario, options);
  const double wall_seconds = progress.wall_seconds();
  progress.Clear();
  if (!result.ok()) return RunFailed(result.status());
  if (!a.checkpoint.empty()) {
    if (auto status = KeepCheckpoint(a, checkpoint); !status.ok()) return FromStatus(status);
  }
  if (!a.perfetto.empty()) {
    if (auto status = KeepTrace(a, input->scenario, *topology, std::move(traced),
                                {NamedRanks(ranks, *topology), NamedDma(dma, *topology)});
        !status.ok())
      return FromStatus(status);
  }
  RunReport report{*std::move(result), wall_seconds,
                   Counted(static_cast<std::uint64_t>(pool.threads()), "thread")};
  report.show_events = a.events;
  return Report(a, *topology, std::move(report));
}

}  // namespace

CommandBody AddRun(CLI::App& app) {
  auto a = std::make_shared<RunArguments>();
  app.add_option("FILE", a->file, "Scenario: .yaml, .json or .textproto")->required();
  app.add_option("--threads", a->threads,
                 "Threads to run on, at most one per core; the results are the same for any number")
      ->check(CLI::Range(1, kThreadsMax))
      ->capture_default_str();
  AddSettingOptions(app, a->settings, a->seed);
  auto* at = app.add_option("--checkpoint-at", a->checkpoint_at,
                            "Virtual time at which to write a checkpoint");
  at->needs(app.add_option("--checkpoint", a->checkpoint,
                           "Folder of the checkpoint; `percsctl restore` reads it")
                ->needs(at));
  app.add_option("--routes", a->routes,
                 "Start with these route tables, written by `routes dump`, if they pass the check");
  auto* perfetto =
      app.add_option("--perfetto", a->perfetto,
                     "Also write packets as a trace for Perfetto, 1,000 of each source");
  app.add_option("--perfetto-every", a->perfetto_every, "Write every Nth packet of a source")
      ->check(CLI::PositiveNumber)
      ->needs(perfetto)
      ->capture_default_str();
  app.add_option("--page", a->page,
                 "HOST:PORT of a page with the run for browsers, as long as it lasts (port 0: any "
                 "free port)");
  app.add_flag("--events", a->events, "Also print events: faults, alerts, reroutes, trees");
  AddProgressOption(app, a->progress);
  AddFormatOption(app, a->format);
  return [a] { return Run(*a); };
}

}  // namespace percs
