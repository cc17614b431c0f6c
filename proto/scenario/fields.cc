#include "proto/scenario/fields.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/process/printable.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

bool IsWhole(const std::string& text) {
  const std::size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > sign &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(sign), text.end(),
                     [](unsigned char c) { return std::isdigit(c); });
}

template <typename T>
bool ParseWhole(const std::string& text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status OutOfRange(const FieldDescriptor* field, const std::string& text) {
  return absl::InvalidArgumentError(
      fmt::format("{} is out of range; allowed: {}", text, RangeText(field)));
}

// Integers of every width, by way of 128 bits.
__int128 WholeValue(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->GetUInt64(message, field);
    default:
      break;
  }
  PERCS_CHECK(false);
}

bool SetWhole(Message* message, const FieldDescriptor* field, const std::string& text) {
  const auto* reflection = message->GetReflection();
  const auto set = [&](auto value, auto setter) {
    if (!ParseWhole(text, &value)) return false;
    (reflection->*setter)(message, field, value);
    return true;
  };
  using R = google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return set(std::int32_t{}, &R::SetInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return set(std::int64_t{}, &R::SetInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return set(std::uint32_t{}, &R::SetUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return set(std::uint64_t{}, &R::SetUInt64);
    default:
      break;
  }
  PERCS_CHECK(false);
}

// A bound of a whole-number field in base units.
__int128 Bound(const FieldDescriptor* field, const std::string& text) {
  if (const auto quantity = QuantityOf(field)) {
    const auto value = ParseQuantity(*quantity, text);
    PERCS_CHECK(value.ok());
    return *value;
  }
  if (text[0] == '-') {
    std::int64_t value = 0;
    PERCS_CHECK(ParseWhole(text, &value));
    return value;
  }
  std::uint64_t value = 0;
  PERCS_CHECK(ParseWhole(text, &value));
  return value;
}

absl::Status SetNumber(Message* message, const FieldDescriptor* field, const std::string& text) {
  if (!IsWhole(text)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a whole number; write for example {}", text, ExampleOf(field)));
  }
  if (!SetWhole(message, field, text)) return OutOfRange(field, text);
  return absl::OkStatus();
}

absl::Status SetQuantity(Message* message, const FieldDescriptor* field, Quantity quantity,
                         const std::string& text) {
  std::int64_t value = 0;  // `max` of a pace
  if (quantity != Quantity::kPace || text != "max") {
    const auto parsed = ParseQuantity(quantity, text);
    if (!parsed.ok()) return parsed.status();
    value = *parsed;
    if (quantity == Quantity::kPace && value == 0) return OutOfRange(field, text);
  }
  message->GetReflection()->SetInt64(message, field, value);
  return absl::OkStatus();
}

absl::Status SetFraction(Message* message, const FieldDescriptor* field, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a number; write for example {}", text, ExampleOf(field)));
  }
  message->GetReflection()->SetDouble(message, field, value);
  return absl::OkStatus();
}

absl::Status SetChoice(Message* message, const FieldDescriptor* field, const std::string& text) {
  for (const EnumValueDescriptor* value : Choices(field->enum_type())) {
    if (ChoiceName(value) != text) continue;
    message->GetReflection()->SetEnum(message, field, value);
    return absl::OkStatus();
  }
  const std::vector<std::string> names = ChoiceNames(field->enum_type());
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is not a choice{}", text, Suggest(text, names, "choices")));
}

absl::Status SetBool(Message* message, const FieldDescriptor* field, const std::string& text) {
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not true or false; write true or false", text));
  }
  message->GetReflection()->SetBool(message, field, text == "true");
  return absl::OkStatus();
}

}  // namespace

const v1::FieldRules& RulesOf(const FieldDescriptor* field) {
  return field->options().GetExtension(v1::field);
}

std::vector<const FieldDescriptor*> VisibleFields(const Descriptor* type) {
  std::vector<const FieldDescriptor*> fields;
  for (int i = 0; i < type->field_count(); ++i) {
    if (!Hidden(type->field(i))) fields.push_back(type->field(i));
  }
  return fields;
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (const FieldDescriptor* field : VisibleFields(type)) names.push_back(field->name());
  return names;
}

const FieldDescriptor* ListOf(const Descriptor* type) {
  const bool list = type->field_count() == 1 && type->field(0)->is_repeated();
  return list ? type->field(0) : nullptr;
}

std::string ChildPath(const std::string& path, const FieldDescriptor* field) {
  if (ListOf(field->containing_type()) == field) return path;
  return path.empty() ? field->name() : path + "." + field->name();
}

std::string ChoiceName(const EnumValueDescriptor* value) {
  const std::string zero = value->type()->FindValueByNumber(0)->name();
  const std::size_t prefix = zero.size() - std::string("UNSPECIFIED").size();
  std::string name = value->name().substr(prefix);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::vector<const EnumValueDescriptor*> Choices(const EnumDescriptor* type) {
  std::vector<const EnumValueDescriptor*> values;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) values.push_back(type->value(i));
  }
  return values;
}

std::vector<std::string> ChoiceNames(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (const EnumValueDescriptor* value : Choices(type)) names.push_back(ChoiceName(value));
  return names;
}

std::optional<Quantity> QuantityOf(const FieldDescriptor* field) {
  switch (RulesOf(field).unit()) {
    case v1::FieldRules::TIME:
      return Quantity::kTime;
    case v1::FieldRules::BYTES:
      return Quantity::kBytes;
    case v1::FieldRules::RATE:
      return Quantity::kRate;
    case v1::FieldRules::PACE:
      return Quantity::kPace;
    default:
      return std::nullopt;
  }
}

std::string DefaultValue(const FieldDescriptor* field) {
  const std::string& text = RulesOf(field).default_text();
  return text.empty() || text[0] == '(' ? "" : text;
}

std::string ExampleOf(const FieldDescriptor* field) {
  const std::string& example = RulesOf(field).example();
  return example.empty() ? DefaultValue(field) : example;
}

std::optional<WholeRange> RangeOf(const FieldDescriptor* field) {
  const v1::FieldRules& rules = RulesOf(field);
  if (rules.min().empty() || field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)
    return std::nullopt;
  return WholeRange{Bound(field, rules.min()), Bound(field, rules.max())};
}

std::string RangeText(const FieldDescriptor* field) {
  const v1::FieldRules& rules = RulesOf(field);
  if (rules.min().empty()) return "";
  if (rules.min_exclusive()) return fmt::format("above {}, at most {}", rules.min(), rules.max());
  const char* or_max = rules.unit() == v1::FieldRules::PACE ? ", or max" : "";
  return fmt::format("{} to {}{}", rules.min(), rules.max(), or_max);
}

absl::Status SetFromText(Message* message, const FieldDescriptor* field, const std::string& text) {
  if (const auto quantity = QuantityOf(field)) return SetQuantity(message, field, *quantity, text);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      message->GetReflection()->SetString(message, field, text);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(message, field, text);
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetChoice(message, field, text);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetFraction(message, field, text);
    default:
      return SetNumber(message, field, text);
  }
}

std::string ValueText(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return ChoiceName(reflection->GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return fmt::format("{}", reflection->GetUInt64(message, field));
    default:
      break;
  }
  const auto value = static_cast<std::int64_t>(WholeValue(message, field));
  const auto quantity = QuantityOf(field);
  if (!quantity) return fmt::format("{}", value);
  return *quantity == Quantity::kPace && value == 0 ? "max" : PrintQuantity(*quantity, value);
}

absl::Status CheckValue(const Message& message, const FieldDescriptor* field) {
  const v1::FieldRules& rules = RulesOf(field);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const int number = message.GetReflection()->GetEnumValue(message, field);
    if (field->enum_type()->FindValueByNumber(number) != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{} is not a choice; choices: {}", number,
                    fmt::join(ChoiceNames(field->enum_type()), ", ")));
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
      (field->name() == "name" || field->name() == "id")) {
    std::string scratch;
    return CheckName(message.GetReflection()->GetStringReference(message, field, &scratch));
  }
  if (rules.min().empty()) return absl::OkStatus();
  bool inside = false;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    const double value = message.GetReflection()->GetDouble(message, field);
    const double min = std::stod(rules.min());
    inside =
        value >= min && value <= std::stod(rules.max()) && !(rules.min_exclusive() && value == min);
  } else {
    const __int128 value = WholeValue(message, field);
    const bool unpaced = rules.unit() == v1::FieldRules::PACE && value == 0;
    const WholeRange range = *RangeOf(field);
    inside = unpaced || (value >= range.min && value <= range.max);
  }
  return inside ? absl::OkStatus() : OutOfRange(field, ValueText(message, field));
}

void FillDefaults(Message* message) {
  for (const FieldDescriptor* field : VisibleFields(message->GetDescriptor())) {
    if (field->is_repeated() || field->real_containing_oneof() != nullptr) continue;
    if (field->message_type() != nullptr) {
      FillDefaults(message->GetReflection()->MutableMessage(message, field));
      continue;
    }
    const std::string text = DefaultValue(field);
    if (text.empty() || message->GetReflection()->HasField(*message, field)) continue;
    PERCS_CHECK(SetFromText(message, field, text).ok());
  }
}

}  // namespace percs
