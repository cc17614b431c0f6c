// What the software of a rank costs in virtual time, and where its protocol changes.
#pragma once

#include <cstdint>

#include "emulator/base/time.h"
#include "emulator/scenario/host_parameters.h"

namespace percs::mpi {

struct TransportParameters {
  // Paper 003's point-to-point allreduce says 1.45 us for both sides and the HFIs of a message;
  // immediate_issue, receive, a translation and two flits of it are the HFIs'. Choice: halves.
  Time send_cost = 540 * kNanosecond;
  Time receive_cost = 535 * kNanosecond;
  Time post_cost = 50 * kNanosecond;   // choice: of a receive, until it can match
  Time poll_cost = 100 * kNanosecond;  // choice: of a test that finds nothing
  // Longer messages go by rendezvous. Choice: as tasks of collectives do.
  std::uint64_t eager_bytes = HostParameters().eager_limit;
  std::uint64_t message_max = std::uint64_t{256} << 20;  // choice: bytes, a quarter of what a hub
                                                         // may have registered
  // Reliability over packets that the HFI may drop.
  Time retransmit = 100 * kMicrosecond;  // choice: doubled with every try
  int tries = 12;                        // choice: then the peer is unreachable, after 0.4 s
  Time ack_delay = 5 * kMicrosecond;     // choice: for a packet back to carry it
  std::uint32_t ack_every = 16;          // choice: packets
  std::size_t flow_packets = 64;         // choice: of a pair of ranks, not acknowledged
  std::size_t reads = 8;                 // choice: RDMA reads of a rank under way
  // Of a collective on CAUs, bytes. Choice: packets of 64 bytes one after the other; longer
  // operands are faster as messages (docs/mpi.md).
  std::uint64_t collective_bytes = 1024, collective_bytes_auto = 128;
  // FIFOs of a window, in slots of 2,048 bytes.
  std::uint32_t send_slots = 64, receive_slots = 512;
  // Registered memory that a rank keeps for the next message, in bytes.
  std::uint64_t kept_registered = std::uint64_t{32} << 20;
  HostParameters host;
};

}  // namespace percs::mpi
