// What windows, NMMU and node attachment of a hub cost and hold. Unit, range, default and source of
// each are in proto/percs/v1/p7ih.proto; a test holds these defaults to it.
#pragma once

#include <cstdint>

#include "emulator/base/time.h"

namespace percs {

struct WindowParameters {
  // From a program's store to the first packet in a send queue of the HFI, memory and translation
  // apart.
  Time immediate_issue =
      150 * kNanosecond;                // choice; less than FIFO by 0.35 us, gaps.md G8: 0.2-0.6 us
  Time fifo_issue = 500 * kNanosecond;  // choice; trigger, descriptor
  Time rdma_issue = 500 * kNanosecond;  // choice; likewise, and IP with descriptors
  Time receive = 200 * kNanosecond;  // choice; from W until a program can see a packet in its FIFO
  Time memory_read = 80 * kNanosecond;  // choice; first bytes of a packet out of memory
  Time cache_read =
      30 * kNanosecond;  // choice; ... out of a cache, which is faster (000 section IV-B)
  Time memory_write = 50 * kNanosecond;  // choice; of a packet of RDMA, until its answer is made
  Time atomic_time = 40 * kNanosecond;   // choice; each update, one after the other
  // What one window may inject: the later of both.
  Time flit_time = 5'334;               // choice: 24 GB/s, no less than its HFI port
  Time packet_time = 50 * kNanosecond;  // choice: 20 million packets a second
  int immediate_buffers = 128;          // per HFI, shared (Redbook SG24-8003-00 p. 122)
  int operations = 256;                 // choice: begun or waiting, per window
  int unacknowledged = 128;             // choice: reliable packets of a window in flight
  int read_unit_packets = 32;           // choice: packets of one request of an RDMA read,
  int read_units = 4;                   // ... requests in flight
  Time reassembly = kMillisecond;       // choice: then an incomplete IP datagram is given up
  // NMMU.
  Time nmmu_hit = 15 * kNanosecond;    // choice
  Time nmmu_miss = 500 * kNanosecond;  // choice, gaps.md G8: 0.2-2 us
  int nmmu_entries = 4096;             // choice: translations in its cache
  int page_bytes = 65536;              // choice: POWER7 has pages of 4 KB, 64 KB and 16 MB
  std::int64_t registered_bytes = std::int64_t{1} << 30;  // choice: of a hub, in whole pages
  // 128 bytes over one lane of a PCI Express link: 0.5 GB/s, as 16 + 16 + 8 lanes are 40 GB/s both
  // ways (000 section V)
  Time pcie_flit_time = 256'000;
};

}  // namespace percs
