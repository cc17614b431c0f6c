// What lines of log look like and how often they are said. Method: a real line on stderr, captured.
#include "daemon/config/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

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
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
};

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
  EXPECT_THAT(first["message"].get<std::string>(), HasSubstr("a \"quoted\"\nname "));
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["program"], "tested");
  EXPECT_TRUE(first["virtual_ps"].is_null());
  EXPECT_EQ(second["virtual_ps"], 7);
  EXPECT_THAT(second["wall"].get<std::string>(), MatchesRegex("....-..-..T..:..:..\\....Z"));
}

TEST_F(LogTest, ARepeatedMessageIsSaidTenTimesASecondAndCounted) {
  constexpr int kTimes = 500;
  std::vector<std::string> lines = Said([] {
    for (int i = 0; i < kTimes; ++i) spdlog::warn("again");
    spdlog::warn("something else");
  });
  // The seconds of the wall clock are not ours to choose: a burst may touch two of them.
  const auto again = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.size() > 5 && line.compare(line.size() - 7, 7, ": again") == 0;
  });
  EXPECT_GE(again, 10);
  EXPECT_LE(again, 21);
  EXPECT_THAT(lines.back(), HasSubstr("something else"));
}

TEST_F(LogTest, LevelsAreSetByName) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  EXPECT_EQ(Said([] { spdlog::info("unheard"); }).size(), 0u);
  ASSERT_TRUE(SetLogLevel("info").ok());
  EXPECT_EQ(Said([] { spdlog::info("heard"); }).size(), 1u);
  EXPECT_THAT(std::string(SetLogLevel("loud").message()), HasSubstr("\"loud\": expected debug, info"));
  EXPECT_THAT(std::string(SetLogFormat("xml").message()), HasSubstr("expected text or json"));
}

}  // namespace
}  // namespace percs
