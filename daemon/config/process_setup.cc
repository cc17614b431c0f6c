#include "daemon/config/process_setup.h"

#include <malloc.h>

#include <csignal>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "daemon/config/log.h"
#include "daemon/config/signals.h"
#include "proto/process/out_of_memory.h"

namespace percs {

void IgnoreLockOrder() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void SetUpProcess(const char* name) {
  IgnoreLockOrder();
  EndWhenOutOfMemory(name);
  // One arena: threads take turns under the process's lock anyway, and 32 daemons share a host.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 256 * 1024);
  // Our own messages say what failed; gRPC's would repeat it with source lines.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Writing beyond a limit of file sizes is an error of that write, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  BlockEndSignals();
  SetUpLog(name);
}

}  // namespace percs
