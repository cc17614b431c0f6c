#include "daemon/config/status_translation.h"

#include <string>

#include "fmt/format.h"

namespace percs {

// The codes of both have the same numbers by design.
static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) == grpc::INVALID_ARGUMENT);
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) == grpc::UNAUTHENTICATED);

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message())};
}

absl::Status StatusFromGrpc(const grpc::Status& status, const std::string& what) {
  if (status.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(status.error_code()),
          fmt::format("{}: {}", what, status.error_message())};
}

}  // namespace percs
