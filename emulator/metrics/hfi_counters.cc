#include "emulator/metrics/hfi_counters.h"

namespace percs {

const char* HfiCounterName(HfiCounter counter) {
  constexpr const char* kNames[kHfiCounters] = {"sent",
                                                "send_dropped",
                                                "send_indicated",
                                                "received",
                                                "receive_dropped",
                                                "receive_indicated",
                                                "immediate_sent",
                                                "rdma_bytes_written",
                                                "rdma_bytes_read",
                                                "atomics",
                                                "faults",
                                                "datagrams",
                                                "datagrams_lost"};
  return kNames[static_cast<int>(counter)];
}

const char* PcieCounterName(PcieCounter counter) {
  constexpr const char* kNames[kPcieCounters] = {"bytes_in", "bytes_out", "refused"};
  return kNames[static_cast<int>(counter)];
}

}  // namespace percs
