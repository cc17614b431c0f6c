#include "tests/differential/network_part.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/differential/random_network.h"

namespace percs::reference {
namespace {

constexpr std::uint64_t kNetwork = 1270795;  // has packets, faults and groups

TEST(NetworkPart, TheWholeIsTheNetwork) {
  const NetworkPart whole = NetworkPart::Whole(kNetwork, false);
  EXPECT_GT(whole.kept[NetworkPart::kPackets].size(), 10u);
  EXPECT_EQ(Describe(whole.ToScenario()), Describe(RandomNetwork(kNetwork)));
}

TEST(NetworkPart, IsReadAsItWasWritten) {
  NetworkPart part = NetworkPart::Whole(kNetwork, true);
  part.kept[NetworkPart::kPackets] = {1, 5, 7};
  part.kept[NetworkPart::kFaults] = {};
  const auto read = NetworkPart::Parse(part.ToText());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, part);
  const Scenario scenario = read->ToScenario();
  EXPECT_EQ(std::get<ScriptedWorkload>(scenario.workload).packets.size(), 3u);
  EXPECT_THAT(scenario.faults, testing::IsEmpty());
  EXPECT_FALSE(scenario.reroute);
}

TEST(NetworkPart, WhatIsWrongInATextIsSaid) {
  const std::string rest = "faults\npings\n";
  const auto message = [](const std::string& text) {
    return std::string(NetworkPart::Parse(text).status().message());
  };
  EXPECT_EQ(message("tables planned\n"), "'': a line 'seed NUMBER' is needed");
  EXPECT_EQ(message("seed 1\ntables none\n"),
            "'tables none': a line 'tables planned' or 'tables random' is needed");
  EXPECT_EQ(message("seed 1\ntables planned\n" + rest), "'': a line 'packets' is needed");
  EXPECT_THAT(message("seed 1\ntables planned\npackets 2 1\n" + rest),
              testing::HasSubstr("'packets 2 1': numbers below "));
  EXPECT_THAT(message("seed 1\ntables planned\npackets 1000000\n" + rest),
              testing::HasSubstr("numbers below "));
}

TEST(NetworkPart, ShrinksToWhatMatters) {
  const NetworkPart whole = NetworkPart::Whole(kNetwork, false);
  const auto has = [](const NetworkPart& part, NetworkPart::Kind kind, std::size_t number) {
    return std::count(part.kept[kind].begin(), part.kept[kind].end(), number) > 0;
  };
  const NetworkPart small = Shrink(whole, [&](const NetworkPart& part) {
    return has(part, NetworkPart::kPackets, 3) && has(part, NetworkPart::kPackets, 8) &&
           has(part, NetworkPart::kFaults, 1);
  });
  EXPECT_THAT(small.kept[NetworkPart::kPackets], testing::ElementsAre(3, 8));
  EXPECT_THAT(small.kept[NetworkPart::kFaults], testing::ElementsAre(1));
}

}  // namespace
}  // namespace percs::reference
