// Scenario fields by their descriptors: names, units, choices, ranges, values as text. Everything
// that reads, writes, checks or describes a scenario goes through here, so a field is declared
// once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "percs/v1/options.pb.h"
#include "proto/scenario/units.h"

namespace percs {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const v1::FieldRules& RulesOf(const FieldDescriptor* field);
inline bool Hidden(const FieldDescriptor* field) { return RulesOf(field).hidden(); }
// Fields people can write, in the order of their declaration.
std::vector<const FieldDescriptor*> VisibleFields(const Descriptor* type);
std::vector<std::string> FieldNames(const Descriptor* type);
// The one repeated field of a message that a bare list stands for, or nullptr.
const FieldDescriptor* ListOf(const Descriptor* type);
// Path of a field of the message at `path`; the list a message stands for has the message's path.
std::string ChildPath(const std::string& path, const FieldDescriptor* field);

// PATTERN_SUPERNODE_PAIR is written supernode_pair; the zero value cannot be written.
std::string ChoiceName(const EnumValueDescriptor* value);
std::vector<const EnumValueDescriptor*> Choices(const EnumDescriptor* type);
std::vector<std::string> ChoiceNames(const EnumDescriptor* type);

std::optional<Quantity> QuantityOf(const FieldDescriptor* field);
// A default that is a value, or "" where it depends on something or there is none.
std::string DefaultValue(const FieldDescriptor* field);
// A text that would be right for the field.
std::string ExampleOf(const FieldDescriptor* field);
// What a whole-number field may hold, in base units; nothing without a range.
struct WholeRange {
  __int128 min = 0, max = 0;  // inclusive
};
std::optional<WholeRange> RangeOf(const FieldDescriptor* field);
// "1 to 513", or "" without a range.
std::string RangeText(const FieldDescriptor* field);

// Sets (or adds to a repeated field) the value that `text` stands for. INVALID_ARGUMENT says what
// is wrong and what would be right, without the path. REQUIRES: not a message field.
absl::Status SetFromText(Message* message, const FieldDescriptor* field, const std::string& text);
// The value as a file spells it, unquoted. REQUIRES: a singular field, not a message.
std::string ValueText(const Message& message, const FieldDescriptor* field);
// INVALID_ARGUMENT if the value lies outside the field's range or is no known choice.
absl::Status CheckValue(const Message& message, const FieldDescriptor* field);
// Sets every unset field that has a default that is a value; enters singular groups outside oneofs.
void FillDefaults(Message* message);

}  // namespace percs
