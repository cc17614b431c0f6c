#include "proto/process/message_bytes.h"

#include <string>
#include <vector>

#include "fmt/format.h"

namespace percs {

using google::protobuf::Message;

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  return std::unique_ptr<Message>(factory->GetPrototype(type)->New());
}

grpc::ByteBuffer Packed(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

absl::Status Unpack(const grpc::ByteBuffer& bytes, Message* message) {
  std::vector<grpc::Slice> slices;
  std::string text;
  const bool read = bytes.Dump(&slices).ok();
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  if (read && message->ParseFromString(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("these bytes are not a {}", message->GetDescriptor()->full_name()));
}

}  // namespace percs
