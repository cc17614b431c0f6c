// The table of counters. Method: every integer of NodeStats is given a value through its bytes,
// then taken away through the rows: what is left has no row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "emulator/metrics/named_counters.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

TEST(CounterTable, EveryMemberOfNodeStatsHasARow) {
  std::ifstream file(test::SourceDir() + "/emulator/metrics/node_stats.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find("struct NodeStats {"), end = text.find("std::uint64_t& Hfi(");
  ASSERT_LT(begin, end);
  ASSERT_LT(end, text.size());
  const std::string members = text.substr(begin, end - begin);
  int found = 0;
  const std::regex member("(\\w+)(?: = 0|\\{\\})[,;]");
  for (std::sregex_iterator it(members.begin(), members.end(), member), none; it != none; ++it) {
    const std::string name = (*it)[1];
    if (name == "ports") continue;
    ++found;
    EXPECT_THAT(text, testing::ContainsRegex("&(S|NodeStats)::" + name + ">"));
  }
  EXPECT_GT(found, 30);
}

TEST(CounterTable, EveryIntegerIsVisitedOnce) {
  NodeStats stats;
  std::set<const std::uint64_t*> seen;
  stats.Visit([&seen](std::uint64_t& value) { EXPECT_TRUE(seen.insert(&value).second); });
}

TEST(CounterTable, RowsOfLaterModelsComeLast) {
  bool later = false;
  for (const NodeCounter& row : kNodeCounters) {
    EXPECT_FALSE(later && row.since == 1) << row.name << " would enter digests out of its place";
    later |= row.since > 1;
  }
}

TEST(CounterTable, NamesAndPlacesInReportsAreTheirOwn) {
  std::set<std::string> names, places;
  for (const NamedCounter& counter : NamedCounters()) {
    EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
    EXPECT_TRUE(places.insert(counter.json).second) << counter.json;
    EXPECT_EQ(FindCounter(counter.name), &counter);
    EXPECT_STRNE(counter.row->help, "") << counter.name;
  }
  EXPECT_EQ(FindCounter("eaten"), nullptr);
  EXPECT_EQ(CountersOf("packets_dropped").size(), static_cast<std::size_t>(kDropReasons));
  EXPECT_EQ(CountersOf("cau").size(), static_cast<std::size_t>(kCauCounters));
}

TEST(CounterTable, ANameLeadsToItsMember) {
  NodeStats stats;
  stats.Hfi(1, HfiCounter::kSendDropped) = 3;
  stats.CauReduction(ReduceOp::kSum, OperandType::kDouble) = 4;
  stats.Cau(CauCounter::kResultsWrong) = 5;
  stats.packets_dropped[static_cast<std::size_t>(DropReason::kCrc)] = 6;
  const auto value = [&stats](const char* name) { return FindCounter(name)->Of(stats); };
  EXPECT_EQ(value("hfis.1.send_dropped"), 3u);
  EXPECT_EQ(value("cau.reduce_sum_double"), 4u);
  EXPECT_EQ(value("cau.results_wrong"), 5u);
  EXPECT_EQ(value("packets_dropped.crc"), 6u);
  EXPECT_EQ(FindCounter("cau.results_wrong")->json, "caus.results_wrong");
  EXPECT_EQ(FindCounter("nmmu_hits")->metric, "percs_nmmu_translations_total");
  EXPECT_EQ(FindCounter("flits_created")->metric, "");
}

}  // namespace
}  // namespace percs
