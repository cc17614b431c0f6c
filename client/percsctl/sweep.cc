// percsctl sweep: a grid of scenarios, each run once and kept, as one table.

#include "client/percsctl/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "client/lib/executor.h"
#include "client/lib/interrupt.h"
#include "client/lib/process.h"
#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/gnuplot.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/screen.h"
#include "client/percsctl/sweep_slurm.h"
#include "proto/process/mutex.h"
#include "proto/process/replace_file.h"
#include "proto/scenario/build.h"

namespace percs {
namespace {

namespace fs = std::filesystem;

struct SweepArguments {
  std::string file, folder, format;
  std::vector<std::string> over, settings;
  std::optional<std::uint64_t> seed;
  std::uint64_t repeat = 1;
  int jobs = 1, threads = 1;
  bool plot = false, slurm = false;
  std::string part;  // "2/8": a task of a job array
};

struct GridPoint {
  SweepPoint of;
  std::uint64_t seed = 0;
  std::string file;  // where its row is kept, once it has been run
};

struct Grid {
  std::vector<SweepAxis> axes;
  std::vector<GridPoint> points;
};

absl::StatusOr<ScenarioInput> Load(const SweepArguments& a, const SweepPoint& point,
                                   std::optional<std::uint64_t> seed) {
  auto input = LoadScenario(a.file, a.settings, seed ? seed : a.seed, point.over);
  if (!input.ok()) return input.status();
  if (!seed) input->message.set_seed(input->scenario.seed + point.repeat);
  if (absl::Status status = CheckLoaded(a.file, input->scenario, RunsOn::kProcess); !status.ok())
    return status;
  return input;
}

// Every point is checked before the first one is run.
absl::StatusOr<Grid> MakeGrid(const SweepArguments& a) {
  Grid grid;
  for (const std::string& text : a.over) {
    auto axis = ParseSweepAxis(text);
    if (!axis.ok()) return axis.status();
    grid.axes.push_back(*std::move(axis));
  }
  auto points = SweepPoints(grid.axes, a.repeat);
  if (!points.ok()) return points.status();
  for (SweepPoint& of : *points) {
    auto input = Load(a, of, std::nullopt);
    if (!input.ok()) return input.status();
    if (auto inlined = InlineFiles(&input->message, input->directory); !inlined.ok())
      return inlined;
    const std::string key = SweepKey(input->message);
    grid.points.push_back(
        {std::move(of), input->message.seed(), fmt::format("{}/points/{}.json", a.folder, key)});
  }
  return grid;
}

// The earlier result of a point, or nothing.
std::optional<SweepRow> Kept(const GridPoint& point) {
  std::ifstream file(point.file, std::ios::binary);
  if (!file) return std::nullopt;
  SweepRow row = SweepRow::parse(file, nullptr, /*allow_exceptions=*/false);
  if (row.is_discarded() || !row.is_object() || !row.contains("digest")) return std::nullopt;
  return row;
}

// Runs the points without a kept result, on threads that take one point after the other.
class Workers {
 public:
  Workers(const SweepArguments& arguments, const Grid& grid, std::vector<const GridPoint*> left)
      : a_(arguments), left_(std::move(left)), all_(grid.points.size()) {}

  absl::Status Run() {
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(a_.jobs), left_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back([this] { Work(); });
    if (count > 0) Work();
    for (std::thread& thread : threads) thread.join();
    const MutexLock guard(mutex_);
    line_.Clear();
    if (status_.ok() && InterruptGuard::raised()) {
      return absl::CancelledError(
          fmt::format("interrupted with {} of {} points done; the same command continues",
                      all_ - left_.size() + done_, all_));
    }
    return status_;
  }

 private:
  void Work() {
    ThreadPool pool(a_.threads);
    const Executor executor = pool.executor();
    while (!InterruptGuard::raised()) {
      const std::size_t next = next_++;
      if (next >= left_.size()) return;
      const absl::Status status = RunPoint(*left_[next], pool.threads(), executor);
      const MutexLock guard(mutex_);
      if (absl::IsCancelled(status)) return;
      if (!status.ok()) {
        if (status_.ok()) status_ = status;
        next_ = left_.size();
        return;
      }
      ++done_;
      Show();
    }
  }

  // Only a result that cannot be kept is an error here; a run that fails is a result.
  absl::Status RunPoint(const GridPoint& point, int threads, const Executor& executor) {
    const auto input = Load(a_, point.of, point.seed);
    if (!input.ok()) return input.status();
    RunOptions options;
    options.threads = threads;
    options.executor = &executor;
    options.cancelled = [] { return InterruptGuard::raised(); };
    options.progress = [this](const RunProgress&) {
      const MutexLock guard(mutex_);
      Show();
    };
    const auto result = RunScenario(input->scenario, options);
    if (absl::IsCancelled(result.status())) return result.status();
    const SweepRow row = result.ok() ? SweepMeasures(*result) : SweepError(Text(result.status()));
    return ReplaceFile(point.file, row.dump(1) + "\n");
  }

  // The estimate is of the points that this process runs.
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!line_.Due()) return;
    const double share = static_cast<double>(done_) / static_cast<double>(left_.size());
    line_.Show(fmt::format("{} of {} points", all_ - left_.size() + done_, all_), share);
  }

  const SweepArguments& a_;
  const std::vector<const GridPoint*> left_;
  const std::size_t all_;
  std::atomic<std::size_t> next_ = 0;
  Mutex mutex_;
  std::size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  ProgressLine line_ ABSL_GUARDED_BY(mutex_){/*always=*/true};
};

Outcome Report(const SweepArguments& a, const Grid& grid, std::size_t computed) {
  std::vector<SweepRow> rows;
  std::size_t saturated = 0;
  std::vector<std::string> errors;
  for (const GridPoint& point : grid.points) {
    const auto measures = Kept(point);
    if (!measures) {
      return Outcome::Fail(ExitCode::kFailed, fmt::format("{}: cannot be read", point.file));
    }
    rows.push_back(SweepTableRow(grid.axes, point.of, point.seed, *measures));
    const SweepRow& row = rows.back();
    saturated += row["saturated"] == true ? 1 : 0;
    if (row["error"].is_string()) errors.push_back(row["error"]);
  }
  for (const auto& [name, text] :
       {std::pair("table.csv", SweepCsv(rows)), std::pair("table.jsonl", SweepJsonLines(rows))}) {
    if (auto status = ReplaceFile(fmt::format("{}/{}", a.folder, name), text); !status.ok())
      return FromStatus(status);
  }
  const std::string plot = a.folder + "/plot.svg";
  if (a.plot) {
    if (auto status = PlotSweep(grid.axes, rows, plot); !status.ok()) return FromStatus(status);
  }
  if (IsJson(a.format)) {
    nlohmann::ordered_json json{
        {"points", rows.size()},          {"computed", computed},
        {"saturated", saturated},         {"failed", errors.size()},
        {"csv", a.folder + "/table.csv"}, {"jsonl", a.folder + "/table.jsonl"}};
    if (a.plot) json["plot"] = plot;
    fmt::print("{}\n", json.dump(2));
  } else {
    const std::string text = fmt::format(
        "{}, {} of them computed now, {} saturated: {}/table.csv, table.jsonl{}",
        Counted(rows.size(), "point"), computed, saturated, a.folder, a.plot ? ", plot.svg" : "");
    fmt::print("{}\n", Hanging(text, 0));
  }
  if (errors.empty()) return Outcome::Ok();
  return Outcome::Fail(ExitCode::kFailed,
                       fmt::format("{} of {} points failed (column `error`), the first: {}",
                                   errors.size(), rows.size(), errors[0]));
}

// The command of a task of the array, but for its part.
std::vector<std::string> TaskCommand(const SweepArguments& a) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  std::vector<std::string> command{error ? "percsctl" : self.string(), "sweep", a.file};
  for (const std::string& axis : a.over) command.insert(command.end(), {"--over", axis});
  for (const std::string& setting : a.settings) command.insert(command.end(), {"--set", setting});
  if (a.seed) command.insert(command.end(), {"--seed", std::to_string(*a.seed)});
  command.insert(command.end(), {"--output", a.folder, "--repeat", std::to_string(a.repeat),
                                 "--threads", std::to_string(a.threads)});
  return command;
}

// Waits until the array has ended; then nothing of `left` is missing, or a task has failed. `left`
// has each point with its number in the grid.
absl::Status WaitForArray(const SweepArguments& a, const std::string& job, std::size_t all,
                          std::vector<std::pair<std::size_t, const GridPoint*>> left,
                          std::size_t tasks) {
  constexpr auto kPoll = std::chrono::seconds(1);
  constexpr int kSilentMost = 60;  // a controller of Slurm may restart meanwhile
  ProgressLine line(/*always=*/true);
  const std::size_t first = left.size();
  for (int silent = 0; !left.empty();) {
    const auto running = SweepArrayOf(a.folder);
    silent = running.ok() ? 0 : silent + 1;
    if (silent > kSilentMost) return running.status();
    std::erase_if(left, [](const auto& point) { return Kept(*point.second).has_value(); });
    const auto done = static_cast<double>(first - left.size());
    if (line.Due()) {
      line.Show(fmt::format("{} of {} points, job array {}", all - left.size(), all, job),
                done / static_cast<double>(first));
    }
    if (left.empty()) break;
    if (running.ok() && *running != job) {
      line.Clear();
      const std::string log = SweepLog(a.folder, job, left[0].first % tasks);
      return absl::InternalError(fmt::format(
          "job array {} has ended, and {} of {} points are missing; {}: {}; the same command "
          "continues",
          job, left.size(), all, log, LastLines(log, 1)));
    }
    if (InterruptGuard::raised()) {
      return absl::CancelledError(fmt::format(
          "interrupted; job array {} continues: the same command waits for it, `scancel {}` ends "
          "it",
          job, job));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::OkStatus();
}

// Submits the remaining points as an array, or finds the array of an earlier command, and waits for
// it.
absl::Status ComputeBySlurm(const SweepArguments& a, const Grid& grid,
                            const std::vector<const GridPoint*>& order) {
  std::vector<std::pair<std::size_t, const GridPoint*>> left;
  for (const GridPoint* point : order) left.emplace_back(point - grid.points.data(), point);
  auto job = SweepArrayOf(a.folder);
  if (!job.ok()) return job.status();
  // Tasks take points by their number in the grid, so every task gets some of those left.
  const std::size_t tasks = std::min<std::size_t>(a.jobs, grid.points.size());
  if (job->empty() && !left.empty()) {
    job = SubmitSweepArray(a.folder, TaskCommand(a), tasks, a.threads);
    if (!job.ok()) return job.status();
    fmt::print(stderr, "percsctl sweep: job array {} of {} tasks\n", *job, tasks);
  }
  return WaitForArray(a, *job, grid.points.size(), std::move(left), tasks);
}

// What is not kept yet, of this part; equal points, of a value that is given twice, are run once.
std::vector<const GridPoint*> LeftOf(const Grid& grid, const SweepPart& part) {
  std::map<std::string, const GridPoint*> left;
  std::vector<const GridPoint*> order;
  for (std::size_t i = 0; i < grid.points.size(); ++i) {
    const GridPoint& point = grid.points[i];
    if (!left.emplace(point.file, &point).second) continue;
    if (i % part.count == part.index && !Kept(point)) order.push_back(&point);
  }
  return order;
}

absl::Status Compute(const SweepArguments& a, const Grid& grid,
                     std::vector<const GridPoint*> order) {
  if (a.slurm) return ComputeBySlurm(a, grid, order);
  if (a.part.empty()) {
    const auto job = SweepArrayOf(a.folder);
    if (job.ok() && !job->empty()) {
      return absl::FailedPreconditionError(fmt::format(
          "job array {} computes these points; wait for it with --slurm, or end it with "
          "`scancel {}`",
          *job, *job));
    }
  }
  return Workers(a, grid, std::move(order)).Run();
}

Outcome Sweep(const SweepArguments& a) {
  if (a.plot) {
    if (auto status = CheckGnuplot("--plot"); !status.ok()) return FromStatus(status);
  }
  const auto part = a.part.empty() ? SweepPart() : ParseSweepPart(a.part);
  if (!part.ok()) return FromStatus(part.status());
  const auto grid = MakeGrid(a);
  if (!grid.ok()) return FromStatus(grid.status());
  std::error_code error;
  fs::create_directories(a.folder + "/points", error);
  if (error) {
    return Outcome::Fail(ExitCode::kFailed,
                         fmt::format("cannot make {}/points: {}", a.folder, error.message()));
  }
  LockFile lock;
  const std::string file = a.part.empty() ? "/lock" : fmt::format("/slurm/lock.{}", part->index);
  if (auto taken = lock.Take(a.folder + file, a.folder + ": another sweep is writing there");
      !taken.ok())
    return Outcome::Fail(ExitCode::kFailed, Text(taken));
  std::vector<const GridPoint*> order = LeftOf(*grid, *part);
  const std::size_t computed = order.size();
  InterruptGuard interrupt;
  fmt::print(stderr, "percsctl sweep: {}, {} to compute\n", Counted(grid->points.size(), "point"),
             computed);
  if (auto status = Compute(a, *grid, std::move(order)); !status.ok()) return FromStatus(status);
  return a.part.empty() ? Report(a, *grid, computed) : Outcome::Ok();
}

}  // namespace

CommandBody AddSweep(CLI::App& app) {
  auto a = std::make_shared<SweepArguments>();
  app.add_option("FILE", a->file, "Scenario: .yaml, .json or .textproto")->required();
  app.add_option("--over", a->over,
                 "Axis: KEY=VALUES, a field and a list a,b,c of values and ranges "
                 "first..last:step (repeatable)")
      ->required()
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_option("-o,--output", a->folder,
                 "Folder of the results; points that it already has are not computed again")
      ->required();
  app.add_option("--repeat", a->repeat, "Runs of each combination, with one seed after the other")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--jobs", a->jobs, "Points that run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--threads", a->threads, "Threads of each run")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seed", a->seed, "Random seed of the first runs; replaces the file's");
  app.add_option("--set", a->settings, "Change a field in all points: path=value (repeatable)")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--slurm", a->slurm,
               "Run the points as a job array of Slurm with --jobs tasks, and wait for it");
  app.add_option("--part", a->part)->group("");  // of such a task
  app.add_flag("--plot", a->plot, "Also draw the table, as plot.svg (needs gnuplot)");
  AddFormatOption(app, a->format);
  return [a] { return Sweep(*a); };
}

}  // namespace percs
