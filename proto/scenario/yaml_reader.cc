#include <map>
#include <sstream>

#include "fmt/format.h"
#include "proto/scenario/fields.h"
#include "proto/scenario/limits.h"
#include "proto/scenario/parsers.h"
#include "proto/scenario/suggest.h"
#include "yaml-cpp/depthguard.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace percs {
namespace {

// Longer texts are no slip of the finger; quoting them would hide the message.
constexpr std::size_t kTextShown = 100;

Mark MarkOf(const YAML::Mark& mark) {
  return mark.is_null() ? Mark{} : Mark{mark.line + 1, mark.column + 1};
}

// What a node is, for messages.
std::string Describe(const YAML::Node& node) {
  if (node.IsMap()) return "a group of fields";
  if (node.IsSequence()) return "a list";
  if (node.IsNull()) return "nothing";
  if (node.Scalar().size() > kTextShown) {
    return fmt::format("a text of {} bytes", node.Scalar().size());
  }
  return fmt::format("\"{}\"", node.Scalar());
}

// Walks descriptor and document together.
class YamlReader {
 public:
  YamlReader(SourceMarks* marks, ErrorList* errors) : marks_(marks), errors_(errors) {}

  void ReadMessage(const YAML::Node& node, const std::string& path, Message* message) {
    if (node.IsNull()) return;  // an empty group: all defaults
    const Descriptor* type = message->GetDescriptor();
    if (const FieldDescriptor* list = ListOf(type); list != nullptr && node.IsSequence()) {
      ReadList(node, path, message, list);
      return;
    }
    if (!node.IsMap()) {
      const std::string wanted =
          ListOf(type) != nullptr
              ? "a list"
              : fmt::format("a group of fields: {}", fmt::join(FieldNames(type), ", "));
      Add(node, path, fmt::format("found {}; write {}", Describe(node), wanted));
      return;
    }
    std::map<std::string, Mark> seen;
    for (const auto& entry : node) {
      if (!CountValue(entry.first, path)) return;
      ReadEntry(entry.first, entry.second, path, message, &seen);
    }
  }

 private:
  // Before anything is made of it: aliases let a short text have values without number. False:
  // nothing more is read.
  bool CountValue(const YAML::Node& node, const std::string& path) {
    if (++values_ == kScenarioValuesMax + 1) {
      Add(node, path,
          fmt::format("here the file has more than {} values, which is the limit; an alias counts "
                      "wherever it is used",
                      kScenarioValuesMax));
    }
    return values_ <= kScenarioValuesMax;
  }

  void Add(const YAML::Node& node, const std::string& path, std::string what) {
    errors_->Add(MarkOf(node.Mark()), path, std::move(what));
  }

  void ReadEntry(const YAML::Node& key, const YAML::Node& value, const std::string& path,
                 Message* message, std::map<std::string, Mark>* seen) {
    if (!key.IsScalar() || key.Scalar().size() > kTextShown) {
      Add(key, path, fmt::format("found {}, expected a field name", Describe(key)));
      return;
    }
    const Descriptor* type = message->GetDescriptor();
    const FieldDescriptor* field = type->FindFieldByName(key.Scalar());
    const std::string at = field != nullptr ? ChildPath(path, field)
                           : path.empty()   ? key.Scalar()
                                            : path + "." + key.Scalar();
    if (field == nullptr || Hidden(field)) {
      const std::vector<std::string> names = FieldNames(type);
      Add(key, at, fmt::format("unknown field{}", Suggest(key.Scalar(), names, "fields here")));
      return;
    }
    const auto [first, fresh] = seen->emplace(key.Scalar(), MarkOf(key.Mark()));
    if (!fresh) {
      Add(key, at, fmt::format("written twice, first in line {}; keep one", first->second.line));
      return;
    }
    if (!CheckOneof(key, at, *message, field)) return;
    marks_->Set(at, MarkOf(key.Mark()));
    ReadField(value.IsNull() ? key : value, value, at, message, field);
  }

  bool CheckOneof(const YAML::Node& key, const std::string& at, const Message& message,
                  const FieldDescriptor* field) {
    const auto* oneof = field->real_containing_oneof();
    if (oneof == nullptr || !message.GetReflection()->HasOneof(message, oneof)) return true;
    const FieldDescriptor* other = message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
    Add(key, at,
        fmt::format("only one of these may be given, and {} is given already; remove one",
                    other->name()));
    return false;
  }

  // `place` is the value, or the key where there is no value.
  void ReadField(const YAML::Node& place, const YAML::Node& value, const std::string& at,
                 Message* message, const FieldDescriptor* field) {
    if (field->is_repeated()) {
      if (value.IsSequence()) {
        ReadList(value, at, message, field);
      } else if (!value.IsNull()) {
        Add(place, at, fmt::format("found {}; write a list", Describe(value)));
      }
    } else if (field->message_type() != nullptr) {
      ReadMessage(value, at, message->GetReflection()->MutableMessage(message, field));
    } else {
      ReadScalar(place, value, at, message, field);
    }
  }

  void ReadList(const YAML::Node& list, const std::string& at, Message* message,
                const FieldDescriptor* field) {
    int index = 0;
    for (const YAML::Node& element : list) {
      if (!CountValue(element, at)) return;
      const std::string element_at = fmt::format("{}[{}]", at, index++);
      marks_->Set(element_at, MarkOf(element.Mark()));
      ReadMessage(element, element_at, message->GetReflection()->AddMessage(message, field));
    }
  }

  void ReadScalar(const YAML::Node& place, const YAML::Node& value, const std::string& at,
                  Message* message, const FieldDescriptor* field) {
    if (value.IsNull()) {
      Add(place, at,
          fmt::format("has no value; write for example `{}: {}`", field->name(), ExampleOf(field)));
      return;
    }
    const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (!value.IsScalar() || (!text && value.Scalar().size() > kTextShown)) {
      Add(place, at,
          fmt::format("found {}; write one value, for example {}", Describe(value),
                      ExampleOf(field)));
      return;
    }
    marks_->Set(at, MarkOf(value.Mark()));
    if (const std::string wrong = WrongQuotes(value, field); !wrong.empty()) {
      Add(value, at, wrong);
      return;
    }
    const absl::Status status = SetFromText(message, field, value.Scalar());
    if (!status.ok()) Add(value, at, std::string(status.message()));
  }

  // A quoted number or truth value is text. (Quantities, choices and names are text anyway.)
  static std::string WrongQuotes(const YAML::Node& value, const FieldDescriptor* field) {
    const bool quoted = value.Tag() == "!";
    const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
                      field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM || QuantityOf(field);
    if (!quoted || text) return "";
    const char* what =
        field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL ? "a truth value" : "a number";
    return fmt::format("\"{}\" is text, expected {}; remove the quotes", value.Scalar(), what);
  }

  SourceMarks* marks_;
  ErrorList* errors_;
  std::uint64_t values_ = 0;
};

// YAML forbids tabs as indentation, and the library's own words for that do not say so.
std::string SyntaxError(const std::string& text, const YAML::Exception& e) {
  if (dynamic_cast<const YAML::DeepRecursion*>(&e) != nullptr) {
    return "groups and lists are nested too deep for a scenario";
  }
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= e.mark.line; ++i) std::getline(lines, line);
  const std::string indent = line.substr(0, line.find_first_not_of(" \t"));
  if (indent.find('\t') != std::string::npos) {
    return "a tab indents this line; indent with spaces";
  }
  return fmt::format("not readable as YAML: {}", e.msg);
}

// Where the first thing of the last document stands.
class FirstMark : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override { first = YAML::Mark::null_mark(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { See(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { See(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    See(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    See(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    See(mark);
  }
  void OnMapEnd() override {}

  YAML::Mark first = YAML::Mark::null_mark();

 private:
  void See(const YAML::Mark& mark) {
    if (first.is_null()) first = mark;
  }
};

// Null if the text holds one document. Not YAML::LoadAll: on some broken texts it finds documents
// without end.
YAML::Mark SecondDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  FirstMark mark;
  const bool second = parser.HandleNextDocument(mark) && parser.HandleNextDocument(mark);
  return second ? mark.first : YAML::Mark::null_mark();
}

}  // namespace

void ParseYaml(const std::string& text, v1::Scenario* scenario, SourceMarks* marks,
               ErrorList* errors) {
  try {
    const YAML::Node document = YAML::Load(text);
    if (document.IsNull()) {
      errors->Add(Mark{1, 1}, "", "the file is empty; write at least `topology:`");
      return;
    }
    if (const YAML::Mark second = SecondDocument(text); !second.is_null()) {
      errors->Add(MarkOf(second), "",
                  "a second document begins; a scenario file has one, remove `---`");
    }
    marks->Set("", MarkOf(document.Mark()));
    YamlReader(marks, errors).ReadMessage(document, "", scenario);
  } catch (const YAML::Exception& e) {
    errors->Add(MarkOf(e.mark), "", SyntaxError(text, e));
  }
}

}  // namespace percs
