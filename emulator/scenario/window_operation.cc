#include "emulator/scenario/window_operation.h"

namespace percs {

const char* WindowStatusName(WindowStatus status) {
  constexpr const char* kNames[kWindowStatuses] = {"ok",
                                                   "no_window_free",
                                                   "window_taken",
                                                   "no_such_window",
                                                   "window_closed",
                                                   "not_configured",
                                                   "wrong_key",
                                                   "not_registered",
                                                   "out_of_range",
                                                   "read_only",
                                                   "overlap",
                                                   "no_memory",
                                                   "too_large",
                                                   "empty",
                                                   "unaligned",
                                                   "bad_size",
                                                   "no_such_node",
                                                   "send_fifo_full",
                                                   "receive_fifo_full",
                                                   "no_immediate_buffer",
                                                   "too_many_operations",
                                                   "no_route",
                                                   "unreachable",
                                                   "no_answer",
                                                   "remote_window_closed",
                                                   "invalid",
                                                   "no_device",
                                                   "on_device"};
  return kNames[static_cast<int>(status)];
}

const char* WindowOpName(WindowOp op) {
  constexpr const char* kNames[kWindowOps] = {
      "reserve",     "configure",      "release",    "register",     "deregister", "write_memory",
      "read_memory", "immediate_send", "fifo_send",  "return_space", "ip_send",    "ip_receive",
      "join",        "leave",          "rdma_write", "rdma_read",    "atomic",     "fence"};
  return kNames[static_cast<int>(op)];
}

const char* AtomicOpName(AtomicOp op) {
  constexpr const char* kNames[kAtomicOps] = {"add", "and", "or", "xor", "compare_swap"};
  return kNames[static_cast<int>(op)];
}

}  // namespace percs
