// Method: tables and texts for screens of given widths, compared whole.
#include <gtest/gtest.h>

#include "client/percsctl/format.h"

namespace percs {
namespace {

constexpr Screen kFile{}, kColour{0, true};

Screen Of(std::size_t width) { return {width, false}; }

TEST(TableTest, WhatAllCellsEndWithStandsInTheHeader) {
  Table table({"hub", "raised", "load", "sent", "mixed"});
  table.Add({"a", "5us virtual", "1.0 %", "4 KiB", "5us"});
  table.Add({"b", "12.5us virtual", "-", "16 KiB", "5ms"});
  EXPECT_EQ(table.ToString(0, kFile),
            "hub  raised us (virtual)  load %  sent KiB  mixed\n"
            "a                      5     1.0         4    5us\n"
            "b                   12.5       -        16    5ms\n");
}

TEST(TableTest, NoTimeIsNoneInAnyUnit) {
  Table table({"hub", "waits"});
  table.Add({"a", "0ps"});
  table.Add({"b", "1.5us"});
  EXPECT_EQ(table.ToString(0, kFile),
            "hub  waits us\n"
            "a           0\n"
            "b         1.5\n");
}

TEST(TableTest, ANameThatEndsLikeAUnitIsNoQuantity) {
  Table table({"what", "name"}, "l");
  table.Add({"x", "alarms"});
  table.Add({"y", "6ms"});
  EXPECT_EQ(table.ToString(0, kFile),
            "what  name\n"
            "x     alarms\n"
            "y     6ms\n");
}

TEST(TableTest, HeadersBreakBeforeTextsAndTextsBeforeColumns) {
  Table table({"link", "credit stall", "why"}, "lrl");
  table.Add({"LR0", "12", "the other end does not answer"});
  EXPECT_EQ(table.ToString(0, Of(80)),
            "link  credit stall  why\n"
            "LR0             12  the other end does not answer\n");
  EXPECT_EQ(table.ToString(0, Of(45)),
            "link  credit  why\n"
            "       stall\n"
            "LR0       12  the other end does not answer\n");
  EXPECT_EQ(table.ToString(0, Of(32)),
            "link  credit  why\n"
            "       stall\n"
            "LR0       12  the other end does\n"
            "              not answer\n");
  EXPECT_EQ(table.ToString(0, Of(16)),
            "link  credit\n"
            "       stall\n"
            "LR0       12\n"
            "\n"
            "link  why\n"
            "LR0   the\n"
            "      other\n"
            "      end\n"
            "      does\n"
            "      not\n"
            "      answer\n");
}

TEST(TableTest, EveryWidthShowsEveryCellAndNoLineIsLonger) {
  Table table({"name", "first column", "second", "third"}, "lrrl");
  table.Add({"sn0-d0-h0", "123,456", "7.5 %", "text of some words"});
  table.Add({"sn0-d0-h1", "-", "12.0 %", "word"});
  for (std::size_t width = 20; width < 80; ++width) {
    const std::string text = table.ToString(0, Of(width));
    for (const std::string& line : WrapWords(text, 0)) EXPECT_LE(line.size(), width) << text;
    for (const char* cell : {"sn0-d0-h1", "123,456", "12.0", "words"})
      EXPECT_NE(text.find(cell), std::string::npos) << text;
  }
}

TEST(TableTest, ColoursMarkTheHeaderAndWhatIsDown) {
  Table table({"link", "state"}, "l");
  table.Add({"LR0", "DOWN"});
  EXPECT_EQ(table.ToString(0, kColour),
            "\033[1mlink\033[0m  \033[1mstate\033[0m\n"
            "LR0   \033[31mDOWN\033[0m\n");
}

TEST(ScreenTest, TextHangsBesideItsLabelAndKeepsLongWords) {
  EXPECT_EQ(Hanging("one two three four five six", 10, Of(30)),
            "one two three four\n          five six");
  EXPECT_EQ(Hanging("one two", 10, kFile), "one two");
  EXPECT_EQ(WrapWords("a longest-of-words b", 8),
            (std::vector<std::string>{"a", "longest-of-words", "b"}));
  EXPECT_EQ(WrapWords("  indented text", 10), (std::vector<std::string>{"  indented", "text"}));
  EXPECT_EQ(WrapWords("one\ntwo", 80), (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace percs
