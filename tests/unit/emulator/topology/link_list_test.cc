#include "emulator/topology/link_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const auto graph = ParseLinkList(text);
  return graph.ok() ? std::string(SwitchGraph::Create(*graph).status().message())
                    : std::string(graph.status().message());
}

TEST(LinkListTest, SwitchesAreNumberedAsTheyAppear) {
  const auto graph = ParseLinkList(
      "# a ring\nwest north\nnorth:LR5 east ll\n\n  east\tsouth # and back\nsouth west:LL2 ll\r\n");
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("line 3: north:LR5 is no port of "
                                                               "class ll; write LL0 to LL6"));
  const auto good = ParseLinkList("west north\nnorth:LR5 east lr\neast south\nsouth west:LL2 ll");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(good->names, ElementsAre("west", "north", "east", "south"));
  EXPECT_THAT(good->links,
              ElementsAre(SwitchLink{0, 1}, SwitchLink{1, 2, LinkClass::kLr, kLrFirst + 5},
                          SwitchLink{2, 3}, SwitchLink{3, 0, LinkClass::kLl, kNoPort, 2}));
  const auto made = SwitchGraph::Create(*good);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->Peer(1, kLrFirst + 5).node, 2u);
  EXPECT_EQ(made->Peer(0, 2).node, 3u);
}

TEST(LinkListTest, WhatIsWrittenIsReadAgain) {
  const auto graph = ParseLinkList("a b\nb:LR3 c\nc:LL0 a:LL1 ll");
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(FormatLinkList(*graph), "a b lr\nb:LR3 c lr\nc:LL0 a:LL1 ll\n");
  EXPECT_EQ(*ParseLinkList(FormatLinkList(*graph)), *graph);
}

TEST(LinkListTest, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(Refusal("a b\na"),
            "line 2: 1 word, which is half a link; write `SWITCH SWITCH` or `SWITCH SWITCH CLASS`");
  EXPECT_THAT(Refusal("a b lr now"), HasSubstr("line 1: 4 words; write"));
  EXPECT_EQ(Refusal("a b\n\nb b"), "line 3: b to itself");
  EXPECT_EQ(Refusal("a b d"), "line 1: class \"d\"; write ll or lr");
  EXPECT_THAT(Refusal("a b\x01"), HasSubstr("line 1: a word that is no name of a switch"));
  EXPECT_THAT(Refusal(std::string(65, 'a') + " b"), HasSubstr("at most 64 letters"));
  EXPECT_THAT(Refusal("a:LR24 b"), HasSubstr("a:LR24 is no port of class lr; write LR0 to LR23"));
  EXPECT_THAT(Refusal("a: b"), HasSubstr("a: is no port of class lr"));
  EXPECT_EQ(Refusal("a:LR0 b\nc a:LR0"), "line 2: a:LR0 has a link already, in line 1");
  EXPECT_THAT(Refusal("a b\nc d"), HasSubstr("no links join a to d"));
  EXPECT_THAT(Refusal(""), HasSubstr("0 switches; a network needs at least 2"));
}

TEST(LinkListTest, GivenPortsArePutBeforeFreeOnes) {
  const auto graph = ParseLinkList("a b\na c:LR0\nb c\na:LR0 c");
  ASSERT_TRUE(graph.ok());
  const auto made = SwitchGraph::Create(*graph);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->Peer(0, kLrFirst).node, 2u) << "the last line has this port";
  EXPECT_EQ(made->Peer(0, kLrFirst + 1).node, 1u);
}

TEST(LinkListTest, AListHasALimit) {
  std::string links, switches;
  for (int i = 0; i < 70'000; ++i) links += "a b\n";
  EXPECT_EQ(Refusal(links), "line 63489: more than 63488 links");
  for (int i = 0; i < 5'000; ++i) switches += fmt::format("s{} s{}\n", i, i + 1);
  EXPECT_EQ(Refusal(switches), "line 4096: more than 4096 switches");
}

TEST(LinkListTest, DimensionsAreJoinedByX) {
  EXPECT_EQ(*ParseDims("4x4x3"), (std::vector<int>{4, 4, 3}));
  EXPECT_EQ(*ParseDims("17"), (std::vector<int>{17}));
  EXPECT_EQ(FormatDims({4, 4, 3}), "4x4x3");
  for (const char* text : {"", "4x", "x4", "4 by 4", "[4, 4]", "4x99999999999"}) {
    EXPECT_EQ(ParseDims(text).status().message(),
              fmt::format("\"{}\" is not the sizes of dimensions; write for example 4x4", text));
  }
}

}  // namespace
}  // namespace percs
