// How a command ends: exit code and message. Only main() exits.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace percs {

// Documented in docs/cli.md and in `percsctl --help`.
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,       // what was asked for could not be done
  kUsage = 2,        // the command line is wrong
  kBadInput = 3,     // a scenario, trace, link or hub name is wrong
  kUnreachable = 4,  // no controller answers
  kDeadlock = 5,     // the emulated fabric is deadlocked
  kViolation = 6,    // a checker found a violation, payload bytes were wrong, or a digest differs
  kRefused = 7,      // the fabric accepts no such certificate, or its role may not do this
  kInterrupted = 130,
};

struct [[nodiscard]] Outcome {
  ExitCode code = ExitCode::kOk;
  std::string message;  // for stderr; "" if all was said

  static Outcome Ok() { return {}; }
  static Outcome Fail(ExitCode code, std::string message) { return {code, std::move(message)}; }
};

std::string Text(const absl::Status& status);  // the message alone
// INVALID_ARGUMENT, NOT_FOUND and OUT_OF_RANGE are bad input, IsUnreachable (grpc_status.h) means
// that no controller answers, UNAUTHENTICATED and PERMISSION_DENIED are refusals, and CANCELLED is
// an interrupt; everything else failed.
Outcome FromStatus(const absl::Status& status);

}  // namespace percs
