// Scenarios drawn from the schema. Method: fixed numbers, each scenario run in every way there is
// (tests/generate/scenario_check.h), and the files of tests/generate/found, the smallest parts of
// those that failed once. scenario_campaign goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "proto/scenario/fields.h"
#include "proto/scenario/reader.h"
#include "tests/generate/random_message.h"
#include "tests/generate/random_scenario.h"
#include "tests/generate/scenario_check.h"
#include "tests/support/source_dir.h"

namespace percs::generate {
namespace {

constexpr std::uint64_t kFirst = 1, kScenarios = 200;
const std::string kFound = test::SourceDir() + "/tests/generate/found";

TEST(GeneratedScenario, GivesTheSameResultInEveryWayToRunIt) {
  for (std::uint64_t seed = kFirst; seed < kFirst + kScenarios; ++seed)
    EXPECT_EQ(FailureOf(seed), "") << "scenario_campaign --shrink " << seed;
}

TEST(GeneratedScenario, ThatFailedOnceDoesNotFailAgain) {
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFound)) {
    const auto loaded = LoadScenarioFile(file.path());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(FailureOf(loaded->scenario), "")
        << "scenario_campaign --replay " << file.path().string();
    ++files;
  }
  EXPECT_GT(files, 0);
}

void NameFields(const Message& message, std::set<std::string>* names) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    names->insert(field->full_name());
    if (field->message_type() == nullptr) continue;
    const auto* reflection = message.GetReflection();
    if (!field->is_repeated()) {
      NameFields(reflection->GetMessage(message, field), names);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      NameFields(reflection->GetRepeatedMessage(message, field, i), names);
  }
}

void NameAllFields(const Descriptor* type, std::set<std::string>* names) {
  for (const FieldDescriptor* field : VisibleFields(type)) {
    if (names->insert(field->full_name()).second && field->message_type() != nullptr)
      NameAllFields(field->message_type(), names);
  }
}

// Fields with conditions of their own come with more scenarios than a test has time for.
TEST(GeneratedScenario, NearlyEveryFieldOfTheSchemaIsDrawnAndGetsPastTheCheck) {
  std::set<std::string> missing;
  NameAllFields(v1::Scenario::descriptor(), &missing);
  const std::size_t all = missing.size();
  for (std::uint64_t seed = 1; seed <= 300 && !missing.empty(); ++seed) {
    std::set<std::string> drawn;
    NameFields(RandomScenario(seed), &drawn);
    for (const std::string& field : drawn) missing.erase(field);
  }
  EXPECT_LE(missing.size(), 30u) << "of " << all << ": " << testing::PrintToString(missing);
}

TEST(GeneratedMessage, NumbersReachBothEndsOfTheirRangeAndNeverPassThem) {
  RandomStream random(1, "test");
  DrawSettings settings;
  settings.large = 1;
  MessageDraw draw(&random, settings);
  const auto* field = v1::PatternTraffic::descriptor()->FindFieldByName("message_bytes");
  const WholeRange range = *RangeOf(field);
  bool least = false, most = false;
  for (int i = 0; i < 1000; ++i) {
    v1::PatternTraffic message;
    draw.DrawField(&message, field);
    EXPECT_GE(message.message_bytes(), range.min);
    EXPECT_LE(message.message_bytes(), range.max);
    least = least || message.message_bytes() == range.min;
    most = most || message.message_bytes() == range.max;
  }
  EXPECT_TRUE(least);
  EXPECT_TRUE(most);
}

TEST(GeneratedMessage, ShrinksToWhatMatters) {
  v1::Scenario scenario = DrawScenario(1);
  scenario.mutable_topology()->set_hubs(3);
  v1::Tree* tree = scenario.add_trees();
  tree->set_name("kept");
  tree->set_fan_out(2);
  ShrinkMessage(&scenario, [&] {
    for (const v1::Tree& t : scenario.trees()) {
      if (t.name() == "kept") return scenario.topology().hubs() == 3;
    }
    return false;
  });
  v1::Scenario expected;
  expected.mutable_topology()->set_hubs(3);
  expected.add_trees()->set_name("kept");
  EXPECT_EQ(scenario.ShortDebugString(), expected.ShortDebugString());
}

}  // namespace
}  // namespace percs::generate
