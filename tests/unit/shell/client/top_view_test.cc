// Method: two looks at a small fabric, and the whole screen that follows from them.
#include "client/percsctl/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/base/time.h"

namespace percs {
namespace {

TopSample At(Time now, double forward, std::uint64_t bytes, std::uint64_t dropped) {
  TopSample sample;
  v1::StatusReply& s = sample.status;
  s.set_state(v1::FABRIC_STATE_RUNNING);
  s.set_scenario("pair");
  s.set_run(3);
  s.set_nodes(2);
  s.set_daemons_expected(1);
  s.add_processes();
  s.set_virtual_time(now);
  s.set_windows_per_second(1234.5);
  s.set_pace_reached(20.0 * kMicrosecond);
  s.set_epoch(2);
  sample.links.emplace().set_virtual_time(now);
  for (const char* name : {"sn0-d0-h0:LL0", "sn0-d0-h0:LR0"}) {
    v1::LinkStatus* link = sample.links->add_links();
    link->set_name(name);
    link->set_ends("sn0-d0-h0/sn0-d0-h1");
    link->set_up(link->name() != "sn0-d0-h0:LR0" || dropped == 0);
    link->set_utilisation_forward(link->name() == "sn0-d0-h0:LL0" ? forward : 0);
  }
  sample.counters.emplace().set_virtual_time(now);
  for (const char* name : {"sn0-d0-h0", "sn0-d0-h1"}) {
    v1::NodeCounters* node = sample.counters->add_nodes();
    node->set_node(name);
    const bool second = node->node() == "sn0-d0-h1";
    node->mutable_counters()->set_bytes_delivered(second ? bytes : 0);
    if (second) (*node->mutable_counters()->mutable_packets_dropped())["link_down"] = dropped;
  }
  return sample;
}

TEST(TopViewTest, LoadsAndRatesAreThoseSinceTheLastLook) {
  const TopSample before = At(10 * kMicrosecond, 0.1, 1000, 0),
                  now = At(20 * kMicrosecond, 0.3, 21'000, 5);
  TopState state = CompareTop(&before, now);
  EXPECT_DOUBLE_EQ(state.links[0].forward, 0.5);  // 6 us of 20, of which 1 us of the first 10
  EXPECT_DOUBLE_EQ(state.hubs[0].load, 0.25);     // of its two links
  EXPECT_DOUBLE_EQ(state.hubs[0].busiest, 0.5);
  EXPECT_DOUBLE_EQ(state.hubs[1].delivered, 2e9);
  EXPECT_EQ(state.dropped_now, 5u);
  EXPECT_EQ(state.down, 1u);
  // Of a first look, and of another run: since the run began.
  EXPECT_DOUBLE_EQ(CompareTop(nullptr, now).links[0].forward, 0.3);
  TopSample other = before;
  other.status.set_run(2);
  EXPECT_DOUBLE_EQ(CompareTop(&other, now).links[0].forward, 0.3);
  // Virtual time that stands still has no rates.
  EXPECT_DOUBLE_EQ(CompareTop(&now, now).hubs[1].delivered, 0);
}

TEST(TopViewTest, SortsByLoadDropsAndName) {
  const TopSample now = At(20 * kMicrosecond, 0.3, 21'000, 5);
  TopState state = CompareTop(nullptr, now);
  SortTop(TopSort::kLoad, &state);
  EXPECT_EQ(state.hubs[0].name, "sn0-d0-h0");
  EXPECT_FALSE(state.links[0].up);
  state = CompareTop(nullptr, now);
  SortTop(TopSort::kDrops, &state);
  EXPECT_EQ(state.hubs[0].name, "sn0-d0-h1");
  SortTop(TopSort::kName, &state);
  EXPECT_EQ(state.links[0].name, "sn0-d0-h0:LL0");
}

TEST(TopViewTest, FillsTheScreenAndNoMore) {
  const TopSample before = At(10 * kMicrosecond, 0.1, 1000, 0),
                  now = At(20 * kMicrosecond, 0.3, 21'000, 5);
  const TopState state = CompareTop(&before, now);
  for (const auto& [width, height] :
       {std::pair<std::size_t, std::size_t>{80, 24}, {120, 40}, {20, 6}, {200, 12}, {1, 1}}) {
    TopScreen screen;
    screen.width = width;
    screen.height = height;
    screen.fabric = "lab";
    const std::vector<TopLine> lines = TopLines(state, screen);
    EXPECT_EQ(lines.size(), height);
    for (const TopLine& line : lines) EXPECT_LE(line.text.size(), width);
  }
  TopScreen screen;
  screen.height = 14;
  screen.fabric = "lab";
  screen.selected = 1;
  std::string text;
  for (const TopLine& line : TopLines(state, screen))
    text += line.text + (line.selected ? " <" : "") + "\n";
  EXPECT_EQ(text,
            "lab: running  pair  run 3  2 hubs  1 of 1 daemons\n"
            "virtual 20us  wall 0 us, 20us/s  1,234 windows/s\n"
            "delivered 0  dropped 5 (+5)  resent 0  down 1  faults 0  reroutes 1\n"
            "\n"
            "hub               load  busiest   delivered  dropped   resent\n"
            "sn0-d0-h0       25.0 %   50.0 %       0 B/s        0        0\n"
            "sn0-d0-h1        0.0 %    0.0 %      2 GB/s        5        0\n"
            "\n"
            "link                state  load ->  load <- to\n"
            "sn0-d0-h0:LL0       up      50.0 %    0.0 % sn0-d0-h1\n"
            "sn0-d0-h0:LR0       DOWN     0.0 %    0.0 % sn0-d0-h1 <\n"
            "\n"
            "\n"
            "q quit  s sort: load  up/down select  c cut/restore link  p pause/resume\n");
  // Beside each other, a selected link that is down marks no hub.
  screen.width = 120;
  const std::vector<TopLine> wide = TopLines(state, screen);
  const auto down =
      std::find_if(wide.begin(), wide.end(), [](const TopLine& line) { return line.selected; });
  ASSERT_NE(down, wide.end());
  EXPECT_EQ(down->left_style, Style::kWarning) << "packets were dropped in this hub just now";
  EXPECT_EQ(down->style, Style::kBad);
  EXPECT_THAT(down->text.substr(0, down->left), testing::HasSubstr("sn0-d0-h1"));
  EXPECT_THAT(down->text.substr(down->left), testing::StartsWith("sn0-d0-h0:LR0 "));
}

}  // namespace
}  // namespace percs
