// Lines of log on stderr: wall and virtual time, program, pid, level, message. Packets are counted,
// not logged. A repeated message is written at most ten times a second; one line then says how many
// more there were.
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
// Sets the virtual time of the following lines; any thread.
void SetLogTime(Time now);

}  // namespace percs
