// The Control service's methods that are commands: one handler, by the options of the methods.
#include <memory>
#include <utility>

#include "daemon/controller/rpc/control_handlers.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/process/message_bytes.h"
#include "proto/process/printable.h"
#include "proto/scenario/command_methods.h"

namespace percs {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

// Sets `name`, if the reply has it.
void SetNumber(Message* reply, const char* name, std::int64_t value) {
  const FieldDescriptor* const field = reply->GetDescriptor()->FindFieldByName(name);
  if (field != nullptr) reply->GetReflection()->SetInt64(reply, field, value);
}

}  // namespace

ControlService::Handlers::Handlers(ControlService* service, Controller* controller)
    : service_(service), controller_(controller) {
  using Bytes = grpc::ByteBuffer;
  for (const MethodDescriptor* method : CommandMethods()) {
    const auto serve = [this, method](Context* context, const Bytes* request, Bytes* reply) {
      return Command(context, *method, *request, reply);
    };
    MarkMethodRawCallback(method->index(),
                          new grpc::internal::CallbackUnaryHandler<Bytes, Bytes>(serve));
  }
}

Reactor* ControlService::Handlers::Command(Context* context, const MethodDescriptor& method,
                                           const grpc::ByteBuffer& bytes,
                                           grpc::ByteBuffer* answer) {
  return ServeActive(context, [&](FabricRun* run, const CallPtr& call) -> absl::Status {
    const auto request = NewMessage(method.input_type());
    if (absl::Status status = Unpack(bytes, request.get()); !status.ok()) return status;
    v1::JournalRecord record = CommandRecord(method, *request);
    const std::string what = Printable(DescribeCommand(record), Lines::kOne);
    const std::shared_ptr<Message> reply = NewMessage(method.output_type());
    run->Act(record, reply.get(), call->Then<Time>([answer, reply, run, what](Time at) {
      SetNumber(reply.get(), "at", at);
      SetNumber(reply.get(), "pace", run->pace().Expected());
      *answer = Packed(*reply);
      spdlog::info("run {}: {} at {}", run->number(), what, FormatTime(at));
    }));
    return absl::OkStatus();
  });
}

}  // namespace percs
