// Lines of log on stderr: wall and virtual time, program, pid, level, message. What is said of
// every packet is counted, not logged; a message that is repeated is said at most ten times a
// second, and then how often it was.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "emulator/base/time.h"

namespace percs {

// Text, as people read it.
void SetUpLog(const char* program);
// "text" or "json", one object per line. INVALID_ARGUMENT names the two.
absl::Status SetLogFormat(const std::string& format);
// "debug", "info", "warning", "error", "off". INVALID_ARGUMENT names them.
absl::Status SetLogLevel(const std::string& level);
// What lines have as virtual time from now on; any thread.
void SetLogTime(Time now);

}  // namespace percs
