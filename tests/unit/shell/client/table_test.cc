// Method: tables and texts for screens of given widths, compared whole; examples in help, by width.
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "client/percsctl/command.h"
#include "client/percsctl/command_line.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

constexpr Screen kFile{}, kColour{0, true};

Screen Of(std::size_t width) { return {width, false}; }

TEST(TableTest, WhatAllCellsEndWithStandsInTheHeader) {
  Table table({"hub", "raised", "load", "sent", "mixed"});
  table.Add({"a", "5us virtual", "1.0 %", "4 KiB", "5 KiB"});
  table.Add({"b", "12.5us virtual", "-", "16 KiB", "5 MiB"});
  EXPECT_EQ(table.ToString(0, kFile),
            "hub  raised us (virtual)  load %  sent KiB  mixed\n"
            "a                      5     1.0         4  5 KiB\n"
            "b                   12.5       -        16  5 MiB\n");
}

TEST(TableTest, VirtualIsSaidOnceForSeveralColumns) {
  Table table({"fault", "injected", "recovered"});
  table.Add({"cut", "5us virtual", "-"});
  table.Add({"flap", "6us virtual", "7us virtual"});
  EXPECT_EQ(table.ToString(0, kFile),
            "fault (virtual)  injected us  recovered us\n"
            "cut                        5             -\n"
            "flap                       6             7\n");
}

TEST(TableTest, TimesAndRatesHaveOneUnitInTheWholeTable) {
  Table table({"links", "stall", "mean", "rate"});
  table.Add({"LL", "16.15ms", "983.039ns", "850.5 MB/s"});
  table.Add({"LR", "0ps", "1.18us", "24.0 GB/s"});
  table.Add({"D", "253.097us", "-", "0 B/s"});
  EXPECT_EQ(table.ToString(0, kFile),
            "links  stall us  mean us  rate MB/s\n"
            "LL       16,150    0.983      850.5\n"
            "LR            0     1.18     24,000\n"
            "D       253.097        -          0\n");
}

TEST(TableTest, WhatOneUnitWouldMakeLongOrNothingKeepsItsOwn) {
  Table table({"what", "long", "short"});
  table.Add({"a", "5s", "5.25ns"});
  table.Add({"b", "7s", "12us"});
  table.Add({"c", "-", "3ns"});
  EXPECT_EQ(table.ToString(0, kFile),
            "what  long s  short ns\n"
            "a          5      5.25\n"
            "b          7    12,000\n"
            "c          -         3\n");
  Table mixed({"what", "time"});
  mixed.Add({"a", "5ns"});
  mixed.Add({"b", "5ms"});
  EXPECT_EQ(mixed.ToString(0, kFile),
            "what  time\n"
            "a      5ns\n"
            "b      5ms\n");
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

// Examples are to be copied, so nothing breaks their lines.
int ExpectNarrowExamples(const CLI::App& app) {
  constexpr std::size_t kColumns = 80;
  const std::string footer = app.get_footer();
  const bool has_examples = footer.starts_with("Example");
  for (const auto line : absl::StrSplit(footer, '\n')) {
    const bool fits = !has_examples || line.size() <= kColumns;
    EXPECT_TRUE(fits) << app.get_name() << ": " << line;
  }
  int found = has_examples ? 1 : 0;
  for (const CLI::App* sub : SubcommandsOf(app)) found += ExpectNarrowExamples(*sub);
  return found;
}

TEST(HelpTest, ExamplesFitTheNarrowestTerminal) {
  CLI::App root;
  DeclareCommands(root);
  EXPECT_GT(ExpectNarrowExamples(root), static_cast<int>(Commands().size()));
}

}  // namespace
}  // namespace percs
