#include <string>

#include "proto/scenario/describe.h"
#include "proto/scenario/fields.h"
#include "yaml-cpp/yaml.h"

namespace percs {
namespace {

void WriteMessage(const Message& message, YAML::Emitter* out);

void WriteList(const Message& message, const FieldDescriptor* field, YAML::Emitter* out) {
  *out << YAML::BeginSeq;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    WriteMessage(message.GetReflection()->GetRepeatedMessage(message, field, i), out);
  }
  *out << YAML::EndSeq;
}

bool Written(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  if (field->is_repeated()) return reflection->FieldSize(message, field) > 0;
  if (!reflection->HasField(message, field)) return false;
  return field->enum_type() == nullptr || reflection->GetEnumValue(message, field) != 0;
}

void WriteMessage(const Message& message, YAML::Emitter* out) {
  if (const FieldDescriptor* list = ListOf(message.GetDescriptor())) {
    return WriteList(message, list, out);
  }
  *out << YAML::BeginMap;
  for (const FieldDescriptor* field : VisibleFields(message.GetDescriptor())) {
    if (!Written(message, field)) continue;
    *out << YAML::Key << field->name() << YAML::Value;
    if (field->is_repeated()) {
      WriteList(message, field, out);
    } else if (field->message_type() != nullptr) {
      WriteMessage(message.GetReflection()->GetMessage(message, field), out);
    } else {
      *out << ValueText(message, field);
    }
  }
  *out << YAML::EndMap;
}

}  // namespace

std::string PrintScenarioYaml(const v1::Scenario& scenario) {
  YAML::Emitter out;
  WriteMessage(scenario, &out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace percs
