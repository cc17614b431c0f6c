// Scenarios drawn from the schema. Method: fixed numbers, each scenario run in every way there is
// (tests/generate/scenario_check.h); those that failed once stay. scenario_campaign goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/scenario/fields.h"
#include "tests/generate/random_message.h"
#include "tests/generate/random_scenario.h"
#include "tests/generate/scenario_check.h"

namespace percs::generate {
namespace {

constexpr std::uint64_t kFirst = 1, kScenarios = 200;
// Found by scenario_campaign.
constexpr std::uint64_t kFoundScenarios[] = {0, 1838, 3891};

TEST(GeneratedScenario, GivesTheSameResultInEveryWayToRunIt) {
  for (std::uint64_t seed = kFirst; seed < kFirst + kScenarios; ++seed)
    EXPECT_EQ(FailureOf(seed), "") << "scenario_campaign --shrink " << seed;
}

TEST(GeneratedScenario, ThatFailedOnceDoesNotFailAgain) {
  for (const std::uint64_t seed : kFoundScenarios)
    EXPECT_EQ(FailureOf(seed), "") << "scenario_campaign --shrink " << seed;
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

// What keeps scenarios valid takes these out: injections that fit a machine, and loops of CAUs, are
// too rare among random ones.
bool IsRare(const std::string& field) {
  for (const char* rare :
       {"percs.v1.Injection.", "percs.v1.FaultSelector.", "percs.v1.CauLoop.",
        "percs.v1.Fault.inject", "percs.v1.Fault.link_up", "percs.v1.HostParameters.shared_chunk",
        "percs.v1.TaskCollective.tree", "percs.v1.RouteSetting.middle_supernode",
        "percs.v1.WindowRepeat.steps"}) {
    if (field.starts_with(rare)) return true;
  }
  return false;
}

TEST(GeneratedScenario, EveryOtherFieldOfTheSchemaIsDrawnAndGetsPastTheCheck) {
  std::set<std::string> all, drawn;
  NameAllFields(v1::Scenario::descriptor(), &all);
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) NameFields(RandomScenario(seed), &drawn);
  std::set<std::string> missing;
  std::set_difference(all.begin(), all.end(), drawn.begin(), drawn.end(),
                      std::inserter(missing, missing.end()));
  std::erase_if(missing, IsRare);
  EXPECT_THAT(missing, testing::IsEmpty());
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
