#include "emulator/scenario/host_parameters.h"

namespace percs {

// docs/collectives.md says which row each was calibrated on.
HostParameters::HostParameters() {
  smt = 90;
  collective_entry = 240 * kNanosecond;
  local_send = 510 * kNanosecond;
  local_receive = 510 * kNanosecond;
  eager_limit = 32768;
  leader_eager_limit = std::uint64_t{1} << 30;
  local_fragment = 0;
  registration = 3 * kMicrosecond;
  network_registration = 24 * kMicrosecond;
  rdma_per_kib = 200 * kNanosecond;
  fifo_per_kib = 335 * kNanosecond;
  fifo_latency = 400 * kNanosecond;
  write_per_kib = 136 * kNanosecond;
  copy_per_kib = 460 * kNanosecond;
  memory_per_kib = 222 * kNanosecond;
  cached = 1536 * 1024;
  own_cache = 0;
  own_per_kib = 136 * kNanosecond;
  combine_per_kib = 0;
  line_same_core = 10 * kNanosecond;
  line_same_chip = 165 * kNanosecond;
  line_other_chip = 355 * kNanosecond;
  line_repeat = 48 * kNanosecond;
  shared_entry = 90 * kNanosecond;
  shared_step = 250 * kNanosecond;
  node_per_kib = 16 * kNanosecond;
  shared_memory_per_kib = 646 * kNanosecond;
  spin_polls = 500;
  poll = 2 * kNanosecond;
  shared_record = 124;
  shared_chunk = 245760;
  shared_piece = 32768;
  two_buffers_from = 65537;
  cau_send = 480 * kNanosecond;
  cau_receive = 480 * kNanosecond;
}

}  // namespace percs
