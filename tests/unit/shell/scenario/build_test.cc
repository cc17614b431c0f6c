// From files to the machine's struct: every workload, defaults, and the whole message for what only
// the machine can refuse.
#include "proto/scenario/build.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "emulator/workload/ticks.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/file.h"
#include "proto/scenario/reader.h"
#include "tests/support/scenario_text.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

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
  EXPECT_TRUE(
      a.pattern == b.pattern && a.message_bytes == b.message_bytes && a.count == b.count &&
      a.load == b.load && a.warm_up == b.warm_up && a.measure == b.measure &&
      a.reliable == b.reliable && a.payload == b.payload && a.hotspot == b.hotspot &&
      a.hotspot_fraction == b.hotspot_fraction && a.source_supernode == b.source_supernode &&
      a.destination_supernode == b.destination_supernode &&
      a.supernode_offset == b.supernode_offset && a.uniform_fraction == b.uniform_fraction &&
      a.burst_messages == b.burst_messages && a.burst_load == b.burst_load &&
      a.injection == b.injection && a.outstanding == b.outstanding && a.drain == b.drain);
}

TEST(Build, EveryPatternHasItsName) {
  const std::pair<const char*, Pattern> kPatterns[] = {{"uniform", Pattern::kUniform},
                                                       {"hotspot", Pattern::kHotspot},
                                                       {"neighbor", Pattern::kNeighbor},
                                                       {"tornado", Pattern::kTornado},
                                                       {"bitcomp", Pattern::kBitcomp},
                                                       {"randperm", Pattern::kRandperm},
                                                       {"supernode_pair", Pattern::kSupernodePair},
                                                       {"bitrev", Pattern::kBitrev},
                                                       {"shuffle", Pattern::kShuffle},
                                                       {"adversarial", Pattern::kAdversarial},
                                                       {"stencil", Pattern::kStencil}};
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

TEST(Build, FieldsOfBurstsAndOfAdversarialTrafficArrive) {
  const auto w = WorkloadOf<PatternWorkload>(R"(
topology: {supernodes: 4}
workload:
  pattern: {pattern: adversarial, supernode_offset: 3, uniform_fraction: 0.25, load: 0.1,
            burst_messages: 20, burst_load: 0.5}
)");
  EXPECT_EQ(w.supernode_offset, 3);
  EXPECT_EQ(w.uniform_fraction, 0.25);
  EXPECT_EQ(w.burst_messages, 20u);
  EXPECT_EQ(w.burst_load, 0.5);
}

TEST(Build, FieldsOfInjectionArriveAndAClosedLoopHasNoLoad) {
  const auto slots = WorkloadOf<PatternWorkload>(
      "workload: {pattern: {injection: bernoulli, load: 0.25, measure: 1us}}");
  EXPECT_EQ(slots.injection, Injection::kBernoulli);
  EXPECT_EQ(slots.load, 0.25);
  const auto closed = WorkloadOf<PatternWorkload>(
      "workload: {pattern: {outstanding: 4, reliable: true, measure: 1us}}");
  EXPECT_EQ(closed.outstanding, 4u);
  EXPECT_EQ(closed.load, 0);
}

TEST(Build, ADrainStopsTheRunAtItsEnd) {
  const auto stop = [](const std::string& other) {
    const auto scenario =
        Build(other + "workload: {pattern: {load: 0.1, warm_up: 1us, measure: 2us, drain: 3us}}");
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    return scenario.ok() ? scenario->stop_at : 0;
  };
  EXPECT_EQ(stop(""), 6 * kMicrosecond);
  EXPECT_EQ(stop("stop_at: 9us\n"), 6 * kMicrosecond);
  EXPECT_EQ(stop("stop_at: 5us\n"), 5 * kMicrosecond);
  EXPECT_THAT(
      ErrorOf("workload: {collective: {}, background: {load: 0.1, measure: 2us, drain: 3us}}"),
      testing::HasSubstr("drain ends the run"));
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
  const auto ticks =
      WorkloadOf<OtherWorkload>("workload: {ticks: {hubs: 4, period: 3us, count: 7}}");
  const auto* w = ticks.target<TickWorkload>();
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->hubs, 4u);
  EXPECT_EQ(w->period, 3 * kMicrosecond);
  EXPECT_EQ(w->count, 7u);
  const auto unset = WorkloadOf<OtherWorkload>("workload: {ticks: {}}");
  const auto* defaults = unset.target<TickWorkload>();
  ASSERT_NE(defaults, nullptr);
  EXPECT_EQ(defaults->hubs, TickWorkload().hubs);
  EXPECT_EQ(defaults->period, TickWorkload().period);
  EXPECT_EQ(defaults->count, TickWorkload().count);
}

TEST(Build, FaultsNameTheLowerEndOfTheirLink) {
  const auto scenario = Build(R"(
faults:
  - {at: 5us, link_down: sn0-d1-h0/sn0-d0-h0}
  - {at: 9us, link_up: sn0-d0-h0/sn0-d1-h0}
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  ASSERT_EQ(scenario->faults.size(), 2u);
  EXPECT_EQ(scenario->faults[0].select.link->node, 0u);
  EXPECT_EQ(scenario->faults[0].select.link, scenario->faults[1].select.link);
  EXPECT_EQ(scenario->faults[0].at, 5 * kMicrosecond);
  EXPECT_EQ(scenario->faults[0].sets, FaultSets::kBroken);
  EXPECT_EQ(scenario->faults[1].sets, FaultSets::kMended);
}

struct BadMachine {
  const char* text;
  const char* message;
};

TEST(Build, RefusesWhatTheMachineCannotDo) {
  const BadMachine kBad[] = {
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
      {"workload: {ticks: {}, background: {load: 0.1, measure: 1us}}\n",
       "a.yaml:1:23: workload.background: background is only for workloads cau, collective and "
       "trace; this workload is "
       "traffic itself"},
      {"workload: {collective: {}, background: {measure: 1us, reliable: true}}\n",
       "a.yaml:1:28: workload.background: beside collective and trace, whose messages have their "
       "own content, background is raw packets: leave out reliable and payload"},
      {"workload: {collective: {}, background: {hotspot: sn9-d0-h0}}\n",
       "a.yaml:1:50: workload.background.hotspot: no hub is named \"sn9-d0-h0\"; the nearest are "
       "sn0-d0-h0, sn0-d0-h1 or "
       "sn0-d0-h2"},
  };
  for (const BadMachine& bad : kBad) EXPECT_EQ(ErrorOf(bad.text), bad.message) << bad.text;
}

TEST(Build, TrafficBesideAWorkload) {
  const auto scenario = Build(
      "trees: [{name: t, members: all}]\n"
      "workload: {cau: {}, background: {load: 0.25, reliable: true, measure: 5us}}\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_TRUE(std::holds_alternative<CauWorkload>(scenario->workload));
  ASSERT_TRUE(scenario->background);
  EXPECT_EQ(scenario->background->load, 0.25);
  EXPECT_TRUE(scenario->background->reliable);
  EXPECT_EQ(scenario->pattern(), &*scenario->background);
}

// What topology and pattern say is theirs to test; where they say it is asserted here.
TEST(Build, LocatesWhatTheMachineSays) {
  const BadMachine kBad[] = {
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
  for (const BadMachine& bad : kBad) {
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
       std::filesystem::directory_iterator(test::SourceDir() + "/deploy/scenarios")) {
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

constexpr char kDrawer[] = "topology: {drawers: 1, hubs: 2}\n";

TEST(Build, BladesGetNumbersPlacesAndPrograms) {
  const auto scenario = Build(std::string(kDrawer) +
                              "blades:\n"
                              "- {count: 2, type: QS22, attach: sn0-d0-h1}\n"
                              "- {name: x-ray}\n"
                              "- attach: x-ray0\n"
                              "  programs:\n"
                              "  - collective: {operation: reduce, algorithm: TTRed D3, spes: 9}\n"
                              "  - exchange: {peer: x-ray0, spes: 2, bytes: 32B, rounds: 7}\n"
                              "- attach: sn0-d0-h0\n"
                              "  programs: [{exchange: {peer: sn0-d0-h1}}]\n"
                              "faults:\n"
                              "- {at: 1us, spe_down: 'blade0:SPE15'}\n"
                              "- {at: 2us, chip_link_degraded: {blade: blade2, share: 0.25}}\n"
                              "- {at: 3us, eib_ring_lost: 'x-ray0:CELL1:RING3'}\n"
                              "- {at: 3us, link_down: 'blade3:N0'}\n");
  ASSERT_FALSE(scenario.ok());  // blade2 waits for x-ray0, which has no program
  EXPECT_EQ(scenario.status().message(),
            "a.yaml:6:3: blades[2].programs: blade2 exchanges with x-ray0, but the exchanges of "
            "x-ray0 with blade2 differ (SPEs, bytes, rounds), so one side would wait for ever; "
            "give both the same exchanges");
}

// To check a collective is to run one call of it, which takes milliseconds.
TEST(Build, ManyBladesWithManyCollectivesAreReadInTheTimeOfDifferentOnes) {
  std::string text = std::string(kDrawer) + "blades:\n";
  for (int entry = 0; entry < 8; ++entry) {
    text += "- count: 1024\n  programs:\n";
    for (int i = 0; i < 8; ++i)
      text += "  - collective: {operation: reduce, spes: 16, bytes: 8KiB, iterations: 1000000}\n";
  }
  const auto scenario = Build(text);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->blades.size(), 8u * 1024);
  EXPECT_EQ(scenario->blades.back().programs.size(), 8u);
}

TEST(Build, BladesOfAGoodFileArrive) {
  const auto scenario = Build(std::string(kDrawer) +
                              "blades:\n"
                              "- {count: 2, type: QS22, attach: sn0-d0-h1}\n"
                              "- {name: x-ray, type: QS21}\n"
                              "- attach: x-ray0\n"
                              "  programs:\n"
                              "  - collective: {operation: reduce, algorithm: TTRed D3, spes: 9}\n"
                              "  - exchange: {peer: sn0-d0-h1, spes: 2, bytes: 32B, rounds: 7}\n"
                              "faults:\n"
                              "- {at: 1us, spe_down: 'blade0:SPE15'}\n"
                              "- {at: 2us, chip_link_degraded: {blade: blade2, share: 0.25}}\n"
                              "- {at: 3us, eib_ring_lost: 'x-ray0:CELL1:RING3'}\n"
                              "- {at: 3us, link_down: 'blade1:N0'}\n");
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(
      std::string(scenario.status().message()),
      "a.yaml:8:22: blades[2].programs[1].exchange.peer: no network joins blade2 and sn0-d0-h1; "
      "attach both to a hub, or one to the other");
  const auto good = Build(std::string(kDrawer) +
                          "blades:\n"
                          "- {count: 2, type: QS22, attach: sn0-d0-h1}\n"
                          "- {name: x-ray, type: QS21}\n"
                          "- attach: sn0-d0-h0\n"
                          "  programs:\n"
                          "  - collective: {operation: reduce, algorithm: TTRed D3, spes: 9}\n"
                          "  - exchange: {peer: sn0-d0-h1, spes: 2, bytes: 32B, rounds: 7}\n"
                          "faults:\n"
                          "- {at: 1us, spe_down: 'blade0:SPE15'}\n"
                          "- {at: 2us, chip_link_degraded: {blade: blade2, share: 0.25}}\n"
                          "- {at: 3us, eib_ring_lost: 'x-ray0:CELL1:RING3'}\n"
                          "- {at: 3us, link_down: 'blade1:N0'}\n");
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_EQ(good->topology.blades.size(), 4u);
  EXPECT_EQ(good->topology.blades[1].name, "blade1");
  EXPECT_EQ(good->topology.blades[3].name, "blade2");
  ASSERT_EQ(good->blades.size(), 4u);
  EXPECT_EQ(good->blades[2].type, "QS21");
  ASSERT_EQ(good->blades[3].programs.size(), 2u);
  const auto& collective = std::get<CollectiveProgram>(good->blades[3].programs[0]);
  EXPECT_EQ(collective.operation, CollectiveOperation::kReduce);
  EXPECT_EQ(collective.spes, 9);
  const auto& exchange = std::get<ExchangeProgram>(good->blades[3].programs[1]);
  EXPECT_EQ(exchange.peer, 1u);
  EXPECT_EQ(exchange.bytes, 32u);
  ASSERT_EQ(good->blade_faults.size(), 3u);
  EXPECT_EQ(good->blade_faults[0].unit, 15);
  EXPECT_EQ(good->blade_faults[1].node, 5u);
  EXPECT_EQ(good->blade_faults[1].share, 0.25);
  EXPECT_EQ(good->blade_faults[2].ring, 3);
  ASSERT_EQ(good->faults.size(), 1u);
  EXPECT_EQ(good->faults[0].select.link, (LinkEnd{1, kDFirst + 1})) << "by the hub's end";
}

TEST(Build, BladesThatCannotBeAreRefusedByName) {
  const std::string start = std::string(kDrawer) + "blades:\n- ";
  EXPECT_EQ(
      ErrorOf(start + "{type: QS23}"),
      "a.yaml:3:10: blades[0].type: unknown blade type 'QS23'; it is one of QS20, QS21, QS22, "
      "triblade");
  EXPECT_EQ(
      ErrorOf(start + "{attach: sn0-d0-h2}"),
      "a.yaml:3:12: blades[0].attach: no hub is named \"sn0-d0-h2\"; the nearest are sn0-d0-h0 "
      "or sn0-d0-h1");
  EXPECT_EQ(ErrorOf(start + "{count: 17, attach: sn0-d0-h0}"),
            "a.yaml:3:23: blades[0].attach: sn0-d0-h0 has 16 D ports: 0 carry D links to other "
            "supernodes + 16 blades = 16; none is free for blade16");
  EXPECT_EQ(ErrorOf(start + "{name: b1}"),
            "a.yaml:3:10: blades[0].name: \"b1\" ends with a digit, but the blade's number is "
            "appended to it; write for example \"blade\"");
  EXPECT_EQ(ErrorOf(start + "{programs: [{collective: {spes: 17}}]}"),
            "a.yaml:3:35: blades[0].programs[0].collective.spes: 17 is out of range; allowed: 1 to "
            "16");
  EXPECT_EQ(ErrorOf(start + "{programs: [{exchange: {peer: blade0}}]}"),
            "a.yaml:3:33: blades[0].programs[0].exchange.peer: blade0 cannot exchange with itself; "
            "write another node");
  EXPECT_EQ(ErrorOf(start + "{count: 3, programs: [{exchange: {peer: blade9}}]}"),
            "a.yaml:3:43: blades[0].programs[0].exchange.peer: no hub or blade is named "
            "\"blade9\"; the nearest are blade0, blade1 or blade2");
  const std::string fault = start + "{attach: sn0-d0-h0}\nfaults:\n- {at: 1us, ";
  EXPECT_EQ(ErrorOf(fault + "spe_down: 'blade0:SPE16'}"),
            "a.yaml:5:23: faults[0].spe_down: \"blade0:SPE16\" does not name a part of a blade; "
            "write a blade "
            "and :SPE0 to SPE15");
  EXPECT_EQ(ErrorOf(fault + "spe_down: 'blade1:SPE0'}"),
            "a.yaml:5:23: faults[0].spe_down: no hub or blade is named \"blade1\"; the nearest are "
            "blade0, sn0-d0-h1 or sn0-d0-h0");
  EXPECT_EQ(ErrorOf(fault + "eib_ring_lost: 'sn0-d0-h1:CELL0:RING1'}"),
            "a.yaml:5:28: faults[0].eib_ring_lost: sn0-d0-h1 is not a blade; only blades have "
            "SPEs, chip links and element interconnect buses");
  EXPECT_EQ(ErrorOf(fault + "chip_link_degraded: {blade: 'blade0:BLADE1', share: 0.5}}"),
            "a.yaml:5:13: faults[0].chip_link_degraded: \"blade0:BLADE1\" does not name a part of "
            "a blade; write a blade and "
            ":BLADE0 to BLADE0");
  const std::string tree = "topology: {drawers: 1, hubs: 2, infiniband: {}}\nblades:\n";
  const std::string other = "- {name: b, attach: cu0-leaf3, programs: [{exchange: {peer: a0}}]}";
  EXPECT_EQ(
      ErrorOf(tree + "- {name: a, attach: cu0, programs: [{exchange: {peer: b0}}]}\n" + other),
      "no error");
  EXPECT_THAT(ErrorOf(tree + "- {name: a, attach: cu0, programs: [{exchange: {peer: cu0-leaf0}}]}"),
              testing::HasSubstr("blades[0].programs[0].exchange.peer: "));
  const std::string triblade =
      std::string(kDrawer) +
      "blades:\n- {type: triblade, attach: sn0-d0-h0}\nfaults:\n- {at: 1us, ";
  EXPECT_EQ(ErrorOf(triblade + "spe_down: 'blade0:SPE31'}"), "no error");
  EXPECT_EQ(
      ErrorOf(triblade + "spe_down: 'blade0:SPE32'}"),
      "a.yaml:5:23: faults[0].spe_down: \"blade0:SPE32\" does not name a part of a blade; write a "
      "blade and :SPE0 to SPE31");
  EXPECT_EQ(
      ErrorOf(fault + "eib_ring_lost: 'blade0:CELL0:RING0'}\n"
                      "- {at: 2us, eib_ring_lost: 'blade0:CELL0:RING1'}"),
      "a.yaml:6:28: faults[1].eib_ring_lost: blade0:CELL0 would lose RING0 and RING1, both rings "
      "of one direction; one has to stay");
}

TEST(Build, ErrorsAndLostLanesNameTheirLinkAndDirection) {
  const auto good = Build(
      "topology: {supernodes: 2, drawers: 1, hubs: 2}\n"
      "faults:\n"
      "- {at: 1us, link_errors: {link: 'sn0-d0-h0:LL0', flit_error_rate: 1e-3}}\n"
      "- at: 2us\n"
      "  link_errors: {link: 'sn0-d0-h0:LL0', from: sn0-d0-h1, corrupt_next: 3}\n"
      "- at: 3us\n"
      "  link_errors: {link: 'sn0-d0-h0:LL0', from: sn0-d0-h0, bit_error_rate: 1e-12}\n"
      "- {at: 4us, lanes_lost: {link: 'sn0-d0-h0:D0', count: 12}}\n");
  ASSERT_TRUE(good.ok()) << good.status();
  const auto& all = good->faults;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].select.link, (LinkEnd{0, 0}));
  EXPECT_EQ(all[0].direction, FaultDirection::kBoth);
  EXPECT_EQ(all[0].kind, FaultKind::kBitErrors);
  EXPECT_EQ(all[0].flit_error_rate, 1e-3);
  EXPECT_EQ(all[1].select.link, (LinkEnd{0, 0}));
  EXPECT_EQ(all[1].direction, FaultDirection::kBackward);
  EXPECT_EQ(all[1].kind, FaultKind::kCorruptNext);
  EXPECT_EQ(all[1].corrupt, 3u);
  EXPECT_EQ(all[2].direction, FaultDirection::kForward);
  EXPECT_NEAR(all[2].flit_error_rate, 1.024e-9, 1e-12);
  EXPECT_EQ(all[3].kind, FaultKind::kLaneLoss);
  EXPECT_EQ(all[3].lanes, 12u);
  EXPECT_EQ(all[3].at, 4 * kMicrosecond);
}

TEST(Build, ErrorsAndLanesThatCannotBeAreRefused) {
  const std::string start = std::string(kDrawer) + "faults:\n- {at: 1us, ";
  EXPECT_EQ(
      ErrorOf(start + "lanes_lost: {link: 'sn0-d0-h0:LL0', count: 65}}"),
      "a.yaml:3:13: faults[0].lanes_lost: fault lane_loss: 65 lanes, but sn0-d0-h0:LL0, which it "
      "selects, has 64 + 0 spare; write 0 to 64, or select links of another class");
  EXPECT_EQ(ErrorOf(start + "link_errors: {link: 'sn0-d0-h0:LL0'}}"),
            "a.yaml:3:13: faults[0].link_errors: incomplete; write exactly one of flit_error_rate, "
            "bit_error_rate, corrupt_next");
  EXPECT_EQ(ErrorOf(start + "link_errors: {link: 'sn0-d0-h0:LL0', from: blade7, corrupt_next: 1}}")
                .substr(0, 41),
            "a.yaml:3:13: faults[0].link_errors: no hu");
  EXPECT_THAT(ErrorOf(start + "link_errors: {link: 'sn0-d0-h0:LL0', flit_error_rate: 1.5}}"),
              testing::HasSubstr("link_errors.flit_error_rate"));
}

TEST(Build, KindsOfFaultsHaveTheSameNamesAndOrderInFiles) {
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    const std::string name = FaultKindName(static_cast<FaultKind>(kind));
    EXPECT_EQ(v1::FaultKind_Name(static_cast<v1::FaultKind>(kind + 1)),
              "FAULT_KIND_" + absl::AsciiStrToUpper(name));
  }
}

TEST(Build, CablesHaveWiresOfTheirOwn) {
  const auto good = Build(
      "topology: {supernodes: 2, drawers: 1, hubs: 2}\n"
      "cables:\n- {link: 'sn1-d0-h0:D0', wire: 300ns}\n");
  ASSERT_TRUE(good.ok()) << good.status();
  ASSERT_EQ(good->cables.size(), 1u);
  EXPECT_EQ(good->cables[0].link, (LinkEnd{0, kDFirst}));
  EXPECT_EQ(good->cables[0].wire, 300 * kNanosecond);
  EXPECT_EQ(
      ErrorOf(std::string(kDrawer) + "cables:\n- {link: 'sn0-d0-h0:LL0', wire: 1ns}\n"
                                     "- {link: 'sn0-d0-h1:LL0', wire: 2ns}\n"),
      "a.yaml:4:10: cables[1].link: cables[0] already sets the wire of sn0-d0-h0:LL0; remove one");
}

}  // namespace
}  // namespace percs
