// Method: applies `--set` texts to a message and compares values and whole error messages.
#include "client/lib/scenario_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "client/percsctl/fabric_options.h"
#include "tests/support/temporary_folder.h"

namespace percs {
namespace {

std::string Refusal(v1::Scenario message, const std::string& setting) {
  const absl::Status status = ApplySetting(&message, setting);
  return std::string(status.message().data(), status.message().size());
}

TEST(SettingTest, PathsReachIntoGroupsOneofsAndLists) {
  v1::Scenario message;
  message.add_faults()->set_link_down("sn0-d0-h0:LR0");
  ASSERT_TRUE(ApplySetting(&message, "topology.supernodes=4").ok());
  ASSERT_TRUE(ApplySetting(&message, "workload.all_to_all.bytes=2KiB").ok());
  ASSERT_TRUE(ApplySetting(&message, "faults[0].at=7us").ok());
  ASSERT_TRUE(ApplySetting(&message, "name=other").ok());
  EXPECT_EQ(message.topology().supernodes(), 4);
  EXPECT_EQ(message.workload().all_to_all().bytes(), 2048);
  EXPECT_EQ(message.faults(0).at(), 7'000'000);
  EXPECT_EQ(message.name(), "other");
}

TEST(SettingTest, WhatAllGroupsHaveIsSetInAll) {
  v1::Scenario message;
  ASSERT_TRUE(ApplySetting(&message, "routing.mode=hw_indirect").ok());
  EXPECT_EQ(message.routing().fifo().mode(), v1::ROUTE_MODE_HW_INDIRECT);
  EXPECT_EQ(message.routing().rdma().mode(), v1::ROUTE_MODE_HW_INDIRECT);
  EXPECT_NE(Refusal(message, "routing.mode=sideways").find("routing.fifo.mode=sideways:"),
            std::string::npos);
  EXPECT_NE(Refusal(message, "routing.middle=1").find("no field \"middle\""), std::string::npos);
}

TEST(SettingTest, AFieldThatIsElsewhereIsFound) {
  const v1::Scenario message;
  EXPECT_EQ(Refusal(message, "selection=random"),
            "selection=random: no field \"selection\" in a scenario; did you mean "
            "\"routing.selection\" or \"workload.routing.selection\"?");
  EXPECT_EQ(Refusal(message, "workload.corrupt_next=2"),
            "workload.corrupt_next=2: no field \"corrupt_next\" in \"workload\"; did you "
            "mean \"faults[0].link_errors.corrupt_next\" or \"faults[0].inject.corrupt_next\"?");
  EXPECT_EQ(Refusal(message, "nothing_near=2"),
            "nothing_near=2: no field \"nothing_near\" in a scenario");
}

TEST(SettingTest, AnErrorOfASettingNamesItAndNotALineOfTheFile) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/a.yaml";
  std::ofstream(file) << "topology: {supernodes: 2, drawers: 1, hubs: 2}\nworkload: {ticks: {}}\n";
  const auto refused = [&](const std::vector<std::string>& settings,
                           const std::vector<std::string>& over = {}) {
    const absl::Status status = LoadScenario(file, settings, std::nullopt, over).status();
    return std::string(status.message());
  };
  EXPECT_EQ(refused({"routing.fifo.mode=hw_indirect"})
                .find("--set routing.fifo.mode=hw_indirect: "
                      "routing.fifo: hw_indirect needs"),
            0u);
  EXPECT_EQ(refused({"routing.mode=hw_indirect"}).find("--set routing.mode=hw_indirect: "), 0u);
  EXPECT_EQ(refused({"seed"}).find("--set seed: expected path=value"), 0u);
  EXPECT_EQ(
      refused({"seed=3"}, {"routing.mode=hw_indirect"}).find("--over routing.mode=hw_indirect: "),
      0u);
  EXPECT_EQ(refused({"seed=3"}, {"topology.hubs=x"}).find("--over topology.hubs=x: "), 0u);
  EXPECT_EQ(refused({"seed=3"}, {"seed=4"}), "");
}

TEST(SettingTest, WhatIsWrongIsSaidWithWhatWouldBeRight) {
  v1::Scenario message;
  EXPECT_EQ(Refusal(message, "seed"), "seed: expected path=value, like topology.supernodes=4");
  EXPECT_EQ(Refusal(message, "topology.supernode=4"),
            "topology.supernode=4: no field \"supernode\" in \"topology\"; did you mean "
            "\"supernodes\"?");
  EXPECT_EQ(Refusal(message, "topology=4"),
            "topology=4: \"topology\" is a group; set one of its fields: supernodes, "
            "drawers, hubs, d_links_per_pair, kind, a, g, h, p, dims, levels, radix, taper, "
            "links_file, infiniband");
  EXPECT_EQ(Refusal(message, "faults[0].at=1us"), "faults[0].at=1us: the list \"faults\" is empty");
  EXPECT_NE(Refusal(message, "topology.supernodes=9999").find("513"), std::string::npos);
  EXPECT_NE(Refusal(message, "parameters.detect=5").find("5us"), std::string::npos)
      << "unit missing";
}

TEST(UserTimeTest, TimesAreVirtualUnlessMarkedWall) {
  EXPECT_FALSE(ParseUserTime("40us")->wall);
  EXPECT_EQ(ParseUserTime("40us")->time, 40 * kMicrosecond);
  EXPECT_TRUE(ParseUserTime("wall:30s")->wall);
  EXPECT_FALSE(ParseUserTime("40").ok());
  EXPECT_EQ(*ParseWallTime("wall:30s"), std::chrono::seconds(30));
  EXPECT_EQ(ParseWallTime("30s").status().message(),
            "\"30s\" is a virtual time, but this option takes wall-clock time; write wall:30s");
}

TEST(ExpectationTest, AnAllToAllCountsDataAndAcknowledgements) {
  Scenario scenario;
  scenario.workload =
      AllToAllWorkload{};  // 32 hubs, 64 KiB: 32 packets and 2 acknowledgements a pair
  EXPECT_EQ(ExpectedPackets(scenario), 32u * 31 * 34);
  scenario.workload = PatternWorkload{.warm_up = 5, .measure = 10};
  EXPECT_EQ(ExpectedEnd(scenario), 15);
}

}  // namespace
}  // namespace percs
