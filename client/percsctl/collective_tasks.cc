// percsctl collective: one collective among tasks of nodes in the loop of paper 003, by sizes.
#include <fmt/format.h>

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

// The time of a size goes by its packets, and there is a least time.
class SizesProgress {
 public:
  SizesProgress(const std::vector<std::uint64_t>& sizes, bool always)
      : sizes_(sizes), line_(always) {
    for (const std::uint64_t bytes : sizes) all_ += Work(bytes);
  }
  void Show(std::uint64_t calls) {
    line_.Show(fmt::format("size {} ({} of {}), {}", FormatBytes(sizes_[next_]), next_ + 1,
                           sizes_.size(), Counted(calls, "call")),
               done_ / all_);
  }
  void Next() { done_ += Work(sizes_[next_++]); }
  void Clear() { line_.Clear(); }

 private:
  static double Work(std::uint64_t bytes) { return 4096 + static_cast<double>(bytes); }
  const std::vector<std::uint64_t>& sizes_;
  ProgressLine line_;
  std::size_t next_ = 0;
  double all_ = 0, done_ = 0;
};

absl::StatusOr<RunResult> Measure(const CollectiveArguments& a, std::uint64_t bytes,
                                  SizesProgress& progress) {
  CollectiveWorkload w = a.tasks;
  w.operation = a.operation;
  w.algorithm = a.algorithm;
  w.bytes = bytes;
  RunOptions options;
  options.progress = [&](const RunProgress&) { progress.Show(w.iterations); };
  options.cancelled = [] { return InterruptGuard::raised(); };
  SettlingCalls settling;
  while (true) {
    w.iterations = a.iterations > 0 ? a.iterations : settling.calls();
    auto run = MeasureCollective(w, options);
    if (!run.ok() || a.iterations > 0 || settling.Settled(run->collective.Nanoseconds()))
      return run;
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
  SizesProgress progress(sizes, a.progress);
  std::vector<Measured> all;
  for (const std::uint64_t bytes : sizes) {
    auto run = Measure(a, bytes, progress);
    if (!run.ok()) return FromStatus(run.status());
    all.push_back({bytes, *std::move(run)});
    progress.Next();
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
