#include "emulator/packet/packet.h"

namespace percs {

const char* DropReasonName(DropReason reason) {
  constexpr const char* kNames[kDropReasons] = {
      "link_down",         "no_route",      "no_vc_position",
      "truncated",         "duplicate",     "no_reply_slot",
      "unacknowledged",    "table_parity",  "crc",
      "no_cau_tree",       "no_cau_slot",   "no_service_slot",
      "service_timeout",   "cau_down",      "window_down",
      "old_incarnation",   "window_closed", "wrong_key",
      "receive_fifo_full", "no_ip_receive", "malformed"};
  return kNames[static_cast<int>(reason)];
}

}  // namespace percs
