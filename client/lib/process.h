// Processes that were started and have to be found again later, also by another percsctl. A pid
// alone is not an identity, because the kernel reuses it; a pid with its start time is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace percs {

struct ProcessId {
  int pid = 0;
  std::uint64_t start = 0;  // field 22 of /proc/PID/stat: clock ticks since boot
  bool operator==(const ProcessId&) const = default;
};

// Identity of a running pid; NOT_FOUND if there is none (a zombie is none).
absl::StatusOr<ProcessId> IdentifyProcess(int pid);
bool IsRunning(const ProcessId& process);

// Starts `command[0]` in a session of its own, so that it outlives this terminal; its input is
// empty and its output is appended to `log`.
absl::StatusOr<ProcessId> StartDetached(const std::vector<std::string>& command,
                                        const std::string& log);

struct StopResult {
  int stopped = 0;  // ended after SIGTERM
  int killed = 0;   // needed SIGKILL
};
// SIGTERM to all that still run, waits up to `grace`, then SIGKILL to the rest. Returns when none
// runs.
StopResult StopProcesses(const std::vector<ProcessId>& processes, std::chrono::milliseconds grace);

// Last lines of a log file, for error messages; "" if it cannot be read.
std::string LastLines(const std::string& path, int lines);

// A program of this project: beside this executable, otherwise on PATH. NOT_FOUND says where it
// looked.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace percs
