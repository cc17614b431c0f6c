#include "client/percsctl/field_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "client/percsctl/fabric_options.h"
#include "proto/scenario/fields.h"

namespace percs {
namespace {

std::string OptionOf(std::string field) {
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

}  // namespace

bool IsWall(const std::string& text) {
  const auto time = ParseUserTime(text);
  return time.ok() && time->wall;
}

void AddFieldOptions(CLI::App& app, const Descriptor* type, FieldTexts* texts) {
  for (const FieldDescriptor* field : VisibleFields(type)) {
    if (field->message_type() != nullptr) continue;
    std::string help = RulesOf(field).doc();
    if (field->enum_type() != nullptr)
      help += fmt::format(" One of {}.", fmt::join(ChoiceNames(field->enum_type()), ", "));
    auto* option = app.add_option(OptionOf(field->name()), (*texts)[field->name()], help);
    if (RulesOf(field).required()) option->required();
  }
}

Outcome SetFieldTexts(const FieldTexts& texts, Message* message) {
  for (const auto& [name, text] : texts) {
    if (text.empty()) continue;
    if (IsWall(text)) {
      return Outcome::Fail(
          ExitCode::kUsage,
          fmt::format("{}: {} is wall-clock time, but this option takes virtual time; write {}",
                      OptionOf(name), text, text.substr(text.find(':') + 1)));
    }
    const auto* field = message->GetDescriptor()->FindFieldByName(name);
    const absl::Status status = SetFromText(message, field, text);
    if (!status.ok()) {
      return Outcome::Fail(ExitCode::kUsage,
                           fmt::format("{}: {}", OptionOf(name), std::string(status.message())));
    }
  }
  return Outcome::Ok();
}

}  // namespace percs
