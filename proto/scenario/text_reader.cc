#include <regex>

#include "fmt/format.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/parsers.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

using google::protobuf::TextFormat;

// protobuf's message, with the correct form where it is known.
std::string Explain(const std::string& message) {
  static const std::regex kUnknownField(
      "Message type \"([^\"]+)\" has no field named \"([^\"]+)\".*");
  std::smatch match;
  if (!std::regex_match(message, match, kUnknownField)) return message;
  const Descriptor* type =
      v1::Scenario::descriptor()->file()->pool()->FindMessageTypeByName(match[1]);
  if (type == nullptr) return message;
  const std::vector<std::string> names = FieldNames(type);
  return fmt::format("{}: unknown field{}", match[2].str(),
                     Suggest(match[2], names, "fields here"));
}

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(ErrorList* errors) : errors_(errors) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    errors_->Add(line < 0 ? Mark{} : Mark{line + 1, column + 1}, "", Explain(message));
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

 private:
  ErrorList* errors_;
};

void SetMarks(const Message& message, const TextFormat::ParseInfoTree& tree,
              const std::string& path, SourceMarks* marks) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string at = ChildPath(path, field);
    const int size = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const std::string element = field->is_repeated() ? fmt::format("{}[{}]", at, i) : at;
      const auto place = tree.GetLocation(field, index);
      if (place.line >= 0) marks->Set(element, {place.line + 1, place.column + 1});
      const auto* nested = field->message_type() ? tree.GetTreeForNested(field, index) : nullptr;
      if (nested == nullptr) continue;
      SetMarks(index < 0 ? reflection->GetMessage(message, field)
                         : reflection->GetRepeatedMessage(message, field, i),
               *nested, element, marks);
    }
  }
}

}  // namespace

void ParseTextproto(const std::string& text, v1::Scenario* scenario, SourceMarks* marks,
                    ErrorList* errors) {
  Collector collector(errors);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  marks->Set("", {1, 1});
  // A parse that failed leaves half a message; its further errors would be about what is not there.
  if (!parser.ParseFromString(text, scenario)) scenario->Clear();
  SetMarks(*scenario, tree, "", marks);
}

}  // namespace percs
