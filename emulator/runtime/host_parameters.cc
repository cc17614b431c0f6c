#include "emulator/runtime/host_parameters.h"

namespace percs {

// docs/collectives.md says which row each was calibrated on.
HostParameters::HostParameters() {
  smt_percent = {100, 190, 212, 232};
  collective_entry = 240 * kNanosecond;
  local_send = 510 * kNanosecond;
  local_receive = 510 * kNanosecond;
  eager_limit = 32768;
  rendezvous = 52 * kMicrosecond;
  copy_per_kib = 278 * kNanosecond;
  stream_per_kib = 285 * kNanosecond;
  line_same_core = 10 * kNanosecond;
  line_same_chip = 185 * kNanosecond;
  line_other_chip = 320 * kNanosecond;
  line_repeat = 50 * kNanosecond;
  shared_entry = 50 * kNanosecond;
  shared_step = 260 * kNanosecond;
  shared_copy_per_kib = 650 * kNanosecond;
  spin_polls = 500;
  poll = 2 * kNanosecond;
  shared_record = 124;
  shared_chunk = 245760;
  two_buffers_from = 65537;
  cau_send = 460 * kNanosecond;
  cau_receive = 460 * kNanosecond;
  cau_interval = 2240 * kNanosecond;
}

}  // namespace percs
