// What software costs on a node of four POWER7 (32 cores): a few figures, each calibrated on the
// published rows that docs/collectives.md names beside it, and on nothing else. Costs of messages
// between nodes are send_overhead and receive_overhead of P7ihParameters.
#pragma once

#include <cstdint>

#include "emulator/base/time.h"

namespace percs {

inline constexpr int kCoresPerNode = 32, kCoresPerChip = 8;  // paper 003 section 2
inline constexpr int kThreadsPerCoreMax = 4;
inline constexpr int kTasksPerNodeMax = kCoresPerNode * kThreadsPerCoreMax;

// WIDE: data: one member for each parameter.
struct HostParameters {
  HostParameters();  // the calibrated ones

  // --- Threads of a core. What software of a task takes longer, in percent of its time alone.
  int smt;  // if other tasks run on the core; of a copy, if one of them is busy when it begins

  // --- Messages.
  Time collective_entry;  // call of a collective that is made of messages
  Time local_send;        // active message to a task of the same node
  Time local_receive;
  std::uint64_t eager_limit;         // bytes; longer messages go by rendezvous
  std::uint64_t leader_eager_limit;  // the same among the leaders of a hybrid
  // A rendezvous on a node: the receiver's thread copies the message once (0), or both copy it in
  // fragments of this many bytes, which go back to the sender, through shared memory.
  std::uint64_t local_fragment;
  Time registration;  // of one buffer of such a message; the kernel of a node serves one after the
                      // other
  Time network_registration;  // the same for a message to or from another node: the HFI has to know
                              // it too
  Time rdma_per_kib;          // stream of one task's window out of memory
  Time fifo_per_kib;          // the same out of its send FIFO
  Time fifo_latency;          // what a message through FIFOs takes longer than an immediate send

  // --- Copies by one thread.
  Time write_per_kib;    // out of its own cache
  Time copy_per_kib;     // what another core has written, out of that core's cache
  Time memory_per_kib;   // the same beyond what a cache holds: prefetched from memory
  std::uint64_t cached;  // bytes of a buffer that stay in a core's part of the L3 cache
  // Direct access to other tasks' memory: what a core's caches keep of it, and a copy within them,
  // which misses nowhere. 0 bytes: every such copy costs copy_per_kib, which misses once.
  std::uint64_t own_cache;
  Time own_per_kib;
  Time combine_per_kib;  // a reduction's arithmetic on operands in the own cache

  // --- The node's memory, which all its copies share.
  Time node_per_kib;  // at its rate

  // --- Shared memory. A counter or small record is a cache line; who reads it after another wrote
  // it waits for the line.
  Time line_same_core;
  Time line_same_chip;
  Time line_other_chip;
  Time line_repeat;            // a line serves its readers, and a thread its misses, one by one
  Time shared_entry;           // call of a shared-memory collective
  Time shared_step;            // one run of its function, off the work queue
  Time shared_memory_per_kib;  // into such a buffer or out of it beyond what a cache holds of a
                               // task's own
  int spin_polls;              // before the function goes back to the work queue
  Time poll;
  std::uint64_t shared_record;  // bytes of data in a 128-byte record (P7IH-302)
  std::uint64_t shared_chunk;   // half of the large shared buffer (P7IH-301)
  std::uint64_t
      shared_piece;  // what is written into one of two alternating buffers before all read it
  std::uint64_t two_buffers_from;  // bytes; shorter broadcasts use one buffer

  // --- CAU: software of a participant around one packet.
  Time cau_send;
  Time cau_receive;

  // Of `bytes` at `offset` of a buffer.
  Time CopyTime(std::uint64_t bytes) const { return Part(0, bytes, copy_per_kib, memory_per_kib); }
  Time WriteTime(std::uint64_t bytes) const {
    return static_cast<Time>(bytes) * write_per_kib / 1024;
  }
  Time CombineTime(std::uint64_t bytes) const {
    return static_cast<Time>(bytes) * combine_per_kib / 1024;
  }
  Time SharedCopyTime(std::uint64_t offset, std::uint64_t bytes) const {
    return Part(offset, bytes, copy_per_kib, shared_memory_per_kib);
  }

 private:
  Time Part(std::uint64_t offset, std::uint64_t bytes, Time near, Time far) const {
    const std::uint64_t room = offset < cached ? cached - offset : 0;
    const std::uint64_t inside = bytes < room ? bytes : room;
    return (static_cast<Time>(inside) * near + static_cast<Time>(bytes - inside) * far) / 1024;
  }
};

}  // namespace percs
