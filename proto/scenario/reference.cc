#include <set>
#include <string>

#include "fmt/format.h"
#include "proto/scenario/describe.h"
#include "proto/scenario/fields.h"

namespace percs {
namespace {

std::string ValueColumn(const FieldDescriptor* field) {
  if (field->is_repeated()) return "list";
  if (field->message_type() != nullptr) return ListOf(field->message_type()) ? "list" : "group";
  if (field->enum_type() != nullptr) return "choice";
  switch (RulesOf(field).unit()) {
    case v1::FieldRules::TIME:
      return "time";
    case v1::FieldRules::BYTES:
      return "bytes";
    case v1::FieldRules::RATE:
      return "rate";
    case v1::FieldRules::PACE:
      return "pace";
    case v1::FieldRules::FLITS:
      return "flits";
    case v1::FieldRules::PACKETS:
      return "packets";
    case v1::FieldRules::COUNT:
      return "number";
    case v1::FieldRules::FRACTION:
      return "decimal";
    default:
      break;
  }
  if (RulesOf(field).name_of_node()) return "hub name";
  if (RulesOf(field).name_of_link()) return "link name";
  return field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL ? "true or false" : "text";
}

std::string DefaultColumn(const FieldDescriptor* field) {
  const v1::FieldRules& rules = RulesOf(field);
  if (rules.required()) return "required";
  const std::string& text = rules.default_text();
  if (text.empty()) return "";
  return text[0] == '(' ? text.substr(1, text.size() - 2) : fmt::format("`{}`", text);
}

std::string MeaningColumn(const FieldDescriptor* field) {
  const v1::FieldRules& rules = RulesOf(field);
  std::string text = rules.doc();
  if (field->enum_type() != nullptr) {
    const char* separator = "";
    for (const EnumValueDescriptor* value : Choices(field->enum_type())) {
      text += fmt::format("{} `{}`: {}", separator, ChoiceName(value),
                          value->options().GetExtension(v1::meaning));
      separator = ";";
    }
    text += ".";
  }
  if (!rules.source().empty()) text += fmt::format(" Source: {}.", rules.source());
  return text;
}

class ReferenceWriter {
 public:
  std::string Write() {
    Section(v1::Scenario::descriptor(), "");
    return std::move(text_);
  }

 private:
  void Section(const Descriptor* type, const std::string& path) {
    if (!seen_.insert(type->full_name()).second) return;
    const FieldDescriptor* list = ListOf(type);
    if (list != nullptr) return Section(list->message_type(), path + "[]");
    text_ += path.empty() ? "\n### The file\n\n" : fmt::format("\n### `{}`\n\n", path);
    text_ += type->options().GetExtension(v1::about) + "\n\n";
    text_ += "| field | value | default | range | meaning |\n| --- | --- | --- | --- | --- |\n";
    for (const FieldDescriptor* field : VisibleFields(type)) {
      text_ += fmt::format("| `{}` | {} | {} | {} | {} |\n", field->name(), ValueColumn(field),
                           DefaultColumn(field), RangeText(field), MeaningColumn(field));
    }
    // Kinds of which one is chosen come first: a type that is used beside them, too, is looked for
    // there.
    for (const bool chosen : {true, false}) {
      for (const FieldDescriptor* field : VisibleFields(type)) {
        if (field->message_type() == nullptr ||
            (field->real_containing_oneof() != nullptr) != chosen)
          continue;
        const std::string name = field->name() + (field->is_repeated() ? "[]" : "");
        Section(field->message_type(), path.empty() ? name : path + "." + name);
      }
    }
  }

  std::set<std::string> seen_;
  std::string text_;
};

}  // namespace

std::string ScenarioReference() { return ReferenceWriter().Write(); }

}  // namespace percs
