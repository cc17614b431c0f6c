// percsctl checkpoint, restore: saves the position of a run, and re-runs to it.
#include "client/lib/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/lib/executor.h"
#include "client/lib/fabric_record.h"
#include "client/lib/interrupt.h"
#include "client/lib/journalled_run.h"
#include "client/lib/scenario_file.h"
#include "client/lib/state_digest.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/report.h"
#include "client/percsctl/screen.h"
#include "emulator/sim/run.h"
#include "proto/process/version.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/trees.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct CheckpointArguments {
  FabricOptions fabric;
  std::string file, journal;
  bool progress = false;
};

struct RestoreArguments {
  FabricOptions fabric;
  std::string file;
  int threads = 1;
  bool distributed = false, progress = false;
};

absl::StatusOr<Checkpoint> Make(const CheckpointArguments& a, FabricClient& client) {
  const auto status = client.Status();
  if (!status.ok()) return status.status();
  const auto counters = client.GetCounters("", /*per_node=*/true);
  if (!counters.ok()) return counters.status();
  const auto digest = DeliveredDigest(*counters);
  if (!digest.ok()) return digest.status();
  std::string journal = a.journal;
  if (journal.empty()) {
    const auto store = FabricStore::Open();
    if (!store.ok()) return store.status();
    journal = store->FolderOf(a.fabric.name);
  }
  if (absl::Status found = FindJournal(journal); !found.ok()) return found;
  const auto run = ReadJournalledRun(journal, status->run());
  if (!run.ok()) return run.status();
  // A checkpoint has everything before its time. Of a run that has ended, the last event belongs to
  // it, too.
  const Time at = counters->virtual_time() + (counters->run_ended() ? 1 : 0);
  Checkpoint checkpoint{run->scenario, {}, run->apply.versions(), at, *digest};
  for (const v1::JournalRecord& record : run->commands) {
    if (record.at() <= checkpoint.at) checkpoint.commands.push_back(record);
  }
  return checkpoint;
}

void Tell(const char* what, const std::string& file, const Checkpoint& checkpoint, bool json) {
  if (json) {
    fmt::print("{}\n", Json{{what, file},
                            {"virtual_ps", checkpoint.at},
                            {"digest", checkpoint.digest},
                            {"commands", checkpoint.commands.size()}}
                           .dump(2));
  } else {
    fmt::print(
        "{}\n",
        Hanging(fmt::format("{} {}: at {}, {}, digest {}", what, file, FormatVirtual(checkpoint.at),
                            Counted(checkpoint.commands.size(), "command"), checkpoint.digest),
                0));
  }
}

Outcome MakeAndWrite(const CheckpointArguments& a) {
  return WithFabric(a.fabric, [&](FabricClient& client) {
    const auto checkpoint = [&] {
      const WaitingLine line("the daemons count what was delivered", a.progress);
      return Make(a, client);
    }();
    if (!checkpoint.ok()) return FromStatus(checkpoint.status());
    if (absl::Status status = WriteCheckpoint(a.file, *checkpoint); !status.ok())
      return FromStatus(status);
    Tell("checkpoint", a.file, *checkpoint, IsJson(a.fabric.format));
    return Outcome::Ok();
  });
}

// `digest` is what was found at the checkpoint.
Outcome CompareDigests(const Checkpoint& checkpoint, const std::string& digest) {
  if (digest == checkpoint.digest) return Outcome::Ok();
  const bool model = checkpoint.versions.model() != kModelVersion;
  return Outcome::Fail(
      ExitCode::kViolation,
      fmt::format("at {} the digest is {}, and the checkpoint has {}{}",
                  FormatVirtual(checkpoint.at), digest, checkpoint.digest,
                  model ? fmt::format(": it was made by model {}, this software has model {}",
                                      checkpoint.versions.model(), kModelVersion)
                        : std::string()));
}

// To the checkpoint, then to the end; a workload that continues until it is stopped is stopped
// there. `found` becomes the digest at the checkpoint; with another one than that of the checkpoint
// the run ends there, with DATA_LOSS.
absl::StatusOr<RunResult> RestoreHere(const RestoreArguments& a, const Checkpoint& checkpoint,
                                      const Scenario& scenario, NodeId nodes, std::string* found) {
  ThreadPool pool(a.threads);
  const Executor executor = pool.executor();
  RunOptions options;
  InterruptGuard interrupt;
  LocalRunProgress progress(scenario, nodes, a.progress, options);
  options.threads = pool.threads();
  options.executor = &executor;
  options.cancelled = [] { return InterruptGuard::raised(); };
  const bool stopped =
      std::any_of(checkpoint.commands.begin(), checkpoint.commands.end(),
                  [](const v1::JournalRecord& record) { return record.has_stop(); });
  const bool endless = !stopped && RunsUntilStopped(scenario);
  const TimedCommand check{checkpoint.at, [&checkpoint, endless, found](Fabric& fabric, Time at) {
                             *found = DeliveredDigest(fabric);
                             if (*found != checkpoint.digest) return absl::DataLossError("differs");
                             if (!endless) return absl::OkStatus();
                             v1::JournalRecord stop;
                             stop.set_stop(true);
                             return ActOnFabric(stop, fabric, at);
                           }};
  for (const v1::JournalRecord& record : checkpoint.commands) {
    options.commands.push_back({record.at(), [&record](Fabric& fabric, Time at) {
                                  return ActOnFabric(record, fabric, at);
                                }});
  }
  options.commands.push_back(check);
  return RunScenario(scenario, options);
}

// Over daemons a run continues to the checkpoint, and ends there. Returns the digest.
absl::StatusOr<std::string> RestoreThere(const RestoreArguments& a, const Checkpoint& checkpoint,
                                         const Scenario& scenario, FabricClient& client) {
  v1::ApplyRequest request;
  *request.mutable_scenario() = checkpoint.scenario;
  request.mutable_scenario()->set_stop_at(checkpoint.at);
  for (const v1::JournalRecord& record : checkpoint.commands) {
    if (record.at() < checkpoint.at) *request.add_replay() = record;
  }
  const auto applied = [&] {
    const WaitingLine line("the daemons build the machine", a.progress);
    return client.Apply(request, kApplyDeadline);
  }();
  if (!applied.ok()) return applied.status();
  InterruptGuard interrupt;
  RunProgressLine progress(scenario, a.progress);
  const auto result = client.WatchRun(applied->run(), [&](const v1::RunProgress& p) {
    progress.Show(p.virtual_time(), p.packets_delivered());
    return !InterruptGuard::raised();
  });
  progress.Clear();
  if (!result.ok()) return result.status();
  const auto counters = client.GetCounters("", /*per_node=*/true);
  if (!counters.ok()) return counters.status();
  return DeliveredDigest(*counters);
}

Outcome Restore(const RestoreArguments& a) {
  if (absl::Status found = FindJournal(a.file); !found.ok()) return FromStatus(found);
  const auto checkpoint = ReadCheckpoint(a.file);
  if (!checkpoint.ok()) return FromStatus(checkpoint.status());
  const auto scenario = BuildScenario(checkpoint->scenario, "");
  if (!scenario.ok()) return FromStatus(scenario.status());
  const bool json = IsJson(a.fabric.format);
  if (a.distributed) {
    return WithFabric(a.fabric, [&](FabricClient& client) {
      const auto digest = RestoreThere(a, *checkpoint, *scenario, client);
      if (!digest.ok()) return FromStatus(digest.status());
      if (Outcome outcome = CompareDigests(*checkpoint, *digest); outcome.code != ExitCode::kOk)
        return outcome;
      Tell("restored", a.file, *checkpoint, json);
      return Outcome::Ok();
    });
  }
  const auto topology = Topology::Create(scenario->topology);
  if (!topology.ok()) return FromStatus(topology.status());
  std::string digest = checkpoint->digest;
  const auto start = std::chrono::steady_clock::now();
  auto result = RestoreHere(a, *checkpoint, *scenario, topology->nodes(), &digest);
  const double wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (Outcome outcome = CompareDigests(*checkpoint, digest); outcome.code != ExitCode::kOk)
    return outcome;
  if (!result.ok()) return FromStatus(result.status());
  if (!json) Tell("restored", a.file, *checkpoint, false);
  RunReport report{*std::move(result), wall_seconds,
                   Counted(static_cast<std::uint64_t>(a.threads), "thread")};
  for (const TreeStatus& tree : report.result.trees)
    TreeToProto(tree, *topology, false, report.trees.Add());
  for (const FaultStatus& fault : report.result.faults)
    FaultToProto(fault, report.result, *topology, report.faults.Add());
  return PrintReport(report, *topology, json);
}

}  // namespace

CommandBody AddCheckpoint(CLI::App& app) {
  auto a = std::make_shared<CheckpointArguments>();
  app.add_option("FOLDER", a->file, "Folder to write")->required();
  app.add_option("--journal", a->journal,
                 "The controller's --state-dir; default: the local fabric's");
  AddProgressOption(app, a->progress);
  AddFabricOptions(app, a->fabric);
  return [a] { return MakeAndWrite(*a); };
}

CommandBody AddRestore(CLI::App& app) {
  auto a = std::make_shared<RestoreArguments>();
  app.add_option("FOLDER", a->file, "Folder of the checkpoint")->required();
  app.add_option("--threads", a->threads, "Threads of this process to run on")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--distributed", a->distributed,
               "Run on the daemons of a running fabric, up to the checkpoint");
  AddProgressOption(app, a->progress);
  AddFabricOptions(app, a->fabric);
  return [a] { return Restore(*a); };
}

}  // namespace percs
