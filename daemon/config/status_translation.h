// absl::Status inside, grpc::Status on the wire: the one place where one becomes the other.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace percs {

grpc::Status ToGrpc(const absl::Status& status);
// `what` begins the message of an error.
absl::Status StatusFromGrpc(const grpc::Status& status, const std::string& what);

}  // namespace percs
