// percsctl collective: one collective among tasks of nodes in the loop of paper 003, by sizes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/lib/interrupt.h"
#include "client/percsctl/collective.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/report.h"
#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

using Json = nlohmann::json;

// A measurement of at most this many calls is not preceded by one call for the estimate.
constexpr std::uint64_t kFewCalls = 10;

struct Measured {
  std::uint64_t bytes = 0;
  RunResult run;
  double Microseconds(Time total) const {
    return static_cast<double>(total) / static_cast<double>(run.collective.iterations) /
           kMicrosecond;
  }
  double mean() const { return run.collective.Nanoseconds() / 1000; }
  double fastest() const { return Microseconds(run.collective.fastest); }
  double slowest() const { return Microseconds(run.collective.slowest); }
};

std::string Title(const CollectiveArguments& a) {
  std::string title(OperationName(a.operation));
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

Json ToJson(const CollectiveArguments& a, const std::vector<Measured>& all) {
  const TaskPlacement& p = a.tasks.placement;
  Json rows = Json::array();
  for (const Measured& m : all) {
    Json row = CollectiveJson(m.run.collective);
    row["bytes"] = m.bytes;
    row["digest"] = m.run.digest.ToString();
    rows.push_back(std::move(row));
  }
  return {{"operation", std::string(OperationName(a.operation))},
          {"algorithm", a.algorithm.empty() ? "p2p" : a.algorithm},
          {"nodes", p.nodes},
          {"tasks", p.tasks()},
          {"tasks_per_node", p.tasks_per_node},
          {"threads_per_core", p.threads_per_core},
          {"mapping", p.mapping == ThreadMapping::kCore ? "core" : "cpu"},
          {"iterations", a.iterations > 0 ? Json(a.iterations) : Json()},
          {"rows", std::move(rows)}};
}

std::string AsTable(const CollectiveArguments& a, const std::vector<Measured>& all) {
  const TaskPlacement& p = a.tasks.placement;
  std::string text =
      fmt::format("{} ({}) among {} on {}; times virtual\n", OperationName(a.operation),
                  a.algorithm.empty() ? "p2p" : a.algorithm, Counted(p.tasks(), "task"),
                  Counted(p.nodes, "node"));
  std::vector<std::string> header = {"size", "calls", "mean us", "fastest us", "slowest us"};
  for (const LevelTime& l : all.front().run.collective.levels) header.push_back(l.level + " us");
  Table table(std::move(header), "r");
  for (const Measured& m : all) {
    std::vector<std::string> row = {FormatBytes(m.bytes), FormatCount(m.run.collective.iterations),
                                    fmt::format("{:.3f}", m.mean()),
                                    fmt::format("{:.3f}", m.fastest()),
                                    fmt::format("{:.3f}", m.slowest())};
    for (const LevelTime& l : m.run.collective.levels) {
      row.push_back(l.calls == 0
                        ? "-"
                        : fmt::format("{:.3f}", static_cast<double>(l.total) /
                                                    static_cast<double>(l.calls) / kMicrosecond));
    }
    table.Add(std::move(row));
  }
  text += table.ToString();
  if (p.tasks() == 1)
    text += "one task has no partner, so nothing is sent; give --nodes or --tasks for more\n";
  if (a.tasks.verified && a.operation != Operation::kBarrier)
    text += "data correct after every call\n";
  return text + fmt::format("digest {}\n", all.back().run.digest.ToString());
}

// The columns of the OSU micro-benchmarks with -f.
std::string AsOsu(const CollectiveArguments& a, const std::vector<Measured>& all) {
  const bool sized = a.operation != Operation::kBarrier;
  std::string text = fmt::format("# {} Latency Test, {} tasks on {} nodes, virtual time\n",
                                 Title(a), a.tasks.placement.tasks(), a.tasks.placement.nodes);
  text += fmt::format("{:<10}{:>18}{:>18}{:>18}{:>12}\n", sized ? "# Size" : "#", "Avg Latency(us)",
                      "Min Latency(us)", "Max Latency(us)", "Iterations");
  for (const Measured& m : all) {
    text += fmt::format("{:<10}{:>18.2f}{:>18.2f}{:>18.2f}{:>12}\n",
                        sized ? fmt::format("{}", m.bytes) : "", m.mean(), m.fastest(), m.slowest(),
                        m.run.collective.iterations);
  }
  return text;
}

// The columns of the Intel MPI Benchmarks.
std::string AsImb(const CollectiveArguments& a, const std::vector<Measured>& all) {
  const std::string rule = "#" + std::string(64, '-') + "\n";
  const bool sized = a.operation != Operation::kBarrier;
  std::string text =
      rule +
      fmt::format("# Benchmarking {}\n# #processes = {}\n", Title(a), a.tasks.placement.tasks()) +
      rule;
  if (sized) text += fmt::format("{:>13}", "#bytes");
  text += fmt::format("{:>13}{:>13}{:>13}{:>13}\n", "#repetitions", "t_min[usec]", "t_max[usec]",
                      "t_avg[usec]");
  for (const Measured& m : all) {
    if (sized) text += fmt::format("{:>13}", m.bytes);
    text += fmt::format("{:>13}{:>13.2f}{:>13.2f}{:>13.2f}\n", m.run.collective.iterations,
                        m.fastest(), m.slowest(), m.mean());
  }
  return text;
}

// The time of a size is proportional to its packets, with a minimum.
double Work(std::uint64_t bytes) { return 4096 + static_cast<double>(bytes); }

// The virtual time of one call in ps, from which progress is estimated. It is 0 if the call cannot
// be measured, or if no progress is shown.
double TimeOfACall(CollectiveWorkload w, const MeasurementsProgress& progress) {
  if (!progress.shows() || w.warm_up + w.iterations <= kFewCalls) return 0;
  w.warm_up = 0;
  w.iterations = 1;
  RunOptions options;
  options.cancelled = [] { return InterruptGuard::raised(); };
  const auto run = MeasureCollective(w, options);
  return run.ok() ? static_cast<double>(run->virtual_time) : 0;
}

absl::StatusOr<RunResult> Measure(const CollectiveArguments& a, std::size_t which,
                                  const std::vector<std::uint64_t>& sizes,
                                  MeasurementsProgress& progress) {
  CollectiveWorkload w = a.tasks;
  w.operation = a.operation;
  w.algorithm = a.algorithm;
  w.bytes = sizes[which];
  RunOptions options;
  options.progress = [&](const RunProgress& p) {
    progress.Show(fmt::format("size {} ({} of {}), {}", FormatBytes(w.bytes), which + 1,
                              sizes.size(), Counted(w.iterations, "call")),
                  p.now);
  };
  options.cancelled = [] { return InterruptGuard::raised(); };
  SettlingCalls settling;
  w.iterations = a.iterations > 0 ? a.iterations : settling.calls();
  double of_call = TimeOfACall(w, progress);
  for (bool first = true;; first = false) {
    // The first round never settles; each later one is expected to be the last.
    const std::uint64_t next = a.iterations == 0 && first ? w.warm_up + 2 * w.iterations : 0;
    progress.StartRound(of_call * static_cast<double>(w.warm_up + w.iterations + next));
    auto run = MeasureCollective(w, options);
    if (!run.ok() || a.iterations > 0 || settling.Settled(run->collective.Nanoseconds()))
      return run;
    progress.EndRound(run->virtual_time);
    of_call =
        static_cast<double>(run->virtual_time) / static_cast<double>(w.warm_up + w.iterations);
    w.iterations = settling.calls();
  }
}

}  // namespace

Outcome MeasureAmongTasks(const CollectiveArguments& a) {
  std::vector<std::uint64_t> sizes = a.sizes;
  if (a.operation == Operation::kBarrier) {
    if (!sizes.empty()) return Outcome::Fail(ExitCode::kUsage, "a barrier has no --size");
    sizes = {0};
  }
  if (sizes.empty()) sizes = {CollectiveWorkload().bytes};
  InterruptGuard interrupt;
  std::vector<double> work(sizes.size());
  std::transform(sizes.begin(), sizes.end(), work.begin(), Work);
  MeasurementsProgress progress(std::move(work), a.progress);
  std::vector<Measured> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto run = Measure(a, i, sizes, progress);
    if (!run.ok()) return FromStatus(run.status());
    all.push_back({sizes[i], *std::move(run)});
    progress.NextMeasurement();
  }
  progress.Clear();
  if (IsJson(a.format)) {
    fmt::print("{}\n", ToJson(a, all).dump(2));
  } else {
    fmt::print("{}", a.format == "osu"   ? AsOsu(a, all)
                     : a.format == "imb" ? AsImb(a, all)
                                         : AsTable(a, all));
  }
  return Outcome::Ok();
}

}  // namespace percs
