#include "proto/process/grpc_status.h"

#include "absl/strings/cord.h"
#include "fmt/format.h"
#include "percs/v1/common.pb.h"

namespace percs {
namespace {

// The codes of both have the same numbers by design.
static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) == grpc::INVALID_ARGUMENT);
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) == grpc::UNAUTHENTICATED);

constexpr char kUnreachable[] = "percs.v1/unreachable";
constexpr char kCutOff[] = " ...";

std::string Shortened(const std::string& message) {
  std::size_t encoded = 0;
  for (std::size_t i = 0; i < message.size(); ++i) {
    encoded += message[i] >= ' ' && message[i] <= '~' && message[i] != '%' ? 1 : 3;
    if (encoded > kErrorMessageMax) return message.substr(0, i) + kCutOff;
  }
  return message;
}

absl::Status NobodyAnswered(absl::StatusCode code, const std::string& message) {
  absl::Status status(code, message);
  status.SetPayload(kUnreachable, absl::Cord());
  return status;
}

// Why there is no answer, and what to do.
std::string DescribeSilence(const std::string& address, const grpc::Status& status) {
  const std::string& said = status.error_message();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return fmt::format("the controller at {} did not answer in time", address);
  if (said.find("handshake") != std::string::npos) {
    return fmt::format(
        "no controller at {} that trusts this identity, or that this identity trusts: a fabric "
        "that was started again may have a new authority; import its identity again with "
        "`percsctl context import`, or name the folder of the identity with --tls",
        address);
  }
  return fmt::format("no controller answers at {} ({}); `percsctl ps` lists the local fabrics",
                     address, said);
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetails details;
  details.set_code(static_cast<std::int32_t>(status.code()));
  return {static_cast<grpc::StatusCode>(status.code()), Shortened(std::string(status.message())),
          details.SerializeAsString()};
}

bool Answered(const grpc::Status& status) {
  v1::ErrorDetails details;
  return !status.error_details().empty() && details.ParseFromString(status.error_details()) &&
         details.code() == static_cast<std::int32_t>(status.error_code());
}

absl::Status FromGrpc(const grpc::Status& status) {
  const std::string& message = status.error_message();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (Answered(status))
    return {code == absl::StatusCode::kCancelled ? absl::StatusCode::kAborted : code, message};
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
      return NobodyAnswered(code, message);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return NobodyAnswered(absl::StatusCode::kUnavailable, message);
    default:
      return {code, message};
  }
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& what) {
  const absl::Status error = FromGrpc(status);
  return error.ok() ? error : Reworded(error, fmt::format("{}: {}", what, status.error_message()));
}

absl::Status Reworded(const absl::Status& error, const std::string& message) {
  return IsUnreachable(error) ? NobodyAnswered(error.code(), message)
                              : absl::Status(error.code(), message);
}

bool IsUnreachable(const absl::Status& status) {
  return status.GetPayload(kUnreachable).has_value();
}

absl::Status ControllerError(const grpc::Status& status, const std::string& address) {
  const absl::Status error = FromGrpc(status);
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && !Answered(status)) {
    return absl::UnimplementedError(fmt::format(
        "the server at {} does not know this request: it is not a percs-controller, or has "
        "another version",
        address));
  }
  if (!IsUnreachable(error)) return error;
  return Reworded(error, DescribeSilence(address, status));
}

}  // namespace percs
