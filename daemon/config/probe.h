// The health check of a container: asks the standard health service of a process whether it serves.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace percs {

// Of a daemon whether it has a session with the controller; of both "" whether they answer at all.
inline constexpr char kReady[] = "percs.ready";

// OK if `service` ("" or kReady) of the process at `address` serves; UNAVAILABLE says what it
// answered instead. `tls` is "" or the folder of the identity that the process has itself.
absl::Status Probe(const std::string& address, const std::string& service, const std::string& tls);

}  // namespace percs
