#include "daemon/page/control_gateway.h"

#include <chrono>
#include <utility>

#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "percs/v1/control.pb.h"
#include "proto/process/grpc_status.h"
#include "proto/process/message_bytes.h"
#include "proto/process/printable.h"

namespace percs {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr std::chrono::seconds kDeadline(30);

const google::protobuf::ServiceDescriptor* Service() {
  static const auto* const service =
      v1::StatusRequest::descriptor()->file()->FindServiceByName("Control");
  return service;
}

// As JSON.
absl::StatusOr<std::string> Text(const grpc::ByteBuffer& bytes,
                                 const google::protobuf::Descriptor* type) {
  const auto message = NewMessage(type);
  if (!Unpack(bytes, message.get()).ok()) return absl::InternalError("the answer cannot be read");
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(*message, &json, options);
  if (!status.ok()) return absl::InternalError("the answer cannot be written as JSON");
  return json;
}

}  // namespace

struct ControlGateway::Pending {
  explicit Pending(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}
  grpc::GenericStub stub;
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  Done done;
};

absl::Status ControlGateway::CheckMethod(const std::string& name) {
  const MethodDescriptor* const method = Service()->FindMethodByName(name);
  if (method != nullptr && !method->server_streaming()) return absl::OkStatus();
  return absl::NotFoundError(
      fmt::format("/api/{} is not there; POST the JSON of a request to /api/METHOD, with a method "
                  "of percs.v1.Control that has one answer, such as Status or CreateFault, or GET "
                  "/api/events",
                  Printable(name, Lines::kOne)));
}

void ControlGateway::Call(const std::string& name, const std::string& json, Done done) {
  const MethodDescriptor* const method = Service()->FindMethodByName(name);
  const auto request = NewMessage(method->input_type());
  const auto read =
      google::protobuf::util::JsonStringToMessage(json.empty() ? "{}" : json, request.get());
  if (!read.ok()) {
    return done(absl::InvalidArgumentError(
        fmt::format("the body is not a {} as JSON: {}", method->input_type()->name(),
                    Printable(std::string(read.message()), Lines::kOne))));
  }
  auto* const pending = new Pending(channel_);
  pending->request = Packed(*request);
  pending->done = std::move(done);
  pending->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  {
    const MutexLock guard(mutex_);
    under_way_.insert(&pending->context);
    if (ending_) pending->context.TryCancel();
  }
  pending->stub.UnaryCall(&pending->context, "/percs.v1.Control/" + name, grpc::StubOptions(),
                          &pending->request, &pending->reply,
                          [this, pending, type = method->output_type()](const grpc::Status& s) {
                            Finish(pending, s.ok() ? Text(pending->reply, type)
                                                   : absl::StatusOr<std::string>(FromGrpc(s)));
                          });
}

void ControlGateway::Finish(Pending* pending, absl::StatusOr<std::string> json) {
  pending->done(std::move(json));
  const MutexLock guard(mutex_);
  under_way_.erase(&pending->context);
  delete pending;
  none_.notify_all();
}

void ControlGateway::Cancel() {
  const MutexLock lock(mutex_);
  ending_ = true;
  for (grpc::ClientContext* context : under_way_) context->TryCancel();
  while (!under_way_.empty()) none_.wait(mutex_);
}

}  // namespace percs
