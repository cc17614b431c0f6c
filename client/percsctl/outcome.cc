#include "client/percsctl/outcome.h"

#include "proto/process/grpc_status.h"

namespace percs {

std::string Text(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

Outcome FromStatus(const absl::Status& status) {
  if (IsUnreachable(status)) return Outcome::Fail(ExitCode::kUnreachable, Text(status));
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return Outcome::Ok();
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      return Outcome::Fail(ExitCode::kBadInput, Text(status));
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return Outcome::Fail(ExitCode::kRefused, Text(status));
    case absl::StatusCode::kCancelled:
      return Outcome::Fail(ExitCode::kInterrupted, Text(status));
    default:
      return Outcome::Fail(ExitCode::kFailed, Text(status));
  }
}

}  // namespace percs
