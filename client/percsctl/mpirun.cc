// percsctl mpirun: an MPI program as its package ships it, on an emulated machine in this process.
#include "client/percsctl/mpirun.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "client/lib/scenario_file.h"
#include "client/mpi/control.h"
#include "client/mpi/job.h"
#include "client/mpi/launch.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/reader.h"

extern char** environ;

namespace percs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kChildPoll = std::chrono::milliseconds(5);
constexpr auto kProgressEvery = std::chrono::milliseconds(1000);
constexpr auto kGrace = std::chrono::seconds(5);  // from a failure to SIGTERM, and to SIGKILL
constexpr const char* kDefaultMachine =
    "name: mpirun\ntopology: {supernodes: 1, drawers: 4, hubs: 8}\n";

bool IsScenario(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
         word.ends_with(".textproto");
}

absl::StatusOr<double> ComputeScale(const std::string& compute) {
  double scale = 1;
  if (compute == "zero") return 0.0;
  if (compute == "cpu") return scale;
  if (compute.starts_with("cpu:") && absl::SimpleAtod(compute.substr(4), &scale) && scale > 0 &&
      scale <= mpi::kComputeScaleMax)
    return scale;
  return absl::InvalidArgumentError(
      fmt::format("--compute {}: zero, cpu, or cpu:SCALE with a scale of more than 0, at most {}",
                  compute, mpi::kComputeScaleMax));
}

// Of those on CAUs, at most.
absl::StatusOr<std::uint64_t> CollectiveBytes(const std::string& collectives) {
  const mpi::TransportParameters parameters;
  if (collectives == "p2p") return 0;
  if (collectives == "cau") return parameters.collective_bytes;
  if (collectives == "auto") return parameters.collective_bytes_auto;
  return absl::InvalidArgumentError(fmt::format("--collectives {}: p2p, cau or auto", collectives));
}

absl::StatusOr<MpirunPlan> MakePlan(const MpirunArguments& a) {
  MpirunPlan plan;
  plan.program = a.program;
  if (IsScenario(a.scenario)) {
    auto input = LoadScenario(a.scenario, a.settings, std::nullopt);
    if (!input.ok()) return input.status();
    plan.message = std::move(input->message);
  } else {
    if (!a.settings.empty())
      return absl::InvalidArgumentError(
          "--set changes a scenario; name its file before the program");
    // There is none, and the program comes first.
    if (!a.scenario.empty()) plan.program.insert(plan.program.begin(), a.scenario);
    auto loaded = LoadScenarioText(kDefaultMachine, "default machine", ScenarioFormat::kYaml);
    if (!loaded.ok()) return loaded.status();
    plan.message = std::move(loaded->scenario);
  }
  plan.message.clear_workload();
  auto machine = mpi::MachineOf(plan.message);
  if (!machine.ok()) return machine.status();
  plan.machine = *std::move(machine);
  if (plan.program.empty())
    return absl::InvalidArgumentError("no program; write it last: percsctl mpirun -n 2 -- PROGRAM");
  const auto topology = Topology::Create(plan.machine.topology);
  if (!topology.ok()) return topology.status();
  std::string map_by = a.map_by;
  if (map_by.empty()) {
    const std::uint32_t hubs = topology->hubs();
    map_by = a.ranks <= hubs ? "hub" : fmt::format("node:{}", (a.ranks + hubs - 1) / hubs);
  }
  auto places = mpi::PlaceRanks(map_by, a.ranks, *topology, plan.machine.parameters.windows_per_hfi,
                                a.first_window);
  if (!places.ok()) return places.status();
  plan.places = *std::move(places);
  const auto scale = ComputeScale(a.compute);
  if (!scale.ok()) return scale.status();
  plan.compute_scale = *scale;
  const auto bytes = CollectiveBytes(a.collectives);
  if (!bytes.ok()) return bytes.status();
  plan.collective_bytes = *bytes;
  return plan;
}

// Open MPI's mpirun; signals for this process go to it while this lives.
class Child {
 public:
  static absl::StatusOr<int> Start(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environ);
    if (error == 0) return pid;
    return absl::InternalError(
        fmt::format("cannot start {}: {}", command[0], std::strerror(error)));
  }
  explicit Child(pid_t pid) {
    pid_ = pid;
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      struct sigaction action = {};
      action.sa_handler = [](int number) { kill(pid_, number); };
      sigaction(kSignals[i], &action, &old_[i]);
    }
  }
  ~Child() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &old_[i], nullptr);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its exit status, 128 + n after signal n, if it has ended.
  static std::optional<int> Ended() {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  static void Signal(int number) { kill(pid_, number); }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  static inline volatile pid_t pid_ = 0;
  struct sigaction old_[std::size(kSignals)];
};

}  // namespace

absl::StatusOr<int> RunOpenMpi(const mpi::LaunchOptions& launch, const MpirunSight& sight) {
  const Clock::time_point start = Clock::now();
  const auto pid = Child::Start(mpi::OpenMpiCommand(launch));
  if (!pid.ok()) return pid.status();
  const Child child(*pid);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  Clock::time_point shown = start, failed{};
  while (true) {
    if (const auto status = Child::Ended()) {
      if (terminal && shown != start) fmt::print(stderr, "\r\x1b[K");
      return *status;
    }
    const Clock::time_point now = Clock::now();
    if (sight.failed()) {
      // Ranks have heard of it, and Open MPI ends the program itself.
      if (failed == Clock::time_point()) failed = now;
      if (now - failed > 2 * kGrace) {
        Child::Signal(SIGKILL);
      } else if (now - failed > kGrace) {
        Child::Signal(SIGTERM);
      }
    }
    if (terminal && now - shown > kProgressEvery) {
      shown = now;
      fmt::print(stderr, "\r\x1b[K{}, {} wall", sight.progress(),
                 FormatWall(std::chrono::duration<double>(now - start).count()));
    }
    std::this_thread::sleep_for(kChildPoll);
  }
}

namespace {

Outcome JobOutcome(const mpi::JobResult& result, int status) {
  if (!result.failure.empty()) {
    const bool waits = result.failure.find("waits for ever") != std::string::npos;
    return Outcome::Fail(waits ? ExitCode::kDeadlock : ExitCode::kFailed, result.failure);
  }
  if (status != 0) return {static_cast<ExitCode>(status), ""};
  if (!result.run.violations.empty())
    return Outcome::Fail(ExitCode::kViolation, result.run.violations.front());
  return Outcome::Ok();
}

std::string ShellWords(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]#~") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
      quoted.replace(at, 1, "'\\''");
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return text;
}

// Null without --journal.
absl::StatusOr<std::unique_ptr<mpi::JobJournal>> OpenJournal(const MpirunArguments& a,
                                                             const MpirunPlan& plan) {
  if (a.journal.empty()) return nullptr;
  v1::MpiJob program;
  for (const std::string& word : plan.program) program.add_program(word);
  for (const mpi::RankPlace& place : plan.places) {
    program.add_hubs(place.hub);
    program.add_windows(place.window);
  }
  program.set_compute_scale(plan.compute_scale);
  program.set_collective_bytes(plan.collective_bytes);
  return mpi::JobJournal::Open(a.journal, plan.message, program);
}

// With what they cost.
FaultList FaultsOf(const mpi::JobResult& result, const Topology& topology) {
  FaultList list;
  for (const FaultStatus& fault : result.run.faults)
    FaultToProto(fault, result.run, topology, list.Add());
  return list;
}

absl::StatusOr<MpirunEnd> RunInProcess(const MpirunArguments& a, const MpirunPlan& plan,
                                       const Topology& topology, mpi::LaunchOptions launch,
                                       mpi::JobJournal* journal) {
  mpi::JobOptions options;
  options.machine = plan.machine;
  options.places = plan.places;
  options.job = static_cast<JobKey>(a.job);
  options.compute_scale = plan.compute_scale;
  options.collective_bytes = plan.collective_bytes;
  options.journal = journal;
  auto job = mpi::Job::Start(std::move(options));
  if (!job.ok()) return job.status();
  std::unique_ptr<mpi::JobControl> control;
  if (!a.control.empty()) {
    auto started = mpi::JobControl::Start(a.control, mpi::JobControl::On(**job));
    if (!started.ok()) return started.status();
    control = *std::move(started);
  }
  launch.socket = (*job)->socket();
  const MpirunSight sight{[&] { return (*job)->failed(); },
                          [&] {
                            return fmt::format("{} virtual, {} messages",
                                               FormatShort((*job)->now()),
                                               FormatCount((*job)->messages()));
                          }};
  const auto status = RunOpenMpi(launch, sight);
  if (!status.ok()) return status.status();
  MpirunEnd end;
  end.status = *status;
  end.result = (*job)->Finish();
  end.faults = FaultsOf(end.result, topology);
  return end;
}

void PrintJournal(const mpi::JobJournal& journal, const MpirunEnd& end, const std::string& folder) {
  const mpi::TrafficCounts sum = SumTraffic(end.result);
  const std::uint64_t beside = (journal.bytes() - std::min(journal.bytes(), sum.bytes)) /
                               std::max<std::uint64_t>(1, sum.messages);
  fmt::print(stderr,
             "journal    {} of calls: {} a message, beside what is in it; percsctl replay {}\n",
             FormatBytes(journal.bytes()), FormatBytes(beside), folder);
}

// What ranks on daemons do not have: which communicators got a tree is in no journal.
absl::Status CheckDaemons(const MpirunArguments& a) {
  if (!a.on_daemons() || a.journal.empty() || a.collectives == "p2p") return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "--journal with --collectives {}: only with the machine in one process, not on daemons",
      a.collectives));
}

Outcome Mpirun(const MpirunArguments& a) {
  if (auto status = CheckDaemons(a); !status.ok()) return FromStatus(status);
  const auto plan = MakePlan(a);
  if (!plan.ok()) return FromStatus(plan.status());
  if (auto status = mpi::CheckProgram(plan->program.front()); !status.ok())
    return FromStatus(status);
  const bool collectives = plan->collective_bytes > 0;
  const auto libraries = mpi::FindRankLibraries(collectives);
  if (!libraries.ok()) return FromStatus(libraries.status());
  mpi::LaunchOptions launch{a.ranks, plan->program, "SOCKET", *libraries, collectives, a.open_mpi};
  if (a.dry_run) {
    fmt::print("{}\n", ShellWords(mpi::OpenMpiCommand(launch)));
    return Outcome::Ok();
  }
  if (auto status = mpi::CheckOpenMpi(); !status.ok()) return FromStatus(status);
  const auto topology = Topology::Create(plan->machine.topology);
  if (!topology.ok()) return FromStatus(topology.status());
  const auto journal = OpenJournal(a, *plan);
  if (!journal.ok()) return FromStatus(journal.status());
  const Clock::time_point start = Clock::now();
  auto end = a.on_daemons() ? RunOnDaemons(a, *plan, *topology, std::move(launch), journal->get())
                            : RunInProcess(a, *plan, *topology, std::move(launch), journal->get());
  if (!end.ok()) return FromStatus(end.status());
  end->wall_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::fflush(stdout);
  PrintJob(*end, *plan, *topology);
  if (*journal) {
    if (auto ended = (*journal)->End(end->result); !ended.ok()) return FromStatus(ended);
    PrintJournal(**journal, *end, a.journal);
  }
  if (!a.report.empty()) {
    if (auto written = WriteJob(a.report, *end, *plan, *topology); !written.ok())
      return FromStatus(written);
  }
  return JobOutcome(end->result, end->status);
}

}  // namespace

CommandBody AddMpirun(CLI::App& app) {
  auto a = std::make_shared<MpirunArguments>();
  a->fabric.name.clear();
  app.add_option(
      "SCENARIO", a->scenario,
      "The machine: a file that ends in .yaml, .json or .textproto, without its workload "
      "(default: a supernode of 32 hubs)");
  app.add_option("PROGRAM", a->program,
                 "Program and its arguments; write -- before it if arguments begin with -");
  app.add_option("-n,--ranks", a->ranks, "Ranks")->check(CLI::Range(1, 4096))->required();
  app.add_option("--map-by", a->map_by,
                 "hub: ranks round robin over hubs; node:K: K ranks on each; or a file with the "
                 "name of a hub per line (default: hub, or the smallest K that fits)");
  app.add_option("--compute", a->compute,
                 "Virtual time of what ranks compute: zero, or cpu:SCALE, their CPU time times "
                 "SCALE")
      ->capture_default_str();
  app.add_option("--collectives", a->collectives,
                 "Short Barrier, Bcast, Reduce and Allreduce: p2p, as messages; cau, on trees of "
                 "CAUs; auto, on CAUs up to 128 bytes")
      ->capture_default_str();
  app.add_option("--set", a->settings, "Change a field of the scenario: path=value (repeatable)")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_option("--open-mpi", a->open_mpi,
                 "One more argument for Open MPI's mpirun (repeatable): --open-mpi=--tag-output")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_option(
      "--control", a->control,
      "unix:PATH at which `percsctl fault ... --controller unix:PATH` changes the faults "
      "of the machine while the program runs");
  app.add_option("--journal", a->journal,
                 "Folder of a journal: `percsctl replay` runs from it what the program did, "
                 "without the program");
  app.add_option("--daemons", a->daemons,
                 "Number of percsd that are started for the program and have the hubs")
      ->check(CLI::Range(1, 4096));
  app.add_option("--name", a->fabric.name, "Name of a local fabric whose daemons have the hubs")
      ->excludes("--daemons");
  AddControllerOptions(app, a->fabric);
  app.add_option("--job", a->job,
                 "Key of the job: programs that share a fabric have different ones, and windows "
                 "that do not overlap")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--first-window", a->first_window,
                 "Number of the first window that ranks take on each hub")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  app.add_option("--report", a->report, "Also write the report to this file, as JSON");
  app.add_flag("--dry-run", a->dry_run, "Print the command that would be started, and do nothing");
  return [a] { return Mpirun(*a); };
}

}  // namespace percs
