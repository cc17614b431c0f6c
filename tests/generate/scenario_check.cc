#include "tests/generate/scenario_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/lib/executor.h"
#include "client/lib/state_digest.h"
#include "daemon/link/codec.h"
#include "emulator/sim/check_scenario.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/convert/run_result.h"
#include "proto/scenario/build.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/describe.h"
#include "proto/scenario/reader.h"
#include "tests/generate/random_scenario.h"
#include "tests/support/executors.h"
#include "tests/support/source_dir.h"
#include "tests/support/split_run.h"

namespace percs::generate {
namespace {

constexpr std::uint64_t kWindowsMax = 2'048, kPacketsMax = 20'000, kAlertsMax = 200'000;
constexpr std::uint64_t kLookEvery = 128;  // windows; looking costs more than a short window
constexpr Time kFirstCut = 2 * kMicrosecond, kLonger = 16, kLongestPause = 200 * kMillisecond;
constexpr std::size_t kOpenPacketsMax = 4096;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// Runs no further than is cheap. True: there was more to come.
bool RunsLong(const Scenario& scenario, RunOptions options, absl::StatusOr<RunResult>* result) {
  bool enough = false;
  options.progress_every_windows = kLookEvery;
  options.progress = [&](const RunProgress& p) {
    enough = p.windows >= kWindowsMax || p.packets_delivered > kPacketsMax;
  };
  // Asked before `progress`, so at the next look.
  options.cancelled = [&] { return enough; };
  *result = RunScenario(scenario, options);
  if (!result->ok()) return enough;
  const NodeStats& total = (*result)->total;
  return total.packets_created > 2 * kPacketsMax || total.alerts_raised > kAlertsMax;
}

// Where a run has had enough windows and packets for a test; 0: it ends before that, or nothing
// happens for long. A window may have any length, so the time that is tried grows.
Time CutOf(const Scenario& scenario) {
  Scenario part = scenario;
  Time before = 1;
  for (Time until = kFirstCut;; before = until, until *= kLonger) {
    const bool all = scenario.stop_at > 0 && until >= scenario.stop_at;
    part.stop_at = all ? scenario.stop_at : until;
    absl::StatusOr<RunResult> result = absl::UnknownError("");
    if (RunsLong(part, {}, &result)) return before;
    if (!result.ok()) return 0;
    const bool ended = until >= kLongestPause && result->virtual_time < until / kLonger;
    if (all || ended) return 0;
  }
}

// The first thing that a checker found and that is not of the scenario's own making: programs of
// windows say which results they expect, and these are drawn at random. "" if there is none.
std::string Violation(const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) {
    if (violation.rfind("windows: ", 0) != 0) return "checkers: " + violation;
  }
  return "";
}

// What does not depend on how it was run.
v1::RunResult Comparable(const RunResult& result, const Topology& topology) {
  v1::RunResult message;
  RunResultToProto(result, topology, &message);
  message.clear_windows();
  return message;
}

std::string Difference(const v1::RunResult& a, const v1::RunResult& b) {
  if (a.digest() != b.digest()) return "another digest";
  google::protobuf::util::MessageDifferencer differencer;
  std::string report;
  differencer.ReportDifferencesToString(&report);
  return differencer.Compare(a, b) ? "" : report.substr(0, 300);
}

// Every batch crosses as bytes.
class Wire {
 public:
  void Cross(int from, int to, Outbox& box) {
    std::string bytes;
    EncodeOutbox(box, &bytes);
    auto& decoder = decoders_[{from, to}];
    if (!decoder) decoder = std::make_unique<OutboxDecoder>(kOpenPacketsMax);
    Outbox decoded;
    const absl::Status status = decoder->Decode(
        absl::MakeConstSpan(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
        &decoded);
    if (!status.ok() && error_.empty()) error_ = "Link codec: " + MessageOf(status);
    box = std::move(decoded);
  }
  const std::string& error() const { return error_; }

 private:
  std::map<std::pair<int, int>, std::unique_ptr<OutboxDecoder>> decoders_;
  std::string error_;
};

// One scenario, run in every way.
class Trial {
 public:
  explicit Trial(v1::Scenario message) : message_(std::move(message)), seed_(message_.seed()) {}

  std::string Run() {
    if (std::string why = Prepare(); done_ || !why.empty()) return why;
    using Way = std::string (Trial::*)();
    for (const Way way : {&Trial::FromFile, &Trial::InParts, &Trial::OnThreads, &Trial::OverWire,
                          &Trial::Split, &Trial::Commanded}) {
      if (std::string why = (this->*way)(); !why.empty()) return why;
    }
    return "";
  }

 private:
  // Builds it and runs it once. A scenario that is refused has nothing more to show.
  std::string Prepare() {
    if (std::string why = Build(); done_ || !why.empty()) return why;
    if (const Time cut = CutOf(scenario_); cut > 0) {
      message_.set_stop_at(cut);
      if (std::string why = Build(); done_ || !why.empty()) return why;
    }
    const auto result = RunScenario(scenario_, {});
    if (!result.ok()) return Judge(result.status());
    if (std::string why = Violation(result->violations); !why.empty()) return why;
    one_ = Comparable(*result, *topology_);
    end_ = result->virtual_time;
    return "";
  }

  std::string Build() {
    const auto built = BuildScenario(message_, test::SourceDir());
    done_ = !built.ok();
    if (done_) return MessageOf(built.status()).empty() ? "refused without a word" : "";
    scenario_ = *built;
    const absl::Status checked = CheckScenario(scenario_, RunsOn::kProcess);
    done_ = !checked.ok();
    if (done_) return MessageOf(checked).empty() ? "refused without a word" : "";
    distributed_ = CheckScenario(scenario_, RunsOn::kDaemons);
    auto topology = Topology::Create(scenario_.topology);
    if (!topology.ok()) return "check: passes what has no topology";
    topology_ = std::make_unique<Topology>(*std::move(topology));
    return "";
  }

  // Whether an error of a run that was not refused is one that its scenario asks for.
  std::string Judge(const absl::Status& status) {
    done_ = true;
    if (status.code() == absl::StatusCode::kFailedPrecondition) {
      const std::string why = MessageOf(status);
      const bool waits = message_.workload().has_windows() || message_.blades_size() > 0;
      const bool breaks = message_.faults_size() > 0;
      if (why.find(": 0 packets are in the fabric") != std::string::npos && (waits || breaks))
        return "";
      // With one VC for all positions the routes between supernodes do have a cycle.
      const bool cyclic =
          scenario_.parameters.vc_policy == VcPolicy::kSingle && scenario_.topology.supernodes > 1;
      if (cyclic && why.find("; wait-for cycle: ") != std::string::npos) return "";
      return "deadlock: " + why;
    }
    return "run: refuses what check passes: " + MessageOf(status);
  }

  std::string Same(const char* way, const absl::StatusOr<RunResult>& result) {
    if (!result.ok()) return fmt::format("{}: {}", way, MessageOf(result.status()));
    if (const std::string why = Violation(result->violations); !why.empty())
      return fmt::format("{}: {}", way, why);
    const std::string difference = Difference(one_, Comparable(*result, *topology_));
    return difference.empty() ? "" : fmt::format("{}: {}", way, difference);
  }

  std::string FromFile() {
    const std::string text = PrintScenarioYaml(message_);
    const auto loaded = LoadScenarioText(text, "a.yaml", ScenarioFormat::kYaml);
    if (!loaded.ok()) return "file: " + MessageOf(loaded.status());
    google::protobuf::util::MessageDifferencer differencer;
    std::string report;
    differencer.ReportDifferencesToString(&report);
    return differencer.Compare(message_, loaded->scenario) ? "" : "file: " + report;
  }

  std::string InParts() {
    RunOptions options;
    options.threads = 2 + static_cast<int>(seed_ % 3);
    options.executor = &test::kBackwards;
    return Same("parts", RunScenario(scenario_, options));
  }

  // Seldom: most of its time is that of threads that wait.
  std::string OnThreads() {
    if (seed_ % 16 != 0) return "";
    ThreadPool pool(2);
    const Executor executor = pool.executor();
    RunOptions options;
    options.threads = 2;
    options.executor = &executor;
    return Same("threads", RunScenario(scenario_, options));
  }

  // As a result that comes from a controller is read.
  std::string OverWire() {
    const auto read = RunResultFromProto(one_, *topology_);
    if (!read.ok()) return "result: " + MessageOf(read.status());
    v1::RunResult again = Comparable(*read, *topology_);
    *again.mutable_trees() = one_.trees();  // stay in the message
    *again.mutable_faults() = one_.faults();
    const std::string difference = Difference(one_, again);
    return difference.empty() ? "" : "result: " + difference;
  }

  std::string Split() {
    Wire wire;
    test::SplitOptions options = test::Processes(1 + static_cast<int>(seed_ / 7 % 4));
    options.seed = seed_;
    options.tamper = [&wire](int from, int to, Outbox& box) { wire.Cross(from, to, box); };
    const auto split = test::SplitRun(scenario_, options);
    if (!wire.error().empty()) return wire.error();
    if (split.status().code() == absl::StatusCode::kInvalidArgument && !distributed_.ok())
      return "";
    if (!distributed_.ok()) return "split: runs what check refuses for daemons";
    return Same("split", split);
  }

  // What every command met, what had been delivered by then, and the digest of the end.
  std::string WithCommands(const std::vector<v1::JournalRecord>& commands, int parts) {
    std::string digests;
    RunOptions options;
    options.threads = parts;
    options.executor = &test::kBackwards;
    for (const v1::JournalRecord& record : commands) {
      options.commands.push_back({record.at(), [&](Fabric& fabric, Time at) {
                                    const absl::Status status = ActOnFabric(record, fabric, at);
                                    digests += status.ToString() + "\n" + DeliveredDigest(fabric);
                                    return status;
                                  }});
    }
    absl::StatusOr<RunResult> result = absl::UnknownError("");
    RunsLong(scenario_, options, &result);
    if (!result.ok()) return digests + result.status().ToString();
    violation_ = Violation(result->violations);
    return digests + Comparable(*result, *topology_).digest();
  }

  std::string Commanded() {
    const auto commands = RandomCommands(seed_, message_, end_);
    if (commands.empty()) return "";
    const std::string first = WithCommands(commands, 1);
    if (!violation_.empty()) return "commands: " + violation_;
    return first == WithCommands(commands, 3) ? "" : "commands: another digest in three parts";
  }

  v1::Scenario message_;
  const std::uint64_t seed_;
  Scenario scenario_;
  absl::Status distributed_;
  std::unique_ptr<Topology> topology_;
  v1::RunResult one_;
  Time end_ = 0;
  bool done_ = false;
  std::string violation_;
};

}  // namespace

std::string FailureOf(const v1::Scenario& scenario) { return Trial(scenario).Run(); }

v1::Scenario Bounded(v1::Scenario scenario) {
  const auto built = BuildScenario(scenario, test::SourceDir());
  const Time cut = built.ok() ? CutOf(*built) : 0;
  if (cut > 0) scenario.set_stop_at(cut);
  return scenario;
}

std::string FailureOf(std::uint64_t seed) {
  std::vector<std::string> refused;
  const v1::Scenario scenario = RandomScenario(seed, &refused);
  for (const std::string& message : refused) {
    if (message.empty()) return "check: refuses without a word";
  }
  return FailureOf(scenario);
}

}  // namespace percs::generate
