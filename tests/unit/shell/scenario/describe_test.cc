// The schema's description of itself: JSON Schema, reference page, and options that hold together.
#include "proto/scenario/describe.h"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/file.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

void VisitFields(const Descriptor* type, const std::function<void(const FieldDescriptor*)>& visit) {
  for (const FieldDescriptor* field : VisibleFields(type)) {
    visit(field);
    if (field->message_type() != nullptr) VisitFields(field->message_type(), visit);
  }
}

Struct Schema() {
  Struct schema;
  const auto status = google::protobuf::util::JsonStringToMessage(JsonSchema(), &schema);
  EXPECT_TRUE(status.ok()) << status;
  return schema;
}

TEST(Options, EveryFieldIsDocumented) {
  VisitFields(v1::Scenario::descriptor(), [](const FieldDescriptor* field) {
    EXPECT_FALSE(RulesOf(field).doc().empty()) << field->full_name();
    if (field->enum_type() == nullptr) return;
    for (const EnumValueDescriptor* value : Choices(field->enum_type())) {
      EXPECT_FALSE(value->options().GetExtension(v1::meaning).empty()) << value->full_name();
    }
  });
}

TEST(Options, EveryValueHasADefaultOrIsRequiredOrChosen) {
  VisitFields(v1::Scenario::descriptor(), [](const FieldDescriptor* field) {
    if (field->message_type() != nullptr || field->real_containing_oneof() != nullptr) return;
    EXPECT_NE(RulesOf(field).required(), !RulesOf(field).default_text().empty())
        << field->full_name();
    EXPECT_FALSE(ExampleOf(field).empty()) << field->full_name();
  });
}

TEST(Options, EveryNumberHasAUnitAndARange) {
  VisitFields(v1::Scenario::descriptor(), [](const FieldDescriptor* field) {
    const v1::FieldRules& rules = RulesOf(field);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT64:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        EXPECT_NE(rules.unit(), v1::FieldRules::NONE) << field->full_name();
        EXPECT_FALSE(rules.min().empty() || rules.max().empty()) << field->full_name();
        break;
      default:
        EXPECT_EQ(rules.unit(), v1::FieldRules::NONE) << field->full_name();
    }
  });
}

TEST(Options, EveryParameterNamesItsSource) {
  VisitFields(v1::P7ihParameters::descriptor(), [](const FieldDescriptor* field) {
    if (field->message_type() == nullptr) {
      EXPECT_FALSE(RulesOf(field).source().empty()) << field->full_name();
    }
  });
}

// Default, minimum and maximum of each field are themselves values the field takes.
TEST(Options, DefaultsAndBoundsLieInTheRange) {
  const auto* factory = google::protobuf::MessageFactory::generated_factory();
  VisitFields(v1::Scenario::descriptor(), [&](const FieldDescriptor* field) {
    if (field->message_type() != nullptr) return;
    const v1::FieldRules& rules = RulesOf(field);
    std::vector<std::string> texts = {DefaultValue(field), rules.example(), rules.max()};
    if (!rules.min_exclusive()) texts.push_back(rules.min());
    for (const std::string& text : texts) {
      if (text.empty()) continue;
      const std::unique_ptr<Message> message(const_cast<google::protobuf::MessageFactory*>(factory)
                                                 ->GetPrototype(field->containing_type())
                                                 ->New());
      EXPECT_TRUE(SetFromText(message.get(), field, text).ok()) << field->full_name() << text;
      EXPECT_TRUE(CheckValue(*message, field).ok()) << field->full_name() << " " << text;
    }
  });
}

TEST(Schema, DefinesEveryMessageAndField) {
  const Struct schema = Schema();
  const auto& definitions = schema.fields().at("definitions").struct_value().fields();
  VisitFields(v1::Scenario::descriptor(), [&](const FieldDescriptor* field) {
    const Descriptor* type = field->containing_type();
    ASSERT_TRUE(definitions.contains(type->name())) << type->full_name();
    const auto& definition = definitions.at(type->name()).struct_value().fields();
    if (ListOf(type) != nullptr) {
      EXPECT_EQ(definition.at("type").string_value(), "array");
      return;
    }
    EXPECT_FALSE(definition.at("additionalProperties").bool_value());
    const auto& properties = definition.at("properties").struct_value().fields();
    ASSERT_TRUE(properties.contains(field->name())) << field->full_name();
    const auto& property = properties.at(field->name()).struct_value().fields();
    EXPECT_NE(property.at("description").string_value().find(RulesOf(field).doc()),
              std::string::npos);
  });
  EXPECT_FALSE(JsonSchema().find("inline_trace") != std::string::npos);
}

TEST(Schema, PatternsTakeWhatTheReaderTakes) {
  for (const auto quantity :
       {Quantity::kTime, Quantity::kBytes, Quantity::kRate, Quantity::kPace}) {
    const std::regex pattern(QuantityPattern(quantity));
    for (const char* text :
         {"1ps", "1.5us", "2 ms", "64KiB", "5GB/s", "1us/s", "64", "ps", "-1ps"}) {
      EXPECT_EQ(std::regex_match(text, pattern), ParseQuantity(quantity, text).ok()) << text;
    }
  }
}

// PERCS_UPDATE_DOCS=1 rewrites the generated part of the page.
TEST(Reference, ThePageIsCurrent) {
  const std::string path = test::SourceDir() + "/docs/scenario.md";
  const std::string marker = "<!-- Generated from proto/percs/v1 from here on. -->\n";
  const auto page = ReadWholeFile(path);
  ASSERT_TRUE(page.ok()) << page.status();
  const std::size_t cut = page->find(marker);
  ASSERT_NE(cut, std::string::npos);
  const std::string head = page->substr(0, cut + marker.size());
  if (std::getenv("PERCS_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << head << ScenarioReference();
    return;
  }
  EXPECT_EQ(page->substr(head.size()), ScenarioReference())
      << "run: PERCS_UPDATE_DOCS=1 build/bin/shell_test --gtest_filter=Reference.*";
}

}  // namespace
}  // namespace percs
