// The one seed of a random test: PERCS_SEED when set (tests/run --seed N sets it), else a fixed
// number, so that a run without arguments is the same everywhere. Printed when a test fails.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace percs::test {

inline constexpr std::uint64_t kDefaultSeed = 20110823;

// A PERCS_SEED that is not a number ends the process: a mistyped seed must not pass as another one.
inline std::uint64_t Seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("PERCS_SEED");
    if (text == nullptr || *text == '\0') return kDefaultSeed;
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0' || *text == '-') {
      std::fprintf(stderr, "PERCS_SEED is '%s'; it must be a whole number from 0 to 2^64-1\n",
                   text);
      std::exit(2);
    }
    return value;
  }();
  return seed;
}

// The line to type to see a failure again, for SCOPED_TRACE and failure messages.
inline std::string HowToReproduce() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = info ? std::string(info->test_suite_name()) + "." + info->name() : "*";
  return "reproduce: ./tests/run --seed " + std::to_string(Seed()) + " --filter '" + filter + "'";
}

}  // namespace percs::test

// First line of a random test: every failure below it then names the seed and the command.
#define PERCS_TRACE_SEED() SCOPED_TRACE(::percs::test::HowToReproduce())
