// Operations and events of windows on the wire of the Endpoint service, and in the journal
// (emulator/scenario/window_operation.h, percs/v1/endpoint.proto).
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "emulator/scenario/window_operation.h"
#include "percs/v1/control.pb.h"
#include "percs/v1/endpoint.pb.h"

namespace percs {

// Of the Endpoint protocol: raised when a program and a percsd of different builds would
// misunderstand each other.
inline constexpr std::uint32_t kEndpointVersion = 1;

// Of `data` in one operation, and of what one reads of its own memory; the client library cuts what
// is longer.
inline constexpr std::uint64_t kOperationBytesMax = 4 << 20;
// Of data in the journal; longer data is a payload beside it.
inline constexpr std::size_t kJournalledBytesMax = 4096;

void OperationToProto(const WindowOperation& operation, v1::EndpointOperation* message);
// INVALID_ARGUMENT for numbers that no field of an operation holds, RESOURCE_EXHAUSTED for more
// bytes than kOperationBytesMax; both name the field. The HFI checks everything else.
absl::StatusOr<WindowOperation> OperationFromProto(const v1::EndpointOperation& message);

void EventToProto(const WindowEvent& event, v1::EndpointEvent* message);
// INVALID_ARGUMENT for an event of a newer version.
absl::StatusOr<WindowEvent> EventFromProto(const v1::EndpointEvent& message);

// What an operation that ended with `status` tells its caller: OK, or a code with the name of the
// status, what it means and what would be right.
absl::Status ToStatus(WindowOp op, WindowStatus status);

// The record of a submission with its long data kept by `store`, which returns the name of bytes;
// and with it again.
using StoreBytes = absl::FunctionRef<absl::StatusOr<std::uint64_t>(const std::string&)>;
using FindBytes = absl::FunctionRef<absl::StatusOr<std::string>(std::uint64_t)>;
absl::Status StoreData(v1::EndpointSubmission* submission, StoreBytes store);
absl::Status FindData(v1::EndpointSubmission* submission, FindBytes find);
// Whether StoreData would keep something apart.
bool HasLongData(const v1::EndpointSubmission& submission);

}  // namespace percs
