// The state that the HFI keeps of each window (paper 000 section IV-B), and of each operation under
// way.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "emulator/base/ring.h"
#include "emulator/hfi/packet_fifo.h"
#include "emulator/hfi/pcie.h"
#include "emulator/scenario/window_operation.h"

namespace percs {

// Listeners, by number: one that went away has no number any more.
using ListenerId = std::uint32_t;

// What the bytes of a packet have to do with a device.
struct DevicePart {
  PcieTransfer transfer;
  Time asked = 0;  // who gets packets out of a device was asked to acknowledge at once; last time
};

// An operation that takes more than the instant of its issue.
struct OperationState {
  WindowOperation asked;
  ListenerId listener = 0;
  std::uint32_t request = 0;  // its number at this hub
  std::uint64_t bytes = 0;    // of the whole operation
  std::uint64_t sent = 0;     // bytes in packets, or asked for
  std::uint64_t done = 0;     // reads: bytes that have come; paced writes: that are there
  std::uint64_t fetched = 0;  // bytes that a device was asked for, to send them
  DevicePart device;          // of the packet that is to leave next
  int under_way = 0;  // its packets: unreliable ones not in the ISR, others not acknowledged
  Time ready_at = 0;  // before it, nothing of it leaves
  Time progress = 0;  // last time something of it happened
  std::uint64_t translated = ~std::uint64_t{0};  // page of the last translation
  std::uint32_t reservation = 0;                 // of its window
  std::uint32_t slot = 0;                        // of the send FIFO
  bool has_slot = false;
  bool work = true;    // the run is not over before it has ended
  bool queued = true;  // in its window's queue
  bool paced = false;  // it writes into a device, and waits for what is there
  bool begun = false, ended = false;
  bool counts_write = false, counts_read = false;  // for fences
};

struct Window {
  bool reserved = false;
  JobKey job = 0;
  ListenerId listener = 0;
  std::uint32_t reservation = 0;  // which one: what an earlier one left is nothing to this
  ContextId context = 0;          // of the FIFOs
  PacketFifo send, receive;
  std::uint32_t visible = 0;    // packets in the receive FIFO that the program knows of
  Time visible_at = 0;          // of the last one
  Ring<OperationState*> queue;  // not entirely sent, in the order of their issue
  int operations = 0;           // begun or waiting
  int unacknowledged = 0;       // reliable packets
  int writes = 0, reads = 0;    // begun and not ended
  Time free_at = 0;             // what it may inject next
  Time pump_at = kNever, timeout_at = kNever;
  std::deque<OperationState*> ip_receives;
  std::vector<NodeId> groups;

  bool joined(NodeId group) const {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

}  // namespace percs
