// Calls of gRPC methods as a generic tool makes them, without generated code.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/support/status.h"

namespace percs::test {

// A protobuf message of one short text field.
std::string TextField(int number, const std::string& text);

// One message each way; all methods can be called like that. "" is an empty message.
grpc::Status GenericCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::string& request, std::string* reply, int deadline_ms = 20'000);

// The answer of server reflection to a request in bytes.
grpc::Status Reflect(const std::shared_ptr<grpc::Channel>& channel, const std::string& request,
                     std::string* reply);

}  // namespace percs::test
