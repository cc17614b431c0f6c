// percsctl mpirun: an MPI program as its package ships it, on an emulated machine in this process.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "client/lib/scenario_file.h"
#include "client/mpi/control.h"
#include "client/mpi/job.h"
#include "client/mpi/job_journal.h"
#include "client/mpi/launch.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fault.h"
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/reader.h"

extern char** environ;

namespace percs {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kChildPoll = std::chrono::milliseconds(5);
constexpr auto kProgressEvery = std::chrono::milliseconds(1000);
constexpr auto kGrace = std::chrono::seconds(5);  // from a failure to SIGTERM, and to SIGKILL
constexpr std::size_t kRankRows = 16;
constexpr const char* kDefaultMachine =
    "name: mpirun\ntopology: {supernodes: 1, drawers: 4, hubs: 8}\n";

struct MpirunArguments {
  std::uint32_t ranks = 1;
  std::string scenario, map_by, compute = "zero", collectives = "p2p", report, control, journal;
  std::vector<std::string> program, settings, open_mpi;
  bool dry_run = false;
};

// The scenario's machine and the program, both from what stands on the command line.
struct Plan {
  v1::Scenario message;
  Scenario machine;
  std::vector<std::string> program;
  std::vector<mpi::RankPlace> places;
  double compute_scale = 0;
  std::uint64_t collective_bytes = 0;
};

bool IsScenario(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
         word.ends_with(".textproto");
}

absl::StatusOr<double> ComputeScale(const std::string& compute) {
  double scale = 1;
  if (compute == "zero") return 0.0;
  if (compute == "cpu") return scale;
  if (compute.starts_with("cpu:") && absl::SimpleAtod(compute.substr(4), &scale) && scale > 0 &&
      scale <= 1000)
    return scale;
  return absl::InvalidArgumentError(fmt::format(
      "--compute {}: zero, cpu, or cpu:SCALE with a scale of more than 0, at most 1000", compute));
}

// Of those on CAUs, at most.
absl::StatusOr<std::uint64_t> CollectiveBytes(const std::string& collectives) {
  const mpi::TransportParameters parameters;
  if (collectives == "p2p") return 0;
  if (collectives == "cau") return parameters.collective_bytes;
  if (collectives == "auto") return parameters.collective_bytes_auto;
  return absl::InvalidArgumentError(fmt::format("--collectives {}: p2p, cau or auto", collectives));
}

absl::StatusOr<Plan> MakePlan(const MpirunArguments& a) {
  Plan plan;
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
  auto places =
      mpi::PlaceRanks(map_by, a.ranks, *topology, plan.machine.parameters.windows_per_hfi);
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

int AwaitEnd(const mpi::Job& job, pid_t pid, Clock::time_point start) {
  const Child child(pid);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  Clock::time_point shown = start, failed{};
  while (true) {
    if (const auto status = Child::Ended()) {
      if (terminal && shown != start) fmt::print(stderr, "\r\x1b[K");
      return *status;
    }
    const Clock::time_point now = Clock::now();
    if (job.failed()) {
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
      fmt::print(stderr, "\r\x1b[K{} virtual, {} wall, {} messages", FormatShort(job.now()),
                 FormatWall(std::chrono::duration<double>(now - start).count()),
                 FormatCount(job.messages()));
    }
    std::this_thread::sleep_for(kChildPoll);
  }
}

std::string SizeName(std::size_t bucket) {
  return bucket == 0 ? "0 B" : "<= " + FormatBytes(std::uint64_t{1} << (bucket - 1));
}

mpi::TrafficCounts SumTraffic(const mpi::JobResult& result) {
  mpi::TrafficCounts sum;
  for (const mpi::RankSummary& rank : result.ranks) {
    const mpi::TrafficCounts& t = rank.traffic;
    sum.messages += t.messages, sum.bytes += t.bytes;
    sum.eager += t.eager, sum.rendezvous += t.rendezvous, sum.local += t.local;
    sum.packets += t.packets, sum.resent += t.resent;
    sum.acknowledgements += t.acknowledgements, sum.unexpected += t.unexpected;
    for (std::size_t i = 0; i < std::size(t.by_size); ++i) sum.by_size[i] += t.by_size[i];
  }
  return sum;
}

// With what they cost.
FaultList FaultsOf(const mpi::JobResult& result, const Topology& topology) {
  FaultList list;
  for (const FaultStatus& fault : result.run.faults)
    FaultToProto(fault, result.run, topology, list.Add());
  return list;
}

std::uint64_t LostToFaults(const mpi::JobResult& result) {
  std::uint64_t lost = 0;
  for (const FaultTally& tally : result.run.tallies) lost += tally.losses.lost;
  return lost;
}

std::string RankTable(const mpi::JobResult& result, const Plan& plan, const Topology& topology) {
  Table table(
      {"rank", "hub", "virtual time", "computing", "communicating", "waiting", "messages", "bytes"},
      "rlrrrrrr");
  for (std::size_t r = 0; r < std::min(result.ranks.size(), kRankRows); ++r) {
    const mpi::RankSummary& rank = result.ranks[r];
    table.Add({fmt::format("{}", r), topology.NodeName(plan.places[r].hub), FormatShort(rank.total),
               FormatShort(rank.computing), FormatShort(rank.total - rank.computing - rank.waiting),
               FormatShort(rank.waiting), FormatCount(rank.traffic.messages),
               FormatBytes(rank.traffic.bytes)});
  }
  std::string text = table.ToString(2);
  if (result.ranks.size() > kRankRows)
    text += fmt::format("  ... and {} more ranks\n", result.ranks.size() - kRankRows);
  return text;
}

std::string CollectivesText(const mpi::CollectiveCounts& c) {
  std::string text = fmt::format(
      "on CAUs    {} barriers, {} broadcasts, {} reduces, {} allreduces; communicators: {} with a "
      "tree, {} without",
      FormatCount(c.calls[0]), FormatCount(c.calls[1]), FormatCount(c.calls[2]),
      FormatCount(c.calls[3]), c.groups, c.refused);
  if (c.repairs > 0) text += fmt::format("; {} repairs", c.repairs);
  return text + "\n";
}

// To standard error, so that the program's output can be piped.
void PrintJob(const mpi::JobResult& result, const Plan& plan, const Topology& topology,
              double wall_seconds) {
  const mpi::TrafficCounts sum = SumTraffic(result);
  fmt::print(stderr, "\n{} on {} ranks: {}, {} wall\n", plan.program.front(), result.ranks.size(),
             FormatVirtual(result.virtual_time), FormatWall(wall_seconds));
  fmt::print(stderr, "{}", RankTable(result, plan, topology));
  fmt::print(stderr,
             "messages   {} with {}: {} eager, {} by rendezvous, {} on one hub; {} unexpected\n",
             FormatCount(sum.messages), FormatBytes(sum.bytes), FormatCount(sum.eager),
             FormatCount(sum.rendezvous), FormatCount(sum.local), FormatCount(sum.unexpected));
  std::string sizes;
  for (std::size_t i = 0; i < std::size(sum.by_size); ++i) {
    if (sum.by_size[i] > 0)
      sizes += fmt::format("{}{}: {}", sizes.empty() ? "" : ", ", SizeName(i),
                           FormatCount(sum.by_size[i]));
  }
  fmt::print(stderr, "by size    {}\n", sizes.empty() ? "none" : sizes);
  fmt::print(stderr, "packets    {}, {} sent again, {} acknowledgements\n",
             FormatCount(sum.packets), FormatCount(sum.resent), FormatCount(sum.acknowledgements));
  if (plan.collective_bytes > 0) fmt::print(stderr, "{}", CollectivesText(result.collectives));
  for (const mpi::LinkUse& link : result.links)
    fmt::print(stderr, "link       {}: {} flits\n", link.name, FormatCount(link.flits));
  const FaultList faults = FaultsOf(result, topology);
  if (!faults.empty()) fmt::print(stderr, "{}", FaultsText(faults));
  fmt::print(stderr, "{}", ReroutesText(result.run, topology));
  if (const std::uint64_t lost = LostToFaults(result); lost > 0)
    fmt::print(stderr, "faults     {} packets lost where a fault was\n", FormatCount(lost));
  if (result.late_calls > 0) {
    fmt::print(stderr,
               "late       {} times a rank called that had said it would wait: times depend on the "
               "machine's speed\n",
               FormatCount(result.late_calls));
  }
  for (const std::string& violation : result.run.violations)
    fmt::print(stderr, "violation  {}\n", violation);
  fmt::print(stderr, "digest     {}\ntimes      {}\n", result.digest.ToString(),
             result.times.ToString());
}

absl::Status WriteJob(const std::string& file, const mpi::JobResult& result, const Plan& plan,
                      const Topology& topology, double wall_seconds) {
  const mpi::TrafficCounts sum = SumTraffic(result);
  Json ranks = Json::array(), links = Json::array(), sizes = Json::array();
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const mpi::RankSummary& rank = result.ranks[r];
    ranks.push_back({{"rank", r},
                     {"hub", topology.NodeName(plan.places[r].hub)},
                     {"window", plan.places[r].window},
                     {"virtual_ps", rank.total},
                     {"computing_ps", rank.computing},
                     {"waiting_ps", rank.waiting},
                     {"messages", rank.traffic.messages},
                     {"bytes", rank.traffic.bytes},
                     {"finalized", rank.ended}});
  }
  for (const mpi::LinkUse& link : result.links)
    links.push_back({{"link", link.name}, {"flits", link.flits}});
  for (std::size_t i = 0; i < std::size(sum.by_size); ++i) {
    if (sum.by_size[i] > 0)
      sizes.push_back(
          {{"bytes_max", i == 0 ? 0 : std::uint64_t{1} << (i - 1)}, {"messages", sum.by_size[i]}});
  }
  const Json report = {{"program", plan.program},
                       {"virtual_ps", result.virtual_time},
                       {"wall_seconds", wall_seconds},
                       {"digest", result.digest.ToString()},
                       {"times", result.times.ToString()},
                       {"failure", result.failure},
                       {"violations", result.run.violations},
                       {"messages", sum.messages},
                       {"bytes", sum.bytes},
                       {"eager", sum.eager},
                       {"rendezvous", sum.rendezvous},
                       {"local", sum.local},
                       {"unexpected", sum.unexpected},
                       {"packets", sum.packets},
                       {"resent", sum.resent},
                       {"late_calls", result.late_calls},
                       {"sizes", std::move(sizes)},
                       {"links", std::move(links)},
                       {"faults", FaultsJson(FaultsOf(result, topology))},
                       {"collectives",
                        {{"barriers", result.collectives.calls[0]},
                         {"broadcasts", result.collectives.calls[1]},
                         {"reduces", result.collectives.calls[2]},
                         {"allreduces", result.collectives.calls[3]},
                         {"communicators", result.collectives.groups},
                         {"refused", result.collectives.refused},
                         {"repairs", result.collectives.repairs}}},
                       {"reroutes", result.run.reroutes.size()},
                       {"lost_to_faults", LostToFaults(result)},
                       {"ranks", std::move(ranks)}};
  std::ofstream stream(file);
  stream << report.dump(2) << "\n";
  stream.close();
  if (stream) return absl::OkStatus();
  return absl::InternalError(fmt::format("cannot write the report to {}", file));
}

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
                                                             const Plan& plan) {
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

Outcome Mpirun(const MpirunArguments& a) {
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
  mpi::JobOptions options;
  options.machine = plan->machine;
  options.places = plan->places;
  options.compute_scale = plan->compute_scale;
  options.collective_bytes = plan->collective_bytes;
  const auto journal = OpenJournal(a, *plan);
  if (!journal.ok()) return FromStatus(journal.status());
  options.journal = journal->get();
  auto job = mpi::Job::Start(std::move(options));
  if (!job.ok()) return FromStatus(job.status());
  std::unique_ptr<mpi::JobControl> control;
  if (!a.control.empty()) {
    auto started = mpi::JobControl::Start(a.control, **job);
    if (!started.ok()) return FromStatus(started.status());
    control = *std::move(started);
  }
  const Clock::time_point start = Clock::now();
  launch.socket = (*job)->socket();
  const auto child = Child::Start(mpi::OpenMpiCommand(launch));
  if (!child.ok()) return FromStatus(child.status());
  const int status = AwaitEnd(**job, *child, start);
  const mpi::JobResult result = (*job)->Finish();
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  std::fflush(stdout);
  PrintJob(result, *plan, *topology, wall);
  if (*journal) {
    if (auto ended = (*journal)->End(result); !ended.ok()) return FromStatus(ended);
    const std::uint64_t bytes = (*journal)->bytes();
    const mpi::TrafficCounts sum = SumTraffic(result);
    const std::uint64_t beside =
        (bytes - std::min(bytes, sum.bytes)) / std::max<std::uint64_t>(1, sum.messages);
    fmt::print(stderr,
               "journal    {} of calls: {} a message, beside what is in it; percsctl replay {}\n",
               FormatBytes(bytes), FormatBytes(beside), a.journal);
  }
  if (!a.report.empty()) {
    if (auto written = WriteJob(a.report, result, *plan, *topology, wall); !written.ok())
      return FromStatus(written);
  }
  return JobOutcome(result, status);
}

}  // namespace

CommandBody AddMpirun(CLI::App& app) {
  auto a = std::make_shared<MpirunArguments>();
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
  app.add_option("--report", a->report, "Also write the report to this file, as JSON");
  app.add_flag("--dry-run", a->dry_run, "Print the command that would be started, and do nothing");
  return [a] { return Mpirun(*a); };
}

}  // namespace percs
