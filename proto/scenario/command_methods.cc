#include "proto/scenario/command_methods.h"

#include "emulator/base/check.h"

namespace percs {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using Record = v1::JournalRecord;

constexpr std::size_t kDescriptionMax = 200;  // characters

bool SameType(const FieldDescriptor& a, const FieldDescriptor& b) {
  return a.type() == b.type() && a.message_type() == b.message_type();
}

// The field of the journal that has the name and the type of a request's field, or null.
const FieldDescriptor* Namesake(const FieldDescriptor& field) {
  const auto* same = Record::descriptor()->FindFieldByName(field.name());
  return same != nullptr && SameType(*same, field) ? same : nullptr;
}

// The field of a request that becomes the event of the journal, or null.
const FieldDescriptor* EventIn(const Message& request, const FieldDescriptor& event) {
  const auto* type = request.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    if (SameType(*field, event) && Namesake(*field) == nullptr) return field;
  }
  return nullptr;
}

void CopyField(const Message& from, const FieldDescriptor* field, Record* to,
               const FieldDescriptor* at) {
  const auto* reader = from.GetReflection();
  const auto* writer = to->GetReflection();
  switch (at->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return writer->MutableMessage(to, at)->CopyFrom(reader->GetMessage(from, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return writer->SetString(to, at, reader->GetString(from, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return writer->SetUInt64(to, at, reader->GetUInt64(from, field));
    default:
      PERCS_CHECK(false);
  }
}

}  // namespace

std::vector<const MethodDescriptor*> CommandMethods() {
  std::vector<const MethodDescriptor*> methods;
  const auto* service = Record::descriptor()->file()->FindServiceByName("Control");
  for (int i = 0; i < service->method_count(); ++i) {
    if (service->method(i)->options().HasExtension(v1::command))
      methods.push_back(service->method(i));
  }
  return methods;
}

const v1::CommandRules& CommandRulesOf(const MethodDescriptor& method) {
  return method.options().GetExtension(v1::command);
}

Record CommandRecord(const MethodDescriptor& method, const Message& request) {
  Record record;
  const auto* event = Record::descriptor()->FindFieldByName(CommandRulesOf(method).record());
  PERCS_CHECK(event != nullptr && event->containing_oneof() != nullptr);
  if (event->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    record.GetReflection()->SetBool(&record, event, true);
  } else if (event->message_type() == request.GetDescriptor()) {
    record.GetReflection()->MutableMessage(&record, event)->CopyFrom(request);
  } else {
    const FieldDescriptor* const field = EventIn(request, *event);
    PERCS_CHECK(field != nullptr);
    CopyField(request, field, &record, event);
  }
  const auto* type = request.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    const FieldDescriptor* const same = Namesake(*field);
    if (same != nullptr) CopyField(request, field, &record, same);
  }
  return record;
}

std::string DescribeCommand(const Record& record) {
  const auto* event = Record::descriptor()->FindFieldByNumber(record.event_case());
  if (event == nullptr) return "no command";
  const auto* reflection = record.GetReflection();
  std::string text = event->name();
  if (event->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    text += " " + reflection->GetString(record, event);
  } else if (event->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    text += " " + reflection->GetMessage(record, event).ShortDebugString();
  }
  return text.size() <= kDescriptionMax ? text : text.substr(0, kDescriptionMax) + " ...";
}

}  // namespace percs
