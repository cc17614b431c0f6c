// Everything one node counts, each defined once (docs/semantics.md part C). Integers only, so that
// sums are the same on every host and in every order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "emulator/base/digest.h"
#include "emulator/base/ids.h"
#include "emulator/base/reduce_op.h"
#include "emulator/base/time.h"
#include "emulator/hfi/pcie_device.h"
#include "emulator/isr/packet.h"

namespace percs {

// Fixed buckets: 8 per power of two of picoseconds, so a quantile is right within 12.5 %.
class Histogram {
 public:
  static constexpr int kBuckets = 8 * 44;
  void Add(std::uint64_t value) {
    ++count;
    sum += value;
    if (value > max) max = value;
    ++buckets[Bucket(value)];
  }
  void Merge(const Histogram& other);
  double Mean() const { return count ? static_cast<double>(sum) / static_cast<double>(count) : 0; }
  // Upper edge of the bucket that holds the quantile, but never above max.
  std::uint64_t Quantile(double q) const;

  std::uint64_t count = 0, sum = 0, max = 0;
  std::array<std::uint64_t, kBuckets> buckets{};

  static int Bucket(std::uint64_t v) {
    if (v < 8) return static_cast<int>(v);
    const int log = std::bit_width(v) - 1;
    const int b = (log - 2) * 8 + static_cast<int>((v >> (log - 3)) & 7);
    return b < kBuckets ? b : kBuckets - 1;
  }
};

// One VC of a port: what was granted on it as an output, and the input buffer behind it. One cache
// line, the only one that a commitment counts in.
struct alignas(64) VcStats {
  std::uint64_t flits = 0, packets = 0, bytes = 0;
  std::uint64_t runs_split = 0;  // commitments that ended before the tail
  std::uint64_t arbitration_losses =
      0;  // grants to somebody else that an input for this VC could have had
  std::uint64_t credit_stalls = 0, credit_stall_ps = 0;
  std::uint64_t most_held = 0;  // of the input buffer: the most slots in use at once

  std::uint64_t runs() const { return packets + runs_split; }  // commitments
  void Add(const VcStats& other);                              // the greater `most_held` stays
  template <typename F>
  void Visit(F&& f) {
    f(flits), f(packets), f(bytes), f(runs_split), f(arbitration_losses);
    f(credit_stalls), f(credit_stall_ps), f(most_held);
  }
};

struct PortStats {
  std::array<VcStats, kMaxVcs> vc{};
  std::uint64_t credit_stall_ps = 0;  // of any VC while none could be granted
  std::uint64_t crc_errors = 0;       // transmissions that the far end found corrupted
  std::uint64_t replays = 0;          // replay rounds
  std::uint64_t lanes_lost = 0;       // now, of those it sends on
  std::uint64_t service_flits =
      0;  // management packets it sent, one flit each; on none of the VCs above

  // Over all VCs; `most_held` of the fullest one.
  VcStats sum() const;
};

// As many as cell::BladeStats has; the blade's node checks it.
inline constexpr int kBladeCounters = 18;

// What a CAU counts besides its reductions, which have one counter per operation and operand type.
enum class CauCounter : std::uint8_t {
  kMulticasts,  // that this CAU passed on
  kPacketsSent,
  kPacketsResent,  // operations on tree links
  kReportsSent,    // acknowledgements and grants
  kProbesSent,
  kOperationsFailed,  // told to the participant
  kTreesFailed,       // trees that failed here
  kResultsRight,
  kResultsWrong,  // compared with a serial reference by the workload
};
inline constexpr int kCauNamedCounters = 9;
inline constexpr int kCauReductions = kReduceOps * kOperandTypes;
inline constexpr int kCauCounters = kCauReductions + kCauNamedCounters;

// Of each HFI, for windows that programs have (emulator/hfi/window_unit.h). The first seven are the
// counter set of the machine's own library (PAMI's HFI extension).
enum class HfiCounter : std::uint8_t {
  kSent,
  kSendDropped,
  kSendIndicated,  // packets; indicated: whose program was told
  kReceived,
  kReceiveDropped,
  kReceiveIndicated,  // likewise
  kImmediateSent,
  kRdmaBytesWritten,
  kRdmaBytesRead,  // by others in memory of this hub
  kAtomics,        // updates done in memory of this hub
  kFaults,         // packets of operations that NMMU or window refused
  kDatagrams,
  kDatagramsLost,  // assembled; given up for want of a part
};
inline constexpr int kHfiCounters = 13;

// Of each PCI Express port (emulator/hfi/pcie.h).
enum class PcieCounter : std::uint8_t {
  kBytesIn,
  kBytesOut,  // out of the device, into it
  kRefused,   // packets and operations that ended as nothing was plugged in
};
inline constexpr int kPcieCounters = 3;

struct NodeStats {
  std::array<PortStats, kPorts> ports{};
  std::uint64_t packets_created = 0, flits_created = 0;
  std::uint64_t packets_delivered = 0, flits_delivered = 0, bytes_delivered = 0;
  std::uint64_t packets_synthesised = 0, flits_synthesised = 0;
  std::array<std::uint64_t, kDropReasons> packets_dropped{}, flits_dropped{};
  std::uint64_t packets_replicated = 0, flits_replicated = 0;  // copies made of multicast packets
  std::uint64_t hops_delivered = 0;                            // links crossed by delivered packets
  // Of packets_created, by RouteMode; hw_direct is the rest and counted by no one.
  std::array<std::uint64_t, kPacketRouteModes> packets_by_mode{};
  // Message layer.
  std::uint64_t messages_sent = 0, messages_acknowledged = 0, messages_failed = 0;
  std::uint64_t messages_delivered = 0, message_bytes_delivered = 0;
  std::uint64_t packets_resent = 0, acks_sent = 0;
  std::uint64_t payload_errors = 0;  // verified bytes that were not the expected ones
  std::uint64_t payload_bytes_verified = 0;
  // Measurement phase of a pattern.
  std::uint64_t measured_bytes_offered = 0, measured_bytes_accepted = 0;
  // Network management seen from the hub.
  std::uint64_t alerts_raised = 0, tables_installed = 0;
  Histogram packet_latency, message_latency;
  // Requests of the hub's service software (emulator/node/service_agent.h).
  std::uint64_t service_requests = 0;    // sent, repeated ones too
  std::uint64_t service_answers = 0;     // each request that was answered, once
  std::uint64_t service_unanswered = 0;  // given up after the last try
  std::uint64_t service_wrong_partner =
      0;  // answers of another hub or port than the wiring has there
  std::uint64_t service_round_trip_ps = 0,
                service_round_trip_max = 0;  // of answered ones, from the last try
  // Of a Cell blade, in the order of cell::BladeStats::Visit.
  std::array<std::uint64_t, kBladeCounters> blade{};
  // Of a CAU: reductions by operation and operand type, then CauCounter; metrics/cau_counters.h has
  // names.
  std::array<std::uint64_t, kCauCounters> cau{};

  std::array<std::uint64_t, kHfisPerHub * kHfiCounters> hfi{};
  std::uint64_t nmmu_hits = 0, nmmu_misses = 0;  // of the translation cache
  std::array<std::uint64_t, kPciePorts * kPcieCounters> pcie{};

  std::uint64_t& Hfi(int hfi_number, HfiCounter counter) {
    return hfi[static_cast<std::size_t>(hfi_number * kHfiCounters + static_cast<int>(counter))];
  }
  std::uint64_t& Pcie(int port, PcieCounter counter) {
    return pcie[static_cast<std::size_t>(port * kPcieCounters + static_cast<int>(counter))];
  }
  std::uint64_t& Cau(CauCounter counter) {
    return cau[static_cast<std::size_t>(kCauReductions + static_cast<int>(counter))];
  }
  std::uint64_t& CauReduction(ReduceOp op, OperandType type) {
    return cau[static_cast<std::size_t>(op) * kOperandTypes + static_cast<std::size_t>(type)];
  }
  std::uint64_t PacketsOfMode(RouteMode mode) const {
    if (mode != RouteMode::kHwDirect) return packets_by_mode[static_cast<std::size_t>(mode)];
    std::uint64_t others = 0;
    for (const std::uint64_t packets : packets_by_mode) others += packets;
    return packets_created - others;
  }

  // Adds another node's: sums, but of maxima the greater one.
  void Add(const NodeStats& other);

  // Calls f(value) on every integer, in a fixed order: wire and merge use this one list.
  template <typename F>
  void Visit(F&& f) {
    VisitAlways(f);
    VisitIfAny(f);
  }
  // Adds all of it to a digest. What VisitIfAny has enters only where it is not zero, so that a
  // mechanism nobody uses leaves the digests of others alone.
  template <typename Stream>
  void Fold(Stream& digest) {
    VisitAlways([&digest](std::uint64_t value) { digest.Add(value); });
    std::uint64_t index = 0;
    VisitIfAny([&](std::uint64_t value) {
      ++index;
      if (value != 0) digest.Add(index << 56 ^ value);
    });
  }

 private:
  static constexpr int kDropReasonsAlways = 7, kDropReasonsOfModel3 = 11;  // later ones come last
  template <typename F>
  void VisitIfAny(F&& f) {
    for (auto& v : blade) f(v);
    for (auto& v : packets_by_mode) f(v);
    const auto drops = [&](int first, int end) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i) {
        f(packets_dropped[i]), f(flits_dropped[i]);
      }
    };
    drops(kDropReasonsAlways, kDropReasonsOfModel3);
    f(packets_replicated), f(flits_replicated);
    for (auto& v : cau) f(v);
    for (auto& port : ports) f(port.service_flits);
    f(service_requests), f(service_answers), f(service_unanswered), f(service_wrong_partner);
    f(service_round_trip_ps), f(service_round_trip_max);
    drops(kDropReasonsOfModel3, kDropReasons);
    for (auto& v : hfi) f(v);
    f(nmmu_hits), f(nmmu_misses);
    for (auto& v : pcie) f(v);
  }
  template <typename F>
  void VisitAlways(F&& f) {
    for (int port = 0; port < kPorts; ++port) {
      PortStats& p = ports[static_cast<std::size_t>(port)];
      for (int v = 0; v < VcsOf(static_cast<PortId>(port)); ++v)
        p.vc[static_cast<std::size_t>(v)].Visit(f);
      f(p.credit_stall_ps), f(p.crc_errors), f(p.replays), f(p.lanes_lost);
    }
    f(packets_created), f(flits_created), f(packets_delivered), f(flits_delivered),
        f(bytes_delivered);
    f(packets_synthesised), f(flits_synthesised);
    for (int i = 0; i < kDropReasonsAlways; ++i) f(packets_dropped[static_cast<std::size_t>(i)]);
    for (int i = 0; i < kDropReasonsAlways; ++i) f(flits_dropped[static_cast<std::size_t>(i)]);
    f(hops_delivered);
    f(messages_sent), f(messages_acknowledged), f(messages_failed);
    f(messages_delivered), f(message_bytes_delivered), f(packets_resent), f(acks_sent);
    f(payload_errors), f(payload_bytes_verified);
    f(measured_bytes_offered), f(measured_bytes_accepted), f(alerts_raised), f(tables_installed);
    for (Histogram* h : {&packet_latency, &message_latency}) {
      f(h->count), f(h->sum), f(h->max);
      for (auto& b : h->buckets) f(b);
    }
  }
};

// A message of the message layer that was given up, with the reason of its last loss.
struct FailedMessage {
  NodeId source = 0, destination = 0;
  std::uint32_t message = 0;
  std::uint64_t bytes = 0;
  DropReason reason = DropReason::kLinkDown;
  Time at = 0;
};

// One program of a Cell blade.
struct BladeProgramResult {
  NodeId node = 0;
  std::string program;  // "barrier ATOBarB on 16 SPEs"
  Time started = 0, finished = 0;
  std::uint64_t iterations = 0;
  std::string problem;  // why it did not end well
};

// One participant of a tree of CAUs in the workload that loops over operations.
struct CauTaskResult {
  NodeId node = 0;
  std::uint16_t tree = 0;
  std::uint64_t steps_right = 0, steps_wrong = 0;
  std::uint64_t steps_failed =
      0;                // begun, and failed with a reason; done anew if the tree was repaired
  std::string reason;   // of the last failure
  std::string problem;  // why it did not do all its steps
  Time finished = 0;
};

// One rank of a trace.
struct RankResult {
  std::uint32_t rank = 0;
  Time finished = 0, calc = 0, overhead = 0, waiting = 0;
};

}  // namespace percs
