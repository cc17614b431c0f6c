// The one place that turns a gRPC status into text a person can act on.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace percs {

// Same code; the message names the method and, without an answer, the address.
absl::Status FromGrpc(const grpc::Status& status, const std::string& method,
                      const std::string& address);

}  // namespace percs
