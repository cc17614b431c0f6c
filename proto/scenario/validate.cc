#include "proto/scenario/validate.h"

#include <map>

#include "fmt/format.h"
#include "proto/scenario/fields.h"

namespace percs {
namespace {

class Checker {
 public:
  explicit Checker(ErrorList* errors) : errors_(errors) {}

  void Check(const Message& message, const std::string& path) {
    if (errors_->HasExactly(path)) return;
    const Descriptor* type = message.GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      const std::string at = ChildPath(path, field);
      if (field->is_repeated()) {
        CheckList(message, field, at);
      } else if (message.GetReflection()->HasField(message, field)) {
        CheckPresent(message, field, at);
      } else if (RulesOf(field).required() && !errors_->Has(at)) {
        errors_->Add(at, fmt::format("missing; write for example `{}: {}`", field->name(),
                                     ExampleOf(field)));
      }
    }
    CheckOneofs(message, path);
  }

 private:
  void CheckPresent(const Message& message, const FieldDescriptor* field, const std::string& at) {
    if (field->message_type() != nullptr) {
      Check(message.GetReflection()->GetMessage(message, field), at);
      return;
    }
    const absl::Status status = CheckValue(message, field);
    if (!status.ok() && !errors_->Has(at)) errors_->Add(at, std::string(status.message()));
  }

  void CheckList(const Message& message, const FieldDescriptor* field, const std::string& at) {
    const auto* reflection = message.GetReflection();
    const int size = reflection->FieldSize(message, field);
    if (size == 0 && RulesOf(field).required() && !errors_->Has(at)) {
      errors_->Add(at, "the list is empty; write at least one element");
    }
    if (field->message_type() == nullptr) return;
    std::map<std::string, int> seen;  // unique value -> first index
    for (int i = 0; i < size; ++i) {
      const Message& element = reflection->GetRepeatedMessage(message, field, i);
      const std::string element_at = fmt::format("{}[{}]", at, i);
      Check(element, element_at);
      CheckUnique(element, at, element_at, i, &seen);
    }
  }

  void CheckUnique(const Message& element, const std::string& list, const std::string& at,
                   int index, std::map<std::string, int>* seen) {
    for (const FieldDescriptor* field : VisibleFields(element.GetDescriptor())) {
      if (!RulesOf(field).unique() || !element.GetReflection()->HasField(element, field)) continue;
      const std::string value = ValueText(element, field);
      const auto [it, fresh] = seen->emplace(value, index);
      if (fresh) continue;
      errors_->Add(ChildPath(at, field),
                   fmt::format("\"{}\" is already the {} of {}[{}]; write another", value,
                               field->name(), list, it->second));
    }
  }

  void CheckOneofs(const Message& message, const std::string& path) {
    const Descriptor* type = message.GetDescriptor();
    for (int i = 0; i < type->real_oneof_decl_count(); ++i) {
      const auto* oneof = type->oneof_decl(i);
      if (message.GetReflection()->HasOneof(message, oneof)) continue;
      std::string names;
      bool reported = false;
      for (int k = 0; k < oneof->field_count(); ++k) {
        names += (k > 0 ? ", " : "") + oneof->field(k)->name();
        reported = reported || errors_->Has(ChildPath(path, oneof->field(k)));
      }
      if (!reported && !errors_->Has(path)) {
        errors_->Add(path, fmt::format("incomplete; write exactly one of {}", names));
      }
    }
  }

  ErrorList* errors_;
};

}  // namespace

void CheckFields(const Message& message, ErrorList* errors) { Checker(errors).Check(message, ""); }

}  // namespace percs
