// Networks of switches as scenarios: what is refused, and that faults and reroutes work on them and
// every placement has the same digest.
#include <fstream>

#include "emulator/workload/patterns.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/topology.h"
#include "proto/scenario/build.h"
#include "tests/support/play.h"
#include "tests/support/scenario_text.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"
#include "tests/support/temporary_folder.h"

namespace percs {
namespace switch_networks {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Text(const std::string& topology, const std::string& rest = "") {
  return fmt::format("topology: {{{}}}\n{}", topology, rest);
}

std::string ErrorOf(const std::string& topology) {
  const auto scenario = Build(Text(topology));
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

TEST(SwitchNetworks, WrongSizesSayWhatWouldBeRight) {
  EXPECT_THAT(ErrorOf("kind: torus"),
              HasSubstr("topology.dims: kind torus needs it; write for example `dims: 4x4`"));
  EXPECT_THAT(ErrorOf("kind: torus, dims: 4x4, hubs: 3, levels: 2"),
              AllOf(HasSubstr("topology.hubs: not a size of kind torus, which has dims and p"),
                    HasSubstr("topology.levels: not a size of kind torus")));
  EXPECT_THAT(ErrorOf("kind: hyperx, dims: 30x30"), HasSubstr("29 + 29 = 58 links per switch"));
  EXPECT_THAT(ErrorOf("kind: fat_tree, radix: 6, taper: 2"),
              HasSubstr("topology.taper: 2 does not divide"));
  EXPECT_THAT(ErrorOf("kind: fat_tree, dims: 2"), HasSubstr("topology.dims: not a size"));
  EXPECT_THAT(ErrorOf("hubs: 4, dims: 2"), HasSubstr("topology.dims: not a size of kind percs"));
  EXPECT_THAT(ErrorOf("kind: file"), HasSubstr("topology.links_file: kind file needs it"));
  EXPECT_THAT(
      ErrorOf("kind: file, links_file: nowhere.txt"),
      AllOf(HasSubstr("topology.links_file: "), HasSubstr("relative to the scenario file")));
  EXPECT_THAT(ErrorOf("kind: torus, dims: 1"), HasSubstr("topology.dims"));
}

TEST(SwitchNetworks, PartsThatOnlyPercsHasAreRefused) {
  const auto scenario = Build(Text("kind: torus, dims: 4", "blades: [{name: b, attach: s0}]\n"));
  EXPECT_THAT(std::string(scenario.status().message()), HasSubstr("Cell blades need kind percs"));
  const auto inner = Build(Text("kind: fat_tree", "multicast: [{name: g, source: l2-s0}]\n"));
  EXPECT_THAT(std::string(inner.status().message()), HasSubstr("l2-s0 has no endpoints"));
  const auto indirect = Build(Text("kind: torus, dims: 4", "routing: {mode: hw_indirect}\n"));
  EXPECT_FALSE(indirect.ok());
}

TEST(SwitchNetworks, EndpointsAreAtLeaves) {
  const auto tree = Build(Text("kind: fat_tree, levels: 3, radix: 8, p: 4"));
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(PlacesOf(tree->topology), 16u * 4);
  EXPECT_EQ(tree->topology.hubs, 48);
  EXPECT_EQ(PlacesOf(Build(Text("kind: torus, dims: 4x3, p: 2"))->topology), 24u);
}

// A ring with a chord, from a file.
class FromFile {
 public:
  explicit FromFile(const std::string& links) {
    std::ofstream(folder_.path() + "/links.txt") << links;
  }
  absl::StatusOr<Scenario> Load(const std::string& rest) const {
    const std::string file = folder_.path() + "/a.yaml";
    std::ofstream(file) << Text("kind: file, links_file: links.txt, p: 2", rest);
    return BuildScenarioFile(file);
  }

 private:
  test::TemporaryFolder folder_;
};

constexpr const char* kRing = "a b\nb c\nc d\nd e ll\ne a\na c\n";

TEST(SwitchNetworks, AListOfLinksIsReadAndItsMistakesAreNamed) {
  const auto good = FromFile(kRing).Load("");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->topology.hubs, 5);
  EXPECT_EQ(Topology::Create(good->topology)->NodeName(4), "e");
  const auto wrong = FromFile("a b\nb\n").Load("");
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("topology.links_file: links.txt, line 2: 1 word, which is half a link"));
}

TEST(SwitchNetworks, AResultNamesTheSameMachine) {
  for (const char* kind : {"kind: torus, dims: 4x3", "kind: hyperx, dims: 3x3",
                           "kind: fat_tree, levels: 3, radix: 4, taper: 2"}) {
    const auto scenario = Build(Text(kind));
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    v1::Topology message;
    TopologyToProto(scenario->topology, &message);
    const auto again = TopologyFromProto(message, {});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again->spec().graph, *scenario->topology.graph);
  }
  const auto listed = FromFile(kRing).Load("");
  v1::Topology message;
  TopologyToProto(listed->topology, &message);
  EXPECT_EQ(*TopologyFromProto(message, {})->spec().graph, *listed->topology.graph);
}

void FailAndReroute(const Scenario& scenario) {
  const RunResult one = test::Play(scenario);
  ASSERT_TRUE(one.violations.empty()) << one.violations.front();
  EXPECT_EQ(one.total.messages_delivered, one.total.messages_sent);
  EXPECT_GT(one.total.messages_sent, 0u);
  EXPECT_FALSE(one.reroutes.empty());
  const auto split = test::SplitRun(scenario, test::Processes(3));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->digest, one.digest);
}

TEST(SwitchNetworks, FaultsRerouteAndEveryPlacementHasTheSameDigest) {
  PERCS_TRACE_SEED();
  const std::pair<const char*, const char*> machines[] = {
      {"kind: torus, dims: 4x3", "s0-0/s1-0"},
      {"kind: torus, dims: 3x3x2, p: 2", "s0-0-0/s0-0-1"},
      {"kind: hyperx, dims: 4x3, p: 3", "s0-0/s2-0"},
      {"kind: fat_tree, levels: 2, radix: 8, p: 4", "l1-s0/l2-s1"},
      {"kind: fat_tree, levels: 3, radix: 4, taper: 2", "l1-s0/l2-s0"}};
  const auto rest = [&](const char* pattern, const std::string& link) {
    return fmt::format(
        "seed: {}\nparameters: {{detect: 2us, plan: 2us, install: 4us}}\n"
        "workload: {{pattern: {{pattern: {}, count: 40, load: 0.3, reliable: true, "
        "payload: verified}}}}\n"
        "faults: [{{at: 3us, link_down: {}}}, {{at: 60us, link_up: {}}}]\n",
        test::Seed(), pattern, link, link);
  };
  for (const auto& [machine, link] : machines) {
    for (const char* pattern : {"uniform", "tornado", "randperm"}) {
      SCOPED_TRACE(fmt::format("{} {}", machine, pattern));
      const auto scenario = Build(Text(machine, rest(pattern, link)));
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      FailAndReroute(*scenario);
    }
  }
  const auto listed = FromFile(kRing).Load(rest("uniform", "a/c"));
  ASSERT_TRUE(listed.ok()) << listed.status();
  FailAndReroute(*listed);
}

TEST(SwitchNetworks, AnAllToAllIsBetweenLeaves) {
  const auto scenario = Build(Text("kind: fat_tree, levels: 2, radix: 8",
                                   "workload: {all_to_all: {bytes: 4KiB, payload: verified}}\n"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const RunResult result = test::Play(*scenario);
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.total.messages_delivered, 4u * 3);
}

}  // namespace switch_networks
}  // namespace percs
