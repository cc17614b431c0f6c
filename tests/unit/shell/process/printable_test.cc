// Names and texts that others wrote.
#include "proto/process/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace percs {
namespace {

using ::testing::HasSubstr;

TEST(PrintableTest, WhatActsOnATerminalIsWrittenOut) {
  EXPECT_EQ(Printable("cut \x1b[2Jé", Lines::kOne), "cut \\x1b[2Jé");
  EXPECT_EQ(Printable("a\nb\tc", Lines::kSeveral), "a\nb\tc");
  EXPECT_EQ(Printable("a\nb", Lines::kOne), "a\\x0ab");
  EXPECT_EQ(Printable("\x7f\xc2\x9b", Lines::kOne), "\\x7f\\xc2\\x9b");
  EXPECT_EQ(Printable("\xff\xc0\xaf\xed\xa0\x80\xe2\x82", Lines::kOne),
            "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x82");
}

TEST(PrintableTest, NamesHaveALimitAndNoControlCharacters) {
  for (const std::string& name :
       {std::string(), std::string("kreuzung-ä 😀"), std::string(kNameBytesMax, 'x')}) {
    EXPECT_TRUE(CheckName(name).ok()) << CheckName(name);
  }
  const absl::Status control = CheckName("cut\x1b[2J");
  EXPECT_TRUE(absl::IsInvalidArgument(control)) << control;
  EXPECT_THAT(std::string(control.message()), HasSubstr("\"cut\\x1b[2J\" has a control character"));
  const absl::Status large = CheckName(std::string(10'000'000, 'x'));
  EXPECT_EQ(large, absl::InvalidArgumentError("the name \"" + std::string(32, 'x') +
                                              "...\" has 10000000 bytes; at most 128"));
  EXPECT_FALSE(CheckName("\xff").ok());
}

}  // namespace
}  // namespace percs
