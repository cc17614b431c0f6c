// Parameters of the POWER7-IH hub and its fabric. Unit, range, default and source of each are in
// proto/percs/v1/p7ih.proto, the one table users see; a test holds these defaults to it.
#pragma once

#include <algorithm>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/scenario/window_parameters.h"

namespace percs {

struct LinkParameters {
  Time flit_time = 0;    // one 128-byte flit, rounded up
  Time wire = 0;         // propagation, one way
  int buffer_flits = 0;  // per VC at the receiving end
  // Of one direction. The first lanes lost are replaced by spares, then the flit time grows.
  int lanes = 1, spare_lanes = 0;
  int lanes_min = 1;  // fewer: the link is down

  int lanes_working(int lost) const { return std::min(lanes, lanes + spare_lanes - lost); }
  bool operator==(const LinkParameters&) const = default;
};

// WIDE: data: one member for each parameter.
struct P7ihParameters {
  LinkParameters ll{5'334, 5'000, 40, 64, 0, 32};  // 24 GB/s (000 section V); < 1 m; gaps.md G6, G7
  LinkParameters lr{25'600, 25'000, 16, 5, 1, 4};  // 5 GB/s; 5 m of fibre; at least one packet
  LinkParameters d{12'800, 200'000, 128, 10, 2, 8};  // 10 GB/s; 40 m of fibre; 10 + 2 lanes
  LinkParameters hfi{5'334, 0, 64};  // 24 GB/s per HFI port (4 x 24 = W, 000 section VII-A)
  LinkParameters ib{64'000, 25'000, 32, 4,
                    0,      1};  // 4X DDR, 2 GB/s (004 Roadrunner); 5 m; choice: two packets
  Time ib_crossbar = 160'000;    // a flit from input to output, itself included: choice, 140-200 ns
  Time isr_latency = 50'000;     // gaps.md G1, 33-67 ns
  Time credit_processing = 50'000;    // choice
  Time w_flit_time = 1'334;           // 96 GB/s per direction over both HFIs
  int hfi_queue_packets = 2;          // per (HFI port, ISR output), in the ISR
  int route_table_entries = 545;      // of each route table; 32 hubs + 513 supernodes
  int multicast_table_entries = 256;  // choice, gaps.md G8: one per group
  int windows_per_hfi = 256;          // "many hundreds", gaps.md G8
  VcPolicy vc_policy = VcPolicy::kPosition;
  bool link_replay = true;  // go-back-N; off only to see what it is there for
  int replay_limit = 16;    // replays of one flit, in a row, before its link is down

  // Service port and the VC of its packets.
  int service_buffer_flits = 4;           // choice: per link, and for packets that enter
  Time service_wait = 20 * kMicrosecond;  // choice: then a packet that still waits is dropped

  // What hubs tell each other for adaptive routes.
  Time congestion_period = 100'000;  // choice: half the time of a packet on a D link
  int congestion_threshold = 64;     // flits; choice: four packets, what a D link sends in a round

  // Message layer.
  Time send_overhead = 725'000;  // half of gaps.md G1's 1.45 us
  Time receive_overhead = 725'000;
  int flow_window_packets = 64;  // in flight per (source, destination), at most 64
  int ack_every_packets = 16;
  int reply_queue_packets = 4096;  // acknowledgements of a hub that wait for the ISR
  Time retransmit_timeout = 50 * kMicrosecond;
  int retransmit_tries = 8;

  WindowParameters windows;  // HFI windows, NMMU

  // Collective Acceleration Unit (gaps.md G3).
  Time cau_pass_through = 250'000;  // from the last input of an operation to its first output
  Time cau_port_time = 75'000;      // each input and each output, one after the other
  int cau_queue_packets = 8;        // held per tree link and kind of operation, 1..32

  // Network management, preset `demo`.
  Time management_latency =
      kMicrosecond;  // alert, prepare, acknowledge, commit: one way, out of band
  Time detect = kMicrosecond;
  Time plan = 20 * kMicrosecond;
  Time install = 5 * kMicrosecond;
  Time stall_limit = 10 * kMillisecond;  // resident flits, none moved: deadlock

  const LinkParameters& link(LinkClass c) const {
    return c == LinkClass::kLl   ? ll
           : c == LinkClass::kLr ? lr
           : c == LinkClass::kD  ? d
           : c == LinkClass::kIb ? ib
                                 : hfi;
  }
};

// Window number `i` of a hub counted over its eight HFI ports in turn, so that traffic uses both
// HFIs. An HFI with fewer than four windows uses those it has.
inline WindowId SpreadWindow(std::uint64_t i, const P7ihParameters& parameters) {
  const std::uint64_t port = i % kHfiPorts;
  const auto per_hfi = static_cast<std::uint64_t>(parameters.windows_per_hfi);
  return static_cast<WindowId>(port / 4 * per_hfi + port % 4 % per_hfi);
}

}  // namespace percs
