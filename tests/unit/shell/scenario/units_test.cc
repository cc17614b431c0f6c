// Quantities: each unit, exactness, and the whole message of every way to be wrong.
#include "proto/scenario/units.h"

#include <limits>

#include "emulator/base/random.h"
#include "gtest/gtest.h"
#include "proto/scenario/suggest.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

std::string Wrong(const absl::StatusOr<std::int64_t>& value) {
  return value.ok() ? "no error" : std::string(value.status().message());
}

TEST(Units, TimesAreWholePicoseconds) {
  EXPECT_EQ(*ParseTime("7ps"), 7);
  EXPECT_EQ(*ParseTime("5.334ns"), 5'334);
  EXPECT_EQ(*ParseTime("1.5us"), 1'500'000);
  EXPECT_EQ(*ParseTime("2 ms"), 2'000'000'000);
  EXPECT_EQ(*ParseTime("0.25s"), 250'000'000'000);
  EXPECT_EQ(*ParseTime("1.000ps"), 1);
}

TEST(Units, BytesHaveBinaryAndDecimalUnits) {
  EXPECT_EQ(*ParseBytes("1B"), 1);
  EXPECT_EQ(*ParseBytes("2kB"), 2'000);
  EXPECT_EQ(*ParseBytes("2KiB"), 2'048);
  EXPECT_EQ(*ParseBytes("0.5KiB"), 512);
  EXPECT_EQ(*ParseBytes("3MB"), 3'000'000);
  EXPECT_EQ(*ParseBytes("3MiB"), 3 << 20);
  EXPECT_EQ(*ParseBytes("1GB"), 1'000'000'000);
  EXPECT_EQ(*ParseBytes("1GiB"), 1 << 30);
}

TEST(Units, RatesArePerSecond) {
  EXPECT_EQ(*ParseRate("5GB/s"), 5'000'000'000);
  EXPECT_EQ(*ParseRate("12.5MB/s"), 12'500'000);
  EXPECT_EQ(*ParseRate("1KiB/s"), 1'024);
  EXPECT_EQ(*ParseQuantity(Quantity::kPace, "1us/s"), 1'000'000);
}

TEST(Units, ABareNumberIsToldTheTextItProbablyMeant) {
  EXPECT_EQ(Wrong(ParseBytes("65536")), "65536 needs a unit, for example 64KiB");
  EXPECT_EQ(Wrong(ParseBytes("100")), "100 needs a unit, for example 100B");
  EXPECT_EQ(Wrong(ParseTime("40")), "40 needs a unit, for example 40us");
  EXPECT_EQ(Wrong(ParseRate("5")), "5 needs a unit, for example 5GB/s");
  EXPECT_EQ(Wrong(ParseQuantity(Quantity::kPace, "1")), "1 needs a unit, for example 1us/s");
}

TEST(Units, AnUnknownUnitIsToldTheNearestOne) {
  EXPECT_EQ(Wrong(ParseBytes("64Kib")),
            "\"64Kib\" has the unknown unit \"Kib\"; did you mean \"KiB\"? "
            "Units: B, kB, KiB, MB, MiB, GB, GiB");
  EXPECT_EQ(Wrong(ParseTime("3minutes")),
            "\"3minutes\" has the unknown unit \"minutes\"; units: ps, ns, us, ms, s");
  EXPECT_EQ(Wrong(ParseRate("5GB")),
            "\"5GB\" has the unknown unit \"GB\"; did you mean \"GB/s\"? "
            "Units: B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s, TB/s");
}

TEST(Units, WhatIsNotAWholeNumberOfBaseUnitsIsRefused) {
  EXPECT_EQ(Wrong(ParseTime("0.5ps")), "\"0.5ps\" is not a whole number of picoseconds");
  EXPECT_EQ(Wrong(ParseTime("1.2345ns")), "\"1.2345ns\" is not a whole number of picoseconds");
  EXPECT_EQ(Wrong(ParseBytes("0.3KiB")), "\"0.3KiB\" is not a whole number of bytes");
}

TEST(Units, WhatIsNoQuantityIsRefused) {
  const std::string right = " is not a time; write a number and a unit, for example 40us";
  for (const char* text : {"", "soon", ".5us", "5.us", "us", "1e3us", "+1us", "0x10us"}) {
    const std::string wrong = Wrong(ParseTime(text));
    EXPECT_NE(wrong, "no error") << text;
  }
  EXPECT_EQ(Wrong(ParseTime("soon")), "\"soon\"" + right);
  EXPECT_EQ(Wrong(ParseTime("5.us")), "\"5.us\"" + right);
  EXPECT_EQ(Wrong(ParseTime("-5us")),
            "\"-5us\" is negative; write a time from 0 up, for example 40us");
}

TEST(Units, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(*ParseTime("9223372036854775807ps"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Wrong(ParseTime("10000000s")),
            "\"10000000s\" is too large; the most is 9223372036854775807ps");
  EXPECT_EQ(Wrong(ParseBytes("99999999999999999999999999999999999999999999GiB")),
            "\"99999999999999999999999999999999999999999999GiB\" is too large; "
            "the most is 9223372036854775807B");
}

TEST(Units, PrintingIsShort) {
  EXPECT_EQ(PrintTime(0), "0ps");
  EXPECT_EQ(PrintTime(25'600), "25.6ns");
  EXPECT_EQ(PrintTime(1'500'000), "1.5us");
  EXPECT_EQ(PrintTime(10'000'000'000), "10ms");
  EXPECT_EQ(PrintBytes(65'536), "64KiB");
  EXPECT_EQ(PrintBytes(1'000'000), "1MB");
  EXPECT_EQ(PrintBytes(1'537), "1537B");
  EXPECT_EQ(PrintRate(24'000'000'000), "24GB/s");
}

TEST(Units, PrintedTextReadsBackExactly) {
  RandomStream random(test::Seed(), "units");
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = static_cast<int>(random.Below(63));
    auto value = static_cast<std::int64_t>(random.Next() >> (1 + bits));
    if (i % 3 == 0) value -= value % 1000;
    for (const auto q : {Quantity::kTime, Quantity::kBytes, Quantity::kRate, Quantity::kPace}) {
      const std::string text = PrintQuantity(q, value);
      const auto back = ParseQuantity(q, text);
      ASSERT_TRUE(back.ok()) << text << ": " << back.status();
      ASSERT_EQ(*back, value) << text;
    }
  }
}

TEST(Suggest, FindsSlipsOfTheFingerAndNothingElse) {
  const std::vector<std::string> names = {"supernodes", "drawers", "hubs", "d_links_per_pair"};
  EXPECT_EQ(Nearest("supernode", names), "supernodes");
  EXPECT_EQ(Nearest("Drawres", names), "drawers");
  EXPECT_EQ(Nearest("d_links_pre_pair", names), "d_links_per_pair");
  EXPECT_EQ(Nearest("temperature", names), "");
  EXPECT_EQ(Nearest("", names), "");
}

}  // namespace
}  // namespace percs
