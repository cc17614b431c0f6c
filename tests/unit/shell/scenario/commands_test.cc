// The table of commands and the options of their methods: every command of the Control service can
// be recorded, carried out and answered. Method: descriptors, and a drawer of two hubs in this
// process.
#include "proto/scenario/commands.h"

#include <gmock/gmock.h>

#include "proto/process/message_bytes.h"
#include "proto/scenario/build.h"
#include "proto/scenario/command_methods.h"
#include "proto/scenario/reader.h"

namespace percs {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::MethodDescriptor;
using testing::HasSubstr;

const MethodDescriptor& Method(const std::string& name) {
  for (const MethodDescriptor* method : CommandMethods())
    if (method->name() == name) return *method;
  ADD_FAILURE() << name << " is not a command";
  return *CommandMethods().front();
}

TEST(CommandMethodsTest, EveryCommandHasARowAndAReplyWithItsTime) {
  ASSERT_GE(CommandMethods().size(), 10u);
  for (const MethodDescriptor* method : CommandMethods()) {
    const v1::JournalRecord record = CommandRecord(*method, *NewMessage(method->input_type()));
    EXPECT_NE(record.event_case(), v1::JournalRecord::EVENT_NOT_SET) << method->name();
    EXPECT_NE(ScopeOf(record.event_case()), CommandScope::kNone) << method->name();
    const FieldDescriptor* const at = method->output_type()->FindFieldByName("at");
    ASSERT_NE(at, nullptr) << method->name();
    EXPECT_EQ(at->cpp_type(), FieldDescriptor::CPPTYPE_INT64) << method->name();
    const v1::CommandRules& rules = CommandRulesOf(*method);
    EXPECT_EQ(rules.words().empty(), rules.summary().empty()) << method->name();
    EXPECT_EQ(rules.words().empty(), rules.done().empty()) << method->name();
  }
}

TEST(CommandMethodsTest, ARecordHasWhatTheRequestSays) {
  v1::CreateFaultRequest create;
  create.mutable_fault()->set_id("cut");
  create.set_lease_wall_ms(250);
  const v1::JournalRecord fault = CommandRecord(Method("CreateFault"), create);
  EXPECT_EQ(fault.create_fault().id(), "cut");
  EXPECT_EQ(fault.lease_wall_ms(), 250u);
  v1::DeleteTreeRequest tree;
  tree.set_name("world");
  EXPECT_EQ(CommandRecord(Method("DeleteTree"), tree).delete_tree(), "world");
  v1::TraceRequest trace;
  trace.mutable_selection()->set_count(7);
  EXPECT_EQ(CommandRecord(Method("Trace"), trace).trace().count(), 7u);
  EXPECT_TRUE(CommandRecord(Method("Stop"), v1::StopRequest()).stop());
}

TEST(CommandMethodsTest, ADescriptionIsShort) {
  v1::JournalRecord record;
  EXPECT_EQ(DescribeCommand(record), "no command");
  record.set_delete_tree("world");
  EXPECT_EQ(DescribeCommand(record), "delete_tree world");
  record.set_delete_tree(std::string(1000, 'x'));
  EXPECT_LT(DescribeCommand(record).size(), 250u);
}

class CommandsTest : public testing::Test {
 protected:
  CommandsTest() : scenario_(ScenarioOfTwoHubs()), fabric_(MakeFabric(scenario_)) {}

  static Scenario ScenarioOfTwoHubs() {
    auto message = ReadScenarioText("topology: {drawers: 1, hubs: 2}\n", "commands.yaml",
                                    ScenarioFormat::kYaml);
    EXPECT_TRUE(message.ok()) << message.status();
    auto scenario = BuildScenario(*message, "");
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    return *std::move(scenario);
  }
  static std::unique_ptr<Fabric> MakeFabric(const Scenario& scenario) {
    auto fabric = Fabric::Create(scenario, Placement::Single(2));
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    return *std::move(fabric);
  }

  Scenario scenario_;
  std::unique_ptr<Fabric> fabric_;
};

TEST_F(CommandsTest, AnAnswerIsFilledAndNobodyHasToAsk) {
  v1::JournalRecord record;
  record.mutable_create_fault()->set_id("cut");
  record.mutable_create_fault()->set_link_down("sn0-d0-h0:LL0");
  v1::FaultReply reply;
  ASSERT_TRUE(CheckCommand(record, *fabric_).ok());
  ASSERT_TRUE(ActOnFabric(record, *fabric_, 70, &reply).ok());
  EXPECT_EQ(reply.at(), 70);
  EXPECT_EQ(reply.fault().id(), "cut");
  v1::JournalRecord reset;
  reset.set_reset_faults(true);
  v1::ResetFaultsReply deleted;
  ASSERT_TRUE(ActOnFabric(reset, *fabric_, 80, &deleted).ok());
  EXPECT_EQ(deleted.deleted(), 1u);
  EXPECT_TRUE(ActOnFabric(reset, *fabric_, 90).ok());
}

TEST_F(CommandsTest, WhatNamesNothingIsRefusedBeforeItIsJournalled) {
  v1::JournalRecord record;
  record.mutable_create_fault()->set_id("cut");
  record.mutable_create_fault()->set_link_down("sn0-d0-h0:LL9");
  EXPECT_FALSE(CheckCommand(record, *fabric_).ok());
  record.mutable_create_fault()->set_link_down("sn0-d0-h0:LL0");
  record.set_lease_wall_ms(8ull * 24 * 3600 * 1000);
  EXPECT_THAT(std::string(CheckCommand(record, *fabric_).message()),
              HasSubstr("a lease of 691200000 ms"));
  record.set_delete_tree("world");
  EXPECT_TRUE(absl::IsNotFound(CheckCommand(record, *fabric_)));
  record.Clear();
  EXPECT_TRUE(absl::IsDataLoss(ActOnFabric(record, *fabric_, 0)));
}

}  // namespace
}  // namespace percs
