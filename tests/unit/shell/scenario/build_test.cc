// From files to the machine's struct: every workload, defaults, and the whole message for what only
// the machine can refuse.
#include "proto/scenario/build.h"

#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/file.h"
#include "proto/scenario/reader.h"

namespace percs {
namespace {

absl::StatusOr<Scenario> Build(const std::string& yaml, const std::string& directory = "") {
  auto loaded = LoadScenarioText(yaml, "a.yaml", ScenarioFormat::kYaml);
  if (!loaded.ok()) return loaded.status();
  loaded->directory = directory;
  return BuildScenario(*loaded);
}

std::string ErrorOf(const std::string& yaml, const std::string& directory = "") {
  const auto scenario = Build(yaml, directory);
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

template <typename W>
W WorkloadOf(const std::string& yaml) {
  const auto scenario = Build(yaml);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_TRUE(scenario.ok() && std::holds_alternative<W>(scenario->workload)) << yaml;
  return scenario.ok() ? std::get<W>(scenario->workload) : W();
}

constexpr char kTwoSupernodes[] = "topology: {supernodes: 2, drawers: 2, hubs: 2}\n";

TEST(Build, AnEmptyScenarioIsTheStructsOwnDefaults) {
  const auto scenario = BuildScenario(v1::Scenario(), "");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Scenario defaults;
  EXPECT_EQ(scenario->name, defaults.name);
  EXPECT_EQ(scenario->seed, defaults.seed);
  EXPECT_EQ(scenario->reroute, defaults.reroute);
  EXPECT_EQ(scenario->stop_at, defaults.stop_at);
  EXPECT_EQ(scenario->topology.supernodes, defaults.topology.supernodes);
  EXPECT_EQ(scenario->topology.drawers, defaults.topology.drawers);
  EXPECT_EQ(scenario->topology.hubs, defaults.topology.hubs);
  EXPECT_EQ(scenario->topology.d_links_per_pair, defaults.topology.d_links_per_pair);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(scenario->workload));
}

TEST(Build, AllToAllFieldsArrive) {
  const auto w = WorkloadOf<AllToAllWorkload>(
      "workload: {all_to_all: {bytes: 1MiB, schedule: linear, reliable: false, payload: lengths}}");
  EXPECT_EQ(w.bytes, 1u << 20);
  EXPECT_EQ(w.schedule, Schedule::kLinear);
  EXPECT_FALSE(w.reliable);
  EXPECT_EQ(w.payload, PayloadMode::kLengths);
}

TEST(Build, AllToAllDefaultsAreTheOnesInTheTable) {
  v1::AllToAll filled;
  FillDefaults(&filled);
  v1::Scenario scenario;
  *scenario.mutable_workload()->mutable_all_to_all() = filled;
  const auto explicit_defaults = BuildScenario(scenario, "");
  ASSERT_TRUE(explicit_defaults.ok()) << explicit_defaults.status();
  const auto& a = std::get<AllToAllWorkload>(explicit_defaults->workload);
  const AllToAllWorkload b;
  EXPECT_TRUE(a.bytes == b.bytes && a.schedule == b.schedule && a.reliable == b.reliable &&
              a.payload == b.payload);
}

TEST(Build, PatternDefaultsAreTheOnesInTheTable) {
  v1::Scenario scenario;
  FillDefaults(scenario.mutable_workload()->mutable_pattern());
  const auto built = BuildScenario(scenario, "");
  // warm_up has the default 0ps, which is no phase.
  ASSERT_TRUE(built.ok()) << built.status();
  const auto& a = std::get<PatternWorkload>(built->workload);
  const PatternWorkload b;
  EXPECT_TRUE(a.pattern == b.pattern && a.message_bytes == b.message_bytes && a.count == b.count &&
              a.load == b.load && a.warm_up == b.warm_up && a.measure == b.measure &&
              a.reliable == b.reliable && a.payload == b.payload && a.hotspot == b.hotspot &&
              a.hotspot_fraction == b.hotspot_fraction &&
              a.source_supernode == b.source_supernode &&
              a.destination_supernode == b.destination_supernode);
}

TEST(Build, EveryPatternHasItsName) {
  const std::pair<const char*, Pattern> kPatterns[] = {{"uniform", Pattern::kUniform},
                                                       {"hotspot", Pattern::kHotspot},
                                                       {"neighbor", Pattern::kNeighbor},
                                                       {"tornado", Pattern::kTornado},
                                                       {"bitcomp", Pattern::kBitcomp},
                                                       {"randperm", Pattern::kRandperm},
                                                       {"supernode_pair", Pattern::kSupernodePair}};
  for (const auto& [name, pattern] : kPatterns) {
    const auto w = WorkloadOf<PatternWorkload>(
        fmt::format("{}workload: {{pattern: {{pattern: {}}}}}\n", kTwoSupernodes, name));
    EXPECT_EQ(w.pattern, pattern) << name;
  }
  const auto w = WorkloadOf<PatternWorkload>(
      "topology: {drawers: 2}\nworkload: {pattern: {pattern: transpose}}\n");
  EXPECT_EQ(w.pattern, Pattern::kTranspose);
}

TEST(Build, PatternFieldsArrive) {
  const auto w = WorkloadOf<PatternWorkload>(std::string(kTwoSupernodes) + R"(
workload:
  pattern: {pattern: hotspot, message_bytes: 300B, load: 0.75, warm_up: 1us, measure: 2us,
            reliable: true, payload: verified, hotspot: sn1-d0-h1, hotspot_fraction: 0.5}
)");
  EXPECT_EQ(w.message_bytes, 300u);
  EXPECT_EQ(w.load, 0.75);
  EXPECT_EQ(w.warm_up, kMicrosecond);
  EXPECT_EQ(w.measure, 2 * kMicrosecond);
  EXPECT_TRUE(w.reliable);
  EXPECT_EQ(w.payload, PayloadMode::kVerified);
  EXPECT_EQ(w.hotspot, 5u);
  EXPECT_EQ(w.hotspot_fraction, 0.5);
}

TEST(Build, ACountIsOfferedAsFastAsTheHfiTakesItUnlessALoadIsGiven) {
  EXPECT_EQ(WorkloadOf<PatternWorkload>("workload: {pattern: {count: 5}}").load, 0);
  const auto w = WorkloadOf<PatternWorkload>("workload: {pattern: {count: 5, load: 0.25}}");
  EXPECT_EQ(w.count, 5u);
  EXPECT_EQ(w.load, 0.25);
}

TEST(Build, PacketsArrive) {
  const auto w = WorkloadOf<ScriptedWorkload>(R"(
topology: {drawers: 1, hubs: 2}
workload:
  packets:
    - {at: 5ns, source: sn0-d0-h1, destination: sn0-d0-h0, bytes: 100B,
       source_window: 511, destination_window: 3}
    - {source: sn0-d0-h0, destination: sn0-d0-h1}
)");
  ASSERT_EQ(w.packets.size(), 2u);
  EXPECT_EQ(w.packets[0].at, 5'000);
  EXPECT_EQ(w.packets[0].source, 1u);
  EXPECT_EQ(w.packets[0].destination, 0u);
  EXPECT_EQ(w.packets[0].bytes, 100);
  EXPECT_EQ(w.packets[0].source_window, 511);
  EXPECT_EQ(w.packets[0].destination_window, 3);
  EXPECT_EQ(w.packets[1].bytes, ScriptedPacket().bytes);
}

TEST(Build, TicksArrive) {
  const auto w = WorkloadOf<TickWorkload>("workload: {ticks: {hubs: 4, period: 3us, count: 7}}");
  EXPECT_EQ(w.hubs, 4u);
  EXPECT_EQ(w.period, 3 * kMicrosecond);
  EXPECT_EQ(w.count, 7u);
  const auto defaults = WorkloadOf<TickWorkload>("workload: {ticks: {}}");
  EXPECT_EQ(defaults.hubs, TickWorkload().hubs);
  EXPECT_EQ(defaults.period, TickWorkload().period);
  EXPECT_EQ(defaults.count, TickWorkload().count);
}

TEST(Build, FaultsNameTheLowerEndOfTheirLink) {
  const auto scenario = Build(R"(
faults:
  - {at: 5us, link_down: sn0-d1-h0/sn0-d0-h0}
  - {at: 9us, link_up: sn0-d0-h0/sn0-d1-h0}
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  ASSERT_EQ(scenario->faults.size(), 2u);
  EXPECT_EQ(scenario->faults[0].link.node, 0u);
  EXPECT_EQ(scenario->faults[0].link, scenario->faults[1].link);
  EXPECT_EQ(scenario->faults[0].at, 5 * kMicrosecond);
  EXPECT_FALSE(scenario->faults[0].up);
  EXPECT_TRUE(scenario->faults[1].up);
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(Build, RefusesWhatTheMachineCannotDo) {
  const Bad kBad[] = {
      {"workload: {pattern: {count: 5, measure: 1us}}\n",
       "a.yaml:1:41: workload.pattern.measure: count and measure exclude each other; remove one"},
      {"workload: {pattern: {warm_up: 1us}}\n",
       "a.yaml:1:31: workload.pattern.warm_up: warm_up without measure; write for example "
       "`measure: 100us`"},
      {"workload:\n  packets: [{source: sn0-d0-h0, destination: sn0-d0-h1, source_window: 512}]\n",
       "a.yaml:2:72: workload.packets[0].source_window: window 512 does not exist; a hub has "
       "2 x windows_per_hfi = 2 x 256 = 512, allowed: 0 to 511"},
      {"topology: {drawers: 1, hubs: 4}\nworkload: {ticks: {hubs: 5}}\n",
       "a.yaml:2:26: workload.ticks.hubs: 5 hubs cannot tick, the machine has 4; write at most 4"},
      {"parameters: {detect: 10ns}\n",
       "a.yaml:1:22: parameters.detect: detect = 10ns is less than management_latency = 1us, but "
       "an "
       "alert arrives only after that; write at least 1us"},
      {"faults:\n  - {at: 5us, link_up: sn0-d0-h0:LL0}\n",
       "a.yaml:2:24: faults[0].link_up: sn0-d0-h0:LL0 is up already from the start; remove this "
       "fault or put a link_down before it"},
      {"faults:\n  - {at: 6us, link_down: sn0-d0-h1:LL0}\n"
       "  - {at: 5us, link_down: sn0-d0-h0:LL0}\n",
       "a.yaml:2:26: faults[0].link_down: sn0-d0-h0:LL0 is down already since 5us; remove this "
       "fault "
       "or put a link_up before it"},
      {"faults:\n  - {at: 5us, link_down: sn0-d0-h0:LL0}\n"
       "  - {at: 5us, link_up: sn0-d0-h0:LL0}\n",
       "a.yaml:3:24: faults[1].link_up: sn0-d0-h0:LL0 goes down and comes up at the same time 5us; "
       "put time between the two"},
  };
  for (const Bad& bad : kBad) EXPECT_EQ(ErrorOf(bad.text), bad.message) << bad.text;
}

// What topology and pattern say is theirs to test; where they say it is asserted here.
TEST(Build, LocatesWhatTheMachineSays) {
  const Bad kBad[] = {
      {"topology: {supernodes: 513, drawers: 1, hubs: 1}\n", "a.yaml:1:1: topology: "},
      {"faults:\n  - {at: 5us, link_down: sn0-d0-h9:LL0}\n", "a.yaml:2:26: faults[0].link_down: "},
      {"workload: {pattern: {pattern: hotspot, hotspot: sn4-d0-h0}}\n",
       "a.yaml:1:49: workload.pattern.hotspot: "},
      {"workload: {pattern: {pattern: supernode_pair}}\n",
       "a.yaml:1:31: workload.pattern.pattern: pattern supernode_pair needs two supernodes; "},
      {"topology: {hubs: 7}\nworkload: {pattern: {pattern: bitcomp}}\n",
       "a.yaml:2:31: workload.pattern.pattern: pattern bitcomp needs a number of hubs that is a "
       "power of two; "},
      {"workload:\n  packets: [{source: hub0, destination: sn0-d0-h1}]\n",
       "a.yaml:2:22: workload.packets[0].source: "},
  };
  for (const Bad& bad : kBad) {
    const std::string message = ErrorOf(bad.text);
    EXPECT_EQ(message.substr(0, std::string(bad.message).size()), bad.message) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Build, AMessageFromTheWireIsCheckedToo) {
  v1::Scenario scenario;
  scenario.mutable_topology()->set_hubs(9);
  scenario.add_faults()->set_link_down("sn0-d0-h0:LL0");
  EXPECT_EQ(BuildScenario(scenario, "").status().message(),
            "scenario: topology.hubs: 9 is out of range; allowed: 1 to 8\n"
            "scenario: faults[0].at: missing; write for example `at: 5us`");
}

class TraceFiles : public testing::Test {
 protected:
  TraceFiles() : folder_(testing::TempDir() + "percs_traces/") {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + name, std::ios::binary) << bytes;
  }
  static std::string Yaml(const std::string& file) {
    return "topology: {drawers: 1, hubs: 2}\nworkload:\n  trace: {file: " + file +
           ", mapping: block, calc_scale: 0.5}\n";
  }
  static constexpr char kGoal[] =
      "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 5\n}\nrank 1 {\nl1: recv 8b from 0 tag 5\n}\n";
  std::string folder_;
};

TEST_F(TraceFiles, PlainAndCompressedTracesAreTheSame) {
  Write("plain.goal", kGoal);
  Write("packed.goal.gz", Gzip(kGoal));
  for (const char* file : {"plain.goal", "packed.goal.gz"}) {
    const auto scenario = Build(Yaml(file), folder_);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto& w = std::get<TraceWorkload>(scenario->workload);
    ASSERT_EQ(w.trace.ranks.size(), 2u);
    EXPECT_EQ(w.trace.ranks[0][0].size, 8u);
    EXPECT_EQ(w.mapping, RankMapping::kBlock);
    EXPECT_EQ(w.calc_scale, 0.5);
  }
}

TEST_F(TraceFiles, AnInlinedTraceNeedsNoFile) {
  Write("plain.goal", kGoal);
  auto message = ReadScenarioText(Yaml("plain.goal"), "a.yaml", ScenarioFormat::kYaml);
  ASSERT_TRUE(message.ok());
  ASSERT_TRUE(InlineFiles(&*message, folder_).ok());
  EXPECT_TRUE(IsGzip(message->workload().trace().inline_trace()));
  v1::Scenario wire;
  ASSERT_TRUE(wire.ParseFromString(message->SerializeAsString()));
  const auto scenario = BuildScenario(wire, "nowhere");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(std::get<TraceWorkload>(scenario->workload).trace.ranks.size(), 2u);
}

TEST_F(TraceFiles, ABrokenTraceIsNamedWithItsPlace) {
  EXPECT_EQ(ErrorOf(Yaml("absent.goal"), folder_),
            "a.yaml:3:17: workload.trace.file: " + folder_ +
                "absent.goal: cannot be opened: No such file or directory; `file` is relative to "
                "the scenario file");
  Write("short.goal.gz", Gzip(kGoal).substr(0, 30));
  EXPECT_EQ(ErrorOf(Yaml("short.goal.gz"), folder_),
            "a.yaml:3:17: workload.trace.file: short.goal.gz: not a whole gzip file: it ends too "
            "early");
  Write("bad.goal", "num_ranks 2\nrank 0 {\nl1: sned 8b to 1\n}\n");
  const std::string message = ErrorOf(Yaml("bad.goal"), folder_);
  const std::string begin = "a.yaml:3:17: workload.trace.file: bad.goal:3:";
  EXPECT_EQ(message.substr(0, begin.size()), begin) << message;
}

TEST(Build, EveryExampleBuilds) {
  for (const auto& entry :
       std::filesystem::directory_iterator(PERCS_SOURCE_DIR "/deploy/scenarios")) {
    if (!entry.is_regular_file()) continue;
    const auto scenario = BuildScenarioFile(entry.path().string());
    EXPECT_TRUE(scenario.ok()) << scenario.status();
  }
}

TEST(Build, PacingComesFromRun) {
  v1::Scenario scenario;
  EXPECT_FALSE(PacingOf(scenario).live);
  EXPECT_EQ(PacingOf(scenario).pace, kMicrosecond);
  scenario.mutable_run()->set_clock(v1::CLOCK_LIVE);
  scenario.mutable_run()->set_pace(0);
  EXPECT_TRUE(PacingOf(scenario).live);
  EXPECT_EQ(PacingOf(scenario).pace, 0);
}

}  // namespace
}  // namespace percs
