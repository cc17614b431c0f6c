// absl::Status inside, grpc::Status on the wire: the one place where one becomes the other
// (docs/protocol.md, "Errors").
#pragma once

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace percs {

// Of a message, percent-encoded as HTTP/2 sends it. gRPC refuses headers of more than 8 KiB.
inline constexpr std::size_t kErrorMessageMax = 4096;

// The same code and message, the end of a long message cut off. Its details say that a process of
// the fabric answered.
grpc::Status ToGrpc(const absl::Status& status);

// The same message, and the same code with two exceptions: a call without an answer is UNAVAILABLE
// or DEADLINE_EXCEEDED and IsUnreachable; what an answer calls CANCELLED is ABORTED, because only
// the caller cancels.
absl::Status FromGrpc(const grpc::Status& status);
// Likewise; `what` begins the message.
absl::Status FromGrpc(const grpc::Status& status, const std::string& what);
// Of a call to the controller at `address`: names the address if there is no answer.
absl::Status ControllerError(const grpc::Status& status, const std::string& address);
// The same error in other words.
absl::Status Reworded(const absl::Status& error, const std::string& message);

// Whether a process of the fabric made this error; else gRPC did.
bool Answered(const grpc::Status& status);
// Whether FromGrpc made it of a call without an answer: there is no connection, or it broke,
// or the deadline passed.
bool IsUnreachable(const absl::Status& status);

}  // namespace percs
