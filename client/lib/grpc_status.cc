#include "client/lib/grpc_status.h"

#include <fmt/format.h>

namespace percs {

absl::Status FromGrpc(const grpc::Status& status, const std::string& method,
                      const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  std::string message = fmt::format("{}: {}", method, status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      message =
          fmt::format("no controller answers at {} ({}: {}); `percsctl ps` lists the local fabrics",
                      address, method, status.error_message());
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      message = fmt::format("the controller at {} did not answer {} in time", address, method);
      break;
    case grpc::StatusCode::UNIMPLEMENTED:
      message = fmt::format(
          "the server at {} does not implement {}: it is not a percs-controller, or has another "
          "version",
          address, method);
      break;
    default:
      break;
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), message);
}

}  // namespace percs
