#include "tests/generate/random_message.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/scenario/fields.h"

namespace percs::generate {
namespace {

constexpr __int128 kManyThings = 512;  // a number of things beyond this takes long
constexpr int kFewThingsBits = 5;      // drawn below 2^5 as a rule
constexpr int kFewBytesBits = 14, kFewFlitsBits = 10;
constexpr int kShortTimeBits = 27;  // 134 us

bool IsName(const FieldDescriptor* field) {
  return (field->name() == "name" || field->name() == "id") &&
         field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

// The range of a number without rules: that of its type.
WholeRange TypeRange(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case FieldDescriptor::CPPTYPE_INT64:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
    case FieldDescriptor::CPPTYPE_UINT32:
      return {0, std::numeric_limits<std::uint32_t>::max()};
    default:
      return {0, std::numeric_limits<std::uint64_t>::max()};
  }
}

bool Set(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

}  // namespace

bool MessageDraw::IsWanted(const FieldDescriptor* field) {
  if (Hidden(field) && !settings_.hidden_too) return false;
  if (least_ && RangeOf(field) && !field->is_repeated()) return true;
  const bool required = RulesOf(field).required() && !Chance(0.002);
  return required || Chance(settings_.optional);
}

void MessageDraw::Draw(Message* message, int depth) {
  const bool least_around = least_;
  least_ = least_ || Chance(settings_.least);
  const Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->real_oneof_decl_count(); ++i) {
    const auto* oneof = type->oneof_decl(i);
    if (message->GetReflection()->HasOneof(*message, oneof) || Chance(0.02)) continue;
    const auto choice = random_.Below(static_cast<std::uint32_t>(oneof->field_count()));
    DrawField(message, oneof->field(static_cast<int>(choice)), depth);
  }
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->real_containing_oneof() != nullptr || Set(*message, field)) continue;
    if (!IsWanted(field)) continue;
    const int count =
        field->is_repeated()
            ? 1 + static_cast<int>(random_.Below(static_cast<std::uint32_t>(settings_.elements)))
            : 1;
    for (int n = 0; n < count; ++n) DrawField(message, field, depth);
  }
  least_ = least_around;
}

void MessageDraw::DrawField(Message* message, const FieldDescriptor* field, int depth) {
  if (field->message_type() == nullptr) return DrawValue(message, field);
  if (depth == 0) return;
  const auto* reflection = message->GetReflection();
  Draw(field->is_repeated() ? reflection->AddMessage(message, field)
                            : reflection->MutableMessage(message, field),
       depth - 1);
}

void MessageDraw::DrawValue(Message* message, const FieldDescriptor* field) {
  const auto* reflection = message->GetReflection();
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value = Chance(0.5);
      return list ? reflection->AddBool(message, field, value)
                  : reflection->SetBool(message, field, value);
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto choices = Choices(field->enum_type());
      const auto* value = choices[random_.Below(static_cast<std::uint32_t>(choices.size()))];
      return list ? reflection->AddEnum(message, field, value)
                  : reflection->SetEnum(message, field, value);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string value = Text(field);
      return list ? reflection->AddString(message, field, std::move(value))
                  : reflection->SetString(message, field, std::move(value));
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = Fraction(field);
      return list ? reflection->AddDouble(message, field, value)
                  : reflection->SetDouble(message, field, value);
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(Fraction(field));
      return list ? reflection->AddFloat(message, field, value)
                  : reflection->SetFloat(message, field, value);
    }
    default:
      return SetWhole(message, field, Whole(field));
  }
}

void MessageDraw::SetWhole(Message* message, const FieldDescriptor* field, __int128 value) {
  const auto* reflection = message->GetReflection();
  const bool list = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return list ? reflection->AddInt32(message, field, static_cast<std::int32_t>(value))
                  : reflection->SetInt32(message, field, static_cast<std::int32_t>(value));
    case FieldDescriptor::CPPTYPE_INT64:
      return list ? reflection->AddInt64(message, field, static_cast<std::int64_t>(value))
                  : reflection->SetInt64(message, field, static_cast<std::int64_t>(value));
    case FieldDescriptor::CPPTYPE_UINT32:
      return list ? reflection->AddUInt32(message, field, static_cast<std::uint32_t>(value))
                  : reflection->SetUInt32(message, field, static_cast<std::uint32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64:
      return list ? reflection->AddUInt64(message, field, static_cast<std::uint64_t>(value))
                  : reflection->SetUInt64(message, field, static_cast<std::uint64_t>(value));
    default:
      PERCS_CHECK(false);
  }
}

__int128 MessageDraw::Boundary(const FieldDescriptor* field, __int128 min, __int128 max) {
  switch (random_.Below(6)) {
    case 0:
      return max;
    case 1:
      return std::max(min, max - 1);
    case 2:
      return std::min(max, min + 1);
    case 3: {  // a power of two, or next to one
      const int bits = static_cast<int>(random_.Below(63));
      const __int128 value = (static_cast<__int128>(1) << bits) + random_.Below(3) - 1;
      return std::clamp(value, min, max);
    }
    default:
      break;
  }
  const std::string text = DefaultValue(field);
  if (!QuantityOf(field) || text.empty()) return min;
  const auto value = ParseQuantity(*QuantityOf(field), text);
  return value.ok() ? *value : min;
}

// How large a number may be without making a run long, in bits; 127 if it does not matter.
int BitsOfSmall(const FieldDescriptor* field, const WholeRange& range) {
  switch (RulesOf(field).unit()) {
    case v1::FieldRules::TIME:
      return kShortTimeBits;
    case v1::FieldRules::BYTES:
      return kFewBytesBits;
    case v1::FieldRules::FLITS:
      return kFewFlitsBits;
    case v1::FieldRules::COUNT:
    case v1::FieldRules::PACKETS:
      // Identities and seeds cost nothing, however large.
      return range.max > kManyThings && range.max < std::numeric_limits<std::int64_t>::max()
                 ? kFewThingsBits
                 : 127;
    default:
      return 127;
  }
}

__int128 MessageDraw::Whole(const FieldDescriptor* field) {
  const WholeRange range = RangeOf(field).value_or(TypeRange(field));
  if (least_) return range.min;
  __int128 max = range.max;
  if (const int bits = BitsOfSmall(field, range); bits < 127 && !Chance(settings_.large))
    max = std::min(max, range.min + ((static_cast<__int128>(1) << bits) - 1));
  if (Chance(settings_.boundary)) return Boundary(field, range.min, max);
  // Every order of magnitude alike.
  const auto span = static_cast<double>(max - range.min);
  const double value = std::exp(random_.Unit() * std::log(span + 1)) - 1;
  return std::clamp(range.min + static_cast<__int128>(value), range.min, max);
}

double MessageDraw::Fraction(const FieldDescriptor* field) {
  const auto& rules = RulesOf(field);
  const bool bounded = !rules.min().empty();
  const double min = bounded ? std::stod(rules.min()) : -1e300;
  const double max = bounded ? std::stod(rules.max()) : 1e300;
  switch (least_ ? 1 : random_.Below(5)) {
    case 0:
      return max;
    case 1:
      return rules.min_exclusive() ? std::nextafter(min, max) : min;
    case 2:
      return min + (max - min) * std::exp2(-40 * random_.Unit());
    default:
      return min + (max - min) * random_.Unit();
  }
}

std::string MessageDraw::Mutated(std::string text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) {
      result += text[i];
      continue;
    }
    while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
    result += std::to_string(random_.Below(random_.Below(4) == 0 ? 70 : 3));
  }
  return result;
}

// A place of the machine that is named like this one: a hub, drawer or supernode, or a blade.
std::string MessageDraw::PlaceLike(const std::string& token) {
  if (token.starts_with("blade")) return names_.blade ? names_.blade(random_) : token;
  std::string hub = names_.node(random_);
  if (!hub.starts_with("sn")) return hub;
  std::size_t end = 0;
  for (auto dashes = std::count(token.begin(), token.end(), '-'); dashes >= 0; --dashes)
    end = std::min(hub.find('-', end + 1), hub.size());
  return hub.substr(0, end);
}

// The example with places of this machine; or all hubs, where it is about hubs and nothing else.
std::string MessageDraw::WithPlaces(const std::string& example) {
  if (!names_.node) return Mutated(example);
  const auto in_token = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
  };
  std::string result;
  bool only_hubs = true;
  for (std::size_t i = 0; i < example.size();) {
    std::size_t end = i;
    while (end < example.size() && in_token(example[end])) ++end;
    const std::string token = example.substr(i, end - i);
    const bool hub = token.starts_with("sn") && token.size() > 2 && std::isdigit(token[2]);
    if (hub || token.starts_with("blade")) {
      result += PlaceLike(token);
    } else {
      result += Mutated(token);
    }
    only_hubs = only_hubs && (hub || token.empty());
    if (end == i) result += example[end++];
    i = end;
  }
  return only_hubs && Chance(0.2) ? "all" : result;
}

std::string MessageDraw::Text(const FieldDescriptor* field) {
  const auto& rules = RulesOf(field);
  if (field->name() == "file") return names_.file;
  if (field->name() == "permutation_file") return names_.permutation;
  if (IsName(field) && !Chance(0.02)) {
    // Not a digit at the end: blades get numbers of their own.
    names_.declared.push_back(fmt::format("n{}x", named_++));
    return names_.declared.back();
  }
  if (rules.name_of_node() && names_.node && !Chance(0.02)) return names_.node(random_);
  if (rules.name_of_link() && names_.link && !Chance(0.02)) return names_.link(random_);
  std::vector<std::string> choices;
  if (!ExampleOf(field).empty()) {
    for (int i = 0; i < 3; ++i) choices.push_back(WithPlaces(ExampleOf(field)));
  }
  if (!DefaultValue(field).empty()) choices.push_back(DefaultValue(field));
  if (names_.node) choices.push_back(names_.node(random_));
  if (names_.link) choices.push_back(names_.link(random_));
  for (int i = 0; i < 3 && !names_.declared.empty(); ++i) {
    choices.push_back(
        names_.declared[random_.Below(static_cast<std::uint32_t>(names_.declared.size()))]);
  }
  if (choices.empty() || Chance(0.05)) {
    for (const char* odd : {"", "0", "all", " ", "a:b", "\xc3\xa4", "-1", "a b", "#"})
      choices.push_back(odd);
  }
  return choices[random_.Below(static_cast<std::uint32_t>(choices.size()))];
}

}  // namespace percs::generate
