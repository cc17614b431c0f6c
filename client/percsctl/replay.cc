// percsctl replay: a run again from the journal of its controller, in this process or over daemons.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/lib/executor.h"
#include "client/lib/interrupt.h"
#include "client/lib/journalled_run.h"
#include "client/mpi/job_journal.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "emulator/base/version.h"
#include "emulator/sim/run.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct ReplayArguments {
  FabricOptions fabric;
  std::string journal;
  std::uint64_t run = 0;
  int threads = 1;
  bool distributed = false, list = false, progress = false;
};

// Tables and operations have too many bytes to read.
std::string TextOf(const v1::JournalRecord& record, const std::string& name) {
  if (record.has_routes()) return name;
  if (record.has_mpi_calls()) return fmt::format("{} {} bytes", name, record.mpi_calls().size());
  if (!record.has_endpoint()) return record.ShortDebugString();
  const v1::EndpointSubmission& submission = record.endpoint();
  std::string text = fmt::format("{} node: {}", name, submission.node());
  for (const v1::EndpointOperation& operation : submission.operations()) {
    text += fmt::format(" {}(window {})", v1::EndpointOperation::Op_Name(operation.op()),
                        operation.window());
  }
  return text;
}

void List(const JournalledRun& run, bool json) {
  Json list = Json::array();
  for (const v1::JournalRecord& record : run.commands) {
    const auto* field = v1::JournalRecord::descriptor()->FindFieldByNumber(record.event_case());
    if (json) {
      list.push_back({{"at_ps", record.at()}, {"command", field->name()}});
    } else {
      fmt::print("{:>16}  {}\n", FormatVirtual(record.at()), TextOf(record, field->name()));
    }
  }
  if (json) fmt::print("{}\n", Json{{"run", run.number}, {"commands", std::move(list)}}.dump(2));
}

absl::StatusOr<std::string> ReplayHere(const JournalledRun& run, const ReplayArguments& a) {
  if (run.apply.has_mpi()) {
    const WaitingLine line("the calls of the program run again", a.progress);
    const auto result = mpi::ReplayJob(run.scenario, run.apply.mpi(), run.commands);
    if (!result.ok()) return result.status();
    if (!result->failure.empty()) return absl::InternalError(result->failure);
    return result->digest.ToString();
  }
  const auto scenario = BuildScenario(run.scenario, "");
  if (!scenario.ok()) return scenario.status();
  const auto topology = Topology::Create(scenario->topology);
  if (!topology.ok()) return topology.status();
  ThreadPool pool(a.threads);
  const Executor executor = pool.executor();
  RunOptions options;
  InterruptGuard interrupt;
  LocalRunProgress progress(*scenario, topology->nodes(), a.progress, options);
  options.cancelled = [] { return InterruptGuard::raised(); };
  options.threads = pool.threads();
  options.executor = &executor;
  for (const v1::JournalRecord& record : run.commands) {
    options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                  return ActOnFabric(record, fabric, at);
                                }});
  }
  const auto result = RunScenario(*scenario, options);
  if (!result.ok()) return result.status();
  return result->digest.ToString();
}

absl::StatusOr<std::string> ReplayThere(const JournalledRun& run, const ReplayArguments& a,
                                        FabricClient& client) {
  if (run.apply.has_mpi())
    return absl::FailedPreconditionError(
        "the run of an MPI program is replayed in this process; leave --distributed out");
  const auto scenario = BuildScenario(run.scenario, "");
  if (!scenario.ok()) return scenario.status();
  v1::ApplyRequest request;
  *request.mutable_scenario() = run.scenario;
  for (const v1::JournalRecord& record : run.commands) *request.add_replay() = record;
  const auto applied = [&] {
    const WaitingLine line("the daemons build the machine", a.progress);
    return client.Apply(request, kApplyDeadline);
  }();
  if (!applied.ok()) return applied.status();
  InterruptGuard interrupt;
  RunProgressLine progress(*scenario, a.progress);
  const auto result = client.WatchRun(applied->run(), [&](const v1::RunProgress& p) {
    progress.Show(p.virtual_time(), p.packets_delivered());
    return !InterruptGuard::raised();
  });
  progress.Clear();
  if (!result.ok()) return result.status();
  return result->result().digest();
}

Outcome Compare(const ReplayArguments& a, const JournalledRun& run,
                const absl::StatusOr<std::string>& digest) {
  if (!digest.ok()) return FromStatus(digest.status());
  const std::string live = run.end ? run.end->digest() : "";
  const bool same = live == *digest;
  if (IsJson(a.fabric.format)) {
    fmt::print("{}\n", Json{{"run", run.number},
                            {"commands", run.commands.size()},
                            {"digest", *digest},
                            {"live_digest", live.empty() ? Json() : Json(live)},
                            {"equal", live.empty() ? Json() : Json(same)}}
                           .dump(2));
  } else {
    fmt::print("run {} replayed with {}\ndigest  {}\n", run.number,
               Counted(run.commands.size(), "command"), *digest);
    fmt::print("live    {}\n",
               live.empty() ? "not in the journal: the run did not end, or failed" : live);
  }
  if (live.empty() || same) return Outcome::Ok();
  const std::uint32_t model = run.apply.versions().model();
  return Outcome::Fail(
      ExitCode::kViolation,
      model == kModelVersion
          ? std::string("the replay differs from the live run")
          : fmt::format("the live run used model {}, this software has model {}: results differ",
                        model, kModelVersion));
}

Outcome Replay(const ReplayArguments& a) {
  if (absl::Status found = FindJournal(a.journal); !found.ok()) return FromStatus(found);
  const auto run = ReadJournalledRun(a.journal, a.run);
  if (!run.ok()) return FromStatus(run.status());
  if (run->cut_off > 0) {
    fmt::print(stderr,
               "percsctl replay: the journal ends with {} bytes of an incomplete record; they are "
               "ignored\n",
               run->cut_off);
  }
  if (a.list) {
    List(*run, IsJson(a.fabric.format));
    return Outcome::Ok();
  }
  if (run->apply.versions().model() != kModelVersion) {
    fmt::print(stderr,
               "percsctl replay: the journal was written by model {}, this software has model {}; "
               "digests may differ\n",
               run->apply.versions().model(), kModelVersion);
  }
  if (!a.distributed) return Compare(a, *run, ReplayHere(*run, a));
  return WithFabric(a.fabric, [&](FabricClient& client) {
    return Compare(a, *run, ReplayThere(*run, a, client));
  });
}

}  // namespace

CommandBody AddReplay(CLI::App& app) {
  auto a = std::make_shared<ReplayArguments>();
  app.add_option("JOURNAL", a->journal, "The controller's --state-dir, or the file `journal` in it")
      ->required();
  app.add_option("--run", a->run, "Number of the run; default: the last one");
  app.add_option("--threads", a->threads, "Threads of this process to run on")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--distributed", a->distributed, "Run on the daemons of a running fabric instead");
  app.add_flag("--list", a->list, "Only print the commands");
  AddProgressOption(app, a->progress);
  AddFabricOptions(app, a->fabric);
  return [a] { return Replay(*a); };
}

}  // namespace percs
