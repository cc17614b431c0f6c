// percsctl view: a run in the page of a fabric, as one file that needs no server and no network.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/lib/checkpoint.h"
#include "client/lib/executor.h"
#include "client/lib/interrupt.h"
#include "client/lib/journalled_run.h"
#include "client/lib/run_recorder.h"
#include "client/lib/scenario_file.h"
#include "client/lib/state_digest.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/scenario_options.h"
#include "emulator/base/version.h"
#include "emulator/sim/run.h"
#include "proto/process/replace_file.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"

namespace percs {
namespace {

constexpr std::size_t kPageBytesMax = 1'900'000;  // to be mailed

struct ViewArguments {
  std::string file, output, result, format;
  std::uint64_t run = 0;
  int threads = 1;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> settings;
  bool progress = false;
};

// The run, and its earlier digest.
struct ViewedRun {
  Scenario scenario;
  std::uint64_t number = 1;
  std::vector<v1::JournalRecord> commands;
  std::string digest;      // "" if unknown
  bool delivered = false;  // it is that of what was delivered
};

bool IsScenarioFile(const std::filesystem::path& path) {
  const std::string kind = path.extension();
  return kind == ".yaml" || kind == ".yml" || kind == ".json" || kind == ".textproto";
}

// Null if it is no object.
nlohmann::json JsonFile(const std::string& path) {
  std::ifstream file(path);
  nlohmann::json json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json();
}

absl::StatusOr<ViewedRun> OfScenario(const ViewArguments& a) {
  if (a.file.ends_with(".json") && JsonFile(a.file).contains("digest")) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: is the result of a run, which has no times of events; give the scenario, and "
        "--result {}",
        a.file, a.file));
  }
  auto input = LoadScenario(a.file, a.settings, a.seed);
  if (!input.ok()) return input.status();
  if (auto status = CheckLoaded(a.file, input->scenario, RunsOn::kProcess); !status.ok())
    return status;
  ViewedRun run;
  run.scenario = std::move(input->scenario);
  if (a.result.empty()) return run;
  const nlohmann::json result = JsonFile(a.result);
  if (result.is_object()) run.digest = result.value("digest", "");
  if (!run.digest.empty()) return run;
  return absl::InvalidArgumentError(a.result +
                                    ": is no result; write it with --format json of run or result");
}

absl::StatusOr<ViewedRun> OfJournal(const ViewArguments& a) {
  if (absl::Status found = FindJournal(a.file); !found.ok()) return found;
  auto journal = ReadJournalledRun(a.file, a.run);
  if (!journal.ok()) return journal.status();
  ViewedRun run;
  run.number = journal->number;
  run.commands = std::move(journal->commands);
  if (journal->end) run.digest = journal->end->digest();
  run.delivered = journal->end && journal->end->error() == kCheckpointMark;
  if (run.delivered) {
    journal->scenario.set_stop_at(journal->end_at);
    std::erase_if(run.commands, [&](const auto& record) { return record.at() >= journal->end_at; });
  }
  auto scenario = BuildScenario(journal->scenario, "");
  if (!scenario.ok()) return scenario.status();
  run.scenario = *std::move(scenario);
  const bool stopped = std::any_of(run.commands.begin(), run.commands.end(),
                                   [](const auto& record) { return record.has_stop(); });
  if (stopped || run.delivered || !RunsUntilStopped(run.scenario)) return run;
  return absl::FailedPreconditionError(fmt::format(
      "{}: run {} has no end yet; end it with `percsctl stop`, or view a checkpoint of it", a.file,
      run.number));
}

Outcome CheckDigest(const ViewedRun& run, const std::string& digest) {
  if (run.digest.empty() || digest == run.digest) return Outcome::Ok();
  return Outcome::Fail(ExitCode::kViolation,
                       fmt::format("this is another run: its digest is {}, and not {} (model {})",
                                   digest, run.digest, kModelVersion));
}

Outcome View(const ViewArguments& a) {
  const auto run = IsScenarioFile(a.file) ? OfScenario(a) : OfJournal(a);
  if (!run.ok()) return FromStatus(run.status());
  const auto topology = Topology::Create(run->scenario.topology);
  if (!topology.ok()) return FromStatus(topology.status());
  RunRecorder recorder(*topology, run->number);
  ThreadPool pool(a.threads);
  const Executor executor = pool.executor();
  InterruptGuard interrupt;
  std::string delivered;
  RunOptions options;
  LocalRunProgress progress(run->scenario, topology->nodes(), a.progress, options);
  options.threads = pool.threads();
  options.executor = &executor;
  options.cancelled = [] { return InterruptGuard::raised(); };
  options.watch = [&](const Fabric& fabric, std::uint64_t windows, bool ended) {
    recorder.Watch(fabric, windows, ended);
    if (ended) delivered = DeliveredDigest(fabric);
    return true;  // the page shows the end of each window, so they are short
  };
  for (const v1::JournalRecord& record : run->commands) {
    options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                  return ActOnFabric(record, fabric, at);
                                }});
  }
  const auto result = RunScenario(run->scenario, options);
  progress.Clear();
  if (!result.ok()) return FromStatus(result.status());
  const std::string digest = result->digest.ToString();
  if (Outcome differs = CheckDigest(*run, run->delivered ? delivered : digest);
      differs.code != ExitCode::kOk)
    return differs;
  const std::string page = recorder.Page(kPageBytesMax);
  if (auto status = ReplaceFile(a.output, page); !status.ok()) return FromStatus(status);
  if (IsJson(a.format)) {
    fmt::print("{}\n", nlohmann::json{{"file", a.output},
                                      {"bytes", page.size()},
                                      {"virtual_ps", result->virtual_time},
                                      {"digest", digest}}
                           .dump(2));
  } else {
    fmt::print("{}: {}, {} bytes\n", a.output, FormatVirtual(result->virtual_time), page.size());
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddView(CLI::App& app) {
  auto a = std::make_shared<ViewArguments>();
  app.add_option("FILE", a->file,
                 "Scenario to run (.yaml, .json or .textproto); or the --state-dir of a controller "
                 "or a checkpoint, whose run is replayed")
      ->required();
  app.add_option("-o,--output", a->output, "Page to write: an HTML file of at most 2 MB")
      ->required();
  app.add_option("--run", a->run, "With a --state-dir: number of the run; default: the last one");
  app.add_option("--result", a->result,
                 "Expected result (--format json of run or result); another result is an error");
  app.add_option("--threads", a->threads, "Threads to run on")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  AddSettingOptions(app, a->settings, a->seed);
  AddProgressOption(app, a->progress);
  AddFormatOption(app, a->format);
  return [a] { return View(*a); };
}

}  // namespace percs
