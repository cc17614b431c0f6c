// What software costs on a node of four POWER7 (32 cores): a few figures, each calibrated on the published
// rows that docs/collectives.md names beside it, and on nothing else. Costs of messages between nodes are
// send_overhead and receive_overhead of P7ihParameters.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/base/time.h"

namespace percs {

inline constexpr int kCoresPerNode = 32, kCoresPerChip = 8;  // paper 003 section 2
inline constexpr int kThreadsPerCoreMax = 4;
inline constexpr int kTasksPerNodeMax = kCoresPerNode * kThreadsPerCoreMax;

struct HostParameters {
  HostParameters();  // the calibrated ones

  // --- Threads of a core. Software on it takes so many percent of its time alone, by tasks on the core.
  std::array<int, kThreadsPerCoreMax> smt_percent;

  // --- Messages.
  Time collective_entry;  // call of a collective that is made of messages
  Time local_send;  // active message to a task of the same node
  Time local_receive;
  std::uint64_t eager_limit;  // bytes; longer messages go by rendezvous
  Time rendezvous;  // registration of the buffers of such a message
  Time copy_per_kib;  // one thread, from memory of its node to its own
  Time stream_per_kib;  // one task's stream into its HFI window

  // --- Shared memory. A counter or small record is a cache line; who reads it after another wrote it
  // waits for the line.
  Time line_same_core;
  Time line_same_chip;
  Time line_other_chip;
  Time line_repeat;  // a line serves its readers, and a thread its misses, one by one
  Time shared_entry;  // call of a shared-memory collective
  Time shared_step;  // one run of its function, off the work queue
  Time shared_copy_per_kib;  // into or out of a buffer that all tasks read at once
  int spin_polls;  // before the function goes back to the work queue
  Time poll;
  std::uint64_t shared_record;  // bytes of data in a 128-byte record (P7IH-302)
  std::uint64_t shared_chunk;  // half of the large shared buffer (P7IH-301)
  std::uint64_t two_buffers_from;  // bytes; shorter broadcasts use one buffer

  // --- CAU: software of a participant around one packet.
  Time cau_send;
  Time cau_receive;
  Time cau_interval;  // between two packets into one window
};

}  // namespace percs
