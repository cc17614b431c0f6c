// What lines of log look like and how often they are said. Method: a real line on stderr, captured.
#include "daemon/config/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "percs/v1/scenario.pb.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  LogTest() : before_(spdlog::default_logger()) {
    SetUpLog("tested");
    SetLogTime(-1);  // others in this program ran windows
  }
  ~LogTest() override {
    spdlog::set_default_logger(before_);
    SetLogTime(-1);
  }

  template <typename Body>
  static std::vector<std::string> Said(Body body) {
    testing::internal::CaptureStderr();
    body();
    std::istringstream text(testing::internal::GetCapturedStderr());
    return Lines(text);
  }
  // Within the body of Said: it has standard error in a file.
  static std::vector<std::string> SaidSoFar() {
    std::ifstream text("/proc/self/fd/2");
    return Lines(text);
  }

 private:
  static std::vector<std::string> Lines(std::istream& text) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(LogTest, WhatActsOnATerminalIsWrittenOut) {
  const auto lines = Said([] { spdlog::warn("refused {}", "d1\x1b[2J\n2026-01-01 forged"); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::EndsWith("refused d1\\x1b[2J\\x0a2026-01-01 forged"));
}

TEST_F(LogTest, LinesOfLibprotobufAreLinesOfTheLogAndLimited) {
  const auto lines = Said([] {
    for (int i = 0; i < 100; ++i) {
      v1::Scenario scenario;
      scenario.set_name("\xff");
      EXPECT_FALSE(scenario.SerializeAsString().empty());
    }
  });
  ASSERT_FALSE(lines.empty());
  EXPECT_LE(lines.size(), 24u) << "ten in each of at most two seconds, and how many more";
  for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr(" tested "));
  EXPECT_THAT(lines[0], HasSubstr("protobuf: "));
}

TEST_F(LogTest, LinesHaveWallAndVirtualTime) {
  SetLogTime(12'500'000);
  const auto lines = Said([] { spdlog::warn("link {} is down", "sn0-d0-h0:LR3"); });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], MatchesRegex("[0-9-]+ [0-9:.]+ \\[virtual 12.5us\\] tested [0-9]+ warning: "
                                     "link sn0-d0-h0:LR3 is down"));
}

TEST_F(LogTest, JsonIsOneObjectPerLineWhateverTheMessage) {
  ASSERT_TRUE(SetLogFormat("json").ok());
  const auto lines = Said([] {
    spdlog::error("a \"quoted\"\nname \xff");
    SetLogTime(7);
    spdlog::info("later");
  });
  ASSERT_EQ(lines.size(), 2u);
  const auto first = nlohmann::json::parse(lines[0]), second = nlohmann::json::parse(lines[1]);
  EXPECT_THAT(first["message"].get<std::string>(), HasSubstr("a \"quoted\"\\x0aname "));
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["program"], "tested");
  EXPECT_TRUE(first["virtual_ps"].is_null());
  EXPECT_EQ(second["virtual_ps"], 7);
  EXPECT_THAT(second["wall"].get<std::string>(), MatchesRegex("....-..-..T..:..:..\\....Z"));
}

// How many lines end in `text`, and how many more are counted in others, like "490 more times
// within a second".
struct Told {
  int said = 0, counted = 0;
};
Told Tell(const std::vector<std::string>& lines, const std::string& text,
          const std::string& count) {
  Told told;
  for (const std::string& line : lines) {
    const std::size_t more = line.find(count);
    if (more != std::string::npos) {
      told.counted += std::stoi(line.substr(line.rfind(' ', more - 2) + 1));
    } else if (line.size() > text.size() &&
               line.compare(line.size() - text.size(), text.size(), text) == 0) {
      ++told.said;
    }
  }
  return told;
}

// The seconds of the wall clock are not ours to choose: a burst may touch two of them.
TEST_F(LogTest, ARepeatedMessageIsSaidTenTimesASecondAndCounted) {
  const auto lines = Said([] {
    for (int i = 0; i < 500; ++i) spdlog::warn("again");
    spdlog::warn("something else");
    SetUpLog("tested");  // ends what was there, as the end of the process does
  });
  const Told told = Tell(lines, ": again", "more times within a second: again");
  EXPECT_GE(told.said, 10);
  EXPECT_LE(told.said, 20);
  EXPECT_EQ(told.said + told.counted, 500);
  EXPECT_EQ(Tell(lines, ": something else", "more times within a second: something").said, 1);
}

TEST_F(LogTest, WhatWasHeldBackIsCountedThoughNothingMoreIsSaid) {
  Told told;
  Said([&told] {
    for (int i = 0; i < 50; ++i) spdlog::warn("again");
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (told.said + told.counted < 50 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      told = Tell(SaidSoFar(), ": again", "more times within a second: again");
    }
  });
  EXPECT_EQ(told.said + told.counted, 50);
  EXPECT_GT(told.counted, 0);
}

TEST_F(LogTest, AFloodOfDifferentLinesHasAnEndToo) {
  constexpr int kLines = 20'000;
  const auto lines = Said([] {
    for (int i = 0; i < kLines; ++i) spdlog::warn("{} different", i);
    SetUpLog("tested");
  });
  const Told told = Tell(lines, " different", "more lines suppressed within a second");
  EXPECT_GE(told.said, 4096);
  EXPECT_EQ(told.said + told.counted, kLines);
}

TEST_F(LogTest, LevelsAreSetByName) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  EXPECT_EQ(Said([] { spdlog::info("unheard"); }).size(), 0u);
  ASSERT_TRUE(SetLogLevel("info").ok());
  EXPECT_EQ(Said([] { spdlog::info("heard"); }).size(), 1u);
  EXPECT_THAT(std::string(SetLogLevel("loud").message()),
              HasSubstr("\"loud\": expected debug, info"));
  EXPECT_THAT(std::string(SetLogFormat("xml").message()), HasSubstr("expected text or json"));
}

}  // namespace
}  // namespace percs
