// Messages of types that are known only by their descriptors, and their bytes as gRPC carries them.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace percs {

// Of a type that is compiled into this program.
std::unique_ptr<google::protobuf::Message> NewMessage(const google::protobuf::Descriptor* type);
grpc::ByteBuffer Packed(const google::protobuf::Message& message);
// INVALID_ARGUMENT names the type that the bytes are not.
absl::Status Unpack(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

}  // namespace percs
