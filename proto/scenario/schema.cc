#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "proto/scenario/describe.h"
#include "proto/scenario/fields.h"

namespace percs {
namespace {

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string QuoteAll(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + Quote(text);
  return joined;
}

class SchemaWriter {
 public:
  std::string Write() {
    Define(v1::Scenario::descriptor());
    std::string all;
    for (const std::string& definition : definitions_) {
      all += (all.empty() ? "" : ",\n") + definition;
    }
    return fmt::format(R"({{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "PERCS emulator scenario",
  "allOf": [{{"$ref": "#/definitions/Scenario"}}],
  "definitions": {{
{}
  }}
}}
)",
                       all);
  }

 private:
  void Define(const Descriptor* type) {
    if (!defined_.insert(type->full_name()).second) return;
    const std::size_t place = definitions_.size();
    definitions_.emplace_back();  // keeps the outer message before its parts
    definitions_[place] =
        fmt::format("    {}: {{\n      {}\n    }}", Quote(type->name()), Body(type));
  }

  std::string Body(const Descriptor* type) {
    const std::string about = Quote(type->options().GetExtension(v1::about));
    if (const FieldDescriptor* list = ListOf(type)) {
      return fmt::format("\"description\": {}, {}", about, Array(list, "\"array\""));
    }
    std::string properties;
    std::vector<std::string> required;
    for (const FieldDescriptor* field : VisibleFields(type)) {
      properties += fmt::format("{}\n        {}: {{{}}}", properties.empty() ? "" : ",",
                                Quote(field->name()), Property(field));
      if (RulesOf(field).required()) required.push_back(field->name());
    }
    const bool empty_is_right = required.empty() && type->real_oneof_decl_count() == 0;
    std::string body = fmt::format("\"description\": {},\n      \"type\": {},\n      ", about,
                                   empty_is_right ? "[\"object\", \"null\"]" : "\"object\"");
    body += fmt::format("\"additionalProperties\": false,\n      \"properties\": {{{}\n      }}",
                        properties);
    if (!required.empty()) body += fmt::format(",\n      \"required\": [{}]", QuoteAll(required));
    return body + OneOf(type);
  }

  static std::string OneOf(const Descriptor* type) {
    std::string choices;
    for (int i = 0; i < type->real_oneof_decl_count(); ++i) {
      const auto* oneof = type->oneof_decl(i);
      for (int k = 0; k < oneof->field_count(); ++k) {
        choices += fmt::format("{}{{\"required\": [{}]}}", choices.empty() ? "" : ", ",
                               Quote(oneof->field(k)->name()));
      }
    }
    return choices.empty() ? "" : fmt::format(",\n      \"oneOf\": [{}]", choices);
  }

  std::string Array(const FieldDescriptor* field, const char* type) {
    Define(field->message_type());
    return fmt::format("\"type\": {}, \"items\": {{\"$ref\": \"#/definitions/{}\"}}{}", type,
                       field->message_type()->name(),
                       RulesOf(field).required() ? ", \"minItems\": 1" : "");
  }

  std::string Property(const FieldDescriptor* field) {
    const std::string description = "\"description\": " + Quote(Describe(field));
    if (field->is_repeated()) return description + ", " + Array(field, "[\"array\", \"null\"]");
    if (field->message_type() != nullptr) {
      Define(field->message_type());
      return fmt::format("{}, \"allOf\": [{{\"$ref\": \"#/definitions/{}\"}}]", description,
                         field->message_type()->name());
    }
    return description + ", " + Value(field) + Default(field);
  }

  static std::string Describe(const FieldDescriptor* field) {
    const v1::FieldRules& rules = RulesOf(field);
    std::string text = rules.doc();
    if (field->enum_type() != nullptr) {
      for (const EnumValueDescriptor* value : Choices(field->enum_type())) {
        text +=
            fmt::format(" {}: {}.", ChoiceName(value), value->options().GetExtension(v1::meaning));
      }
    }
    if (QuantityOf(field)) text += fmt::format(" Range: {}.", RangeText(field));
    if (!DefaultValue(field).empty()) text += fmt::format(" Default: {}.", rules.default_text());
    if (!rules.source().empty()) text += fmt::format(" Source: {}.", rules.source());
    return text;
  }

  static std::string Value(const FieldDescriptor* field) {
    if (const auto quantity = QuantityOf(field)) {
      return fmt::format("\"type\": \"string\", \"pattern\": {}",
                         Quote(QuantityPattern(*quantity)));
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_ENUM:
        return fmt::format("\"enum\": [{}]", QuoteAll(ChoiceNames(field->enum_type())));
      case FieldDescriptor::CPPTYPE_BOOL:
        return "\"type\": \"boolean\"";
      case FieldDescriptor::CPPTYPE_STRING:
        return "\"type\": \"string\"";
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return "\"type\": \"number\"" + Bounds(field);
      default:
        return "\"type\": \"integer\"" + Bounds(field);
    }
  }

  static std::string Bounds(const FieldDescriptor* field) {
    const v1::FieldRules& rules = RulesOf(field);
    return fmt::format(", \"{}\": {}, \"maximum\": {}",
                       rules.min_exclusive() ? "exclusiveMinimum" : "minimum", rules.min(),
                       rules.max());
  }

  static std::string Default(const FieldDescriptor* field) {
    const std::string text = DefaultValue(field);
    if (text.empty()) return "";
    const bool bare = !QuantityOf(field) && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
                      field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM;
    return fmt::format(", \"default\": {}", bare ? text : Quote(text));
  }

  std::set<std::string> defined_;
  std::vector<std::string> definitions_;
};

}  // namespace

std::string JsonSchema() { return SchemaWriter().Write(); }

}  // namespace percs
