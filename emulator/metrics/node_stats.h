// Everything one node counts, each defined once (docs/semantics.md part C). Integers only, so that
// sums are the same on every host and in every order.
//
// A new counter is a member here and a row of kNodeCounters, and what counts it.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "emulator/base/digest.h"
#include "emulator/base/ids.h"
#include "emulator/base/reduce_op.h"
#include "emulator/base/time.h"
#include "emulator/metrics/counter_row.h"
#include "emulator/metrics/histogram.h"
#include "emulator/metrics/node_counter.h"
#include "emulator/metrics/port_stats.h"
#include "emulator/packet/packet.h"
#include "emulator/topology/pcie_device.h"

namespace percs {

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
inline constexpr const char* kCauCounterNames[] = {
    "multicasts",        "packets_sent", "packets_resent", "reports_sent", "probes_sent",
    "operations_failed", "trees_failed", "results_right",  "results_wrong"};
inline constexpr int kCauNamedCounters = std::size(kCauCounterNames);
inline constexpr int kCauReductions = kReduceOps * kOperandTypes;
inline constexpr int kCauCounters = kCauReductions + kCauNamedCounters;

// Of each HFI, for windows that programs have (emulator/hfi/window_unit.h). The first seven are the
// counter set of the machine's own library (PAMI's HFI extension).
enum class HfiCounter : std::uint8_t {
  kSent,
  kSendDropped,
  kSendIndicated,  // packets; indicated: reported to their program
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
inline constexpr const char* kHfiCounterNames[] = {"sent",
                                                   "send_dropped",
                                                   "send_indicated",
                                                   "received",
                                                   "receive_dropped",
                                                   "receive_indicated",
                                                   "immediate_sent",
                                                   "rdma_bytes_written",
                                                   "rdma_bytes_read",
                                                   "atomics",
                                                   "faults",
                                                   "datagrams",
                                                   "datagrams_lost"};
inline constexpr int kHfiCounters = std::size(kHfiCounterNames);

// Of each PCI Express port (emulator/hfi/pcie.h).
enum class PcieCounter : std::uint8_t {
  kBytesIn,
  kBytesOut,  // out of the device, into it
  kRefused,   // packets and operations that ended as nothing was plugged in
};
inline constexpr const char* kPcieCounterNames[] = {"bytes_in", "bytes_out", "refused"};
inline constexpr int kPcieCounters = std::size(kPcieCounterNames);

// WIDE: data: one member for each counter of a node.
struct NodeStats {
  PortTable ports;
  std::uint64_t packets_created = 0, flits_created = 0;
  std::uint64_t packets_delivered = 0, flits_delivered = 0, bytes_delivered = 0;
  std::uint64_t packets_synthesised = 0, flits_synthesised = 0;
  std::array<std::uint64_t, kDropReasons> packets_dropped{}, flits_dropped{};
  std::uint64_t packets_replicated = 0, flits_replicated = 0;
  std::uint64_t hops_delivered = 0;
  // Of packets_created, by RouteMode; hw_direct is the rest and not counted.
  std::array<std::uint64_t, kPacketRouteModes> packets_by_mode{};
  std::uint64_t packets_diverted = 0;  // made indirect where their D link is
  // Message layer.
  std::uint64_t messages_sent = 0, messages_acknowledged = 0, messages_failed = 0;
  std::uint64_t messages_delivered = 0, message_bytes_delivered = 0;
  std::uint64_t packets_resent = 0, acks_sent = 0;
  std::uint64_t payload_errors = 0, payload_bytes_verified = 0;
  // Measurement phase of a pattern.
  std::uint64_t measured_bytes_offered = 0, measured_bytes_accepted = 0;
  // Network management seen from the hub.
  std::uint64_t alerts_raised = 0, tables_installed = 0;
  Histogram packet_latency, message_latency;
  // Requests of the hub's service software (emulator/node/service_agent.h).
  std::uint64_t service_requests = 0, service_answers = 0, service_unanswered = 0;
  std::uint64_t service_wrong_partner = 0;
  std::uint64_t service_round_trip_ps = 0, service_round_trip_max = 0;
  // Of a Cell blade, in the order of cell::BladeStats::Visit.
  std::array<std::uint64_t, kBladeCounters> blade{};
  // Of a CAU: reductions by operation and operand type, then CauCounter.
  std::array<std::uint64_t, kCauCounters> cau{};

  std::array<std::uint64_t, kHfisPerHub * kHfiCounters> hfi{};
  std::uint64_t nmmu_hits = 0, nmmu_misses = 0;
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

  // Gives back the memory of ports and histograms that are all zero.
  void Trim();
  // Adds another node's: sums, but of maxima the greater one.
  void Add(const NodeStats& other);
  // Calls f(value) on every integer, in the order of digests: wire and merge use this one list.
  template <typename F>
  void Visit(F&& f);
  template <typename F>
  void Visit(F&& f) const;
  // Calls f(total, values...) on every integer of several nodes at once, likewise.
  template <typename F, typename... Stats>
  static void VisitTotals(F&& f, Stats&... stats);
  // Adds all of it to a digest. Counters of later models than the first enter only where they are
  // not zero, so that a mechanism that is not used leaves the digests of others alone.
  template <typename Stream>
  void Fold(Stream& digest) const;

 private:
  template <typename F, typename... Stats>
  static void VisitFirstModel(F&& f, Stats&... stats);
  template <typename F, typename... Stats>
  static void VisitLaterModels(F&& f, Stats&... stats);
};

// The result type is spelled out, as Clang 14 does not deduce it where an address is taken.
template <typename Stats>
using CounterOf = std::conditional_t<std::is_const_v<Stats>, const std::uint64_t, std::uint64_t>;
template <auto kMember, typename Stats>
CounterOf<Stats>& NodeValue(Stats& stats, std::size_t i) {
  auto& value = stats.*kMember;
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::uint64_t>) {
    return value;
  } else {
    return value[i];
  }
}
template <auto kMember>
constexpr CounterValues ValuesFrom(std::size_t first, std::size_t size) {
  return {NodeValue<kMember, NodeStats>, NodeValue<kMember, const NodeStats>, first, size};
}
template <auto kMember>
inline constexpr CounterValues kValues =
    ValuesFrom<kMember>(0, sizeof(std::declval<NodeStats&>().*kMember) / sizeof(std::uint64_t));
template <auto kMember, typename Stats>
CounterOf<Stats>& ValueOfPort(Stats& stats, std::size_t port) {
  return stats.ports[port].*kMember;
}
template <auto kMember>
inline constexpr CounterValues kOfEveryPort = {ValueOfPort<kMember, NodeStats>,
                                               ValueOfPort<kMember, const NodeStats>, 0, kPorts};

// Keys of groups.
namespace counter_keys {
std::string DropReason(std::size_t i);
std::string RouteMode(std::size_t i);
std::string Blade(std::size_t i);
std::string Cau(std::size_t i);
std::string Hfi(std::size_t i);
std::string Pcie(std::size_t i);
}  // namespace counter_keys

constexpr NodeCounter DroppedPackets(DropReason first, std::size_t reasons, int since) {
  return {"packets_dropped",
          CounterUnit::kPackets,
          since,
          ValuesFrom<&NodeStats::packets_dropped>(static_cast<std::size_t>(first), reasons),
          "Packets dropped here, by reason",
          {.name = "percs_packets_dropped_total", .labels = "reason"},
          "drops",
          counter_keys::DropReason};
}
constexpr NodeCounter DroppedFlits(DropReason first, std::size_t reasons, int since) {
  return {"flits_dropped",
          CounterUnit::kFlits,
          since,
          ValuesFrom<&NodeStats::flits_dropped>(static_cast<std::size_t>(first), reasons),
          "Flits of packets dropped here, by reason",
          kNoMetric,
          nullptr,
          counter_keys::DropReason};
}
constexpr CounterMetric OfService(const char* event) {
  return {.name = "percs_service_events_total",
          .labels = "event",
          .value = event,
          .place = CounterPlace::kHub,
          .help = "Requests of the hub's service port to its partners, and their outcomes"};
}
constexpr CounterMetric OfReductions(const char* name, const char* labels) {
  return {.name = name, .labels = labels, .between = '_', .place = CounterPlace::kHub};
}
constexpr CounterMetric OfNmmu(const char* result) {
  return {.name = "percs_nmmu_translations_total",
          .labels = "result",
          .value = result,
          .place = CounterPlace::kHub,
          .if_used = true,
          .help = "Pages translated by the hub's NMMU, by cache hit or miss"};
}

// In the order of digests, so new rows come last. The latencies stand behind the rows of the first
// model.
inline constexpr auto kNodeCounters = [] {
  using enum CounterUnit;
  using enum DropReason;
  using S = NodeStats;
  return std::to_array<NodeCounter>({
      {"packets_created", kPackets, 1, kValues<&S::packets_created>,
       "Packets that entered the network here", OfNode("percs_packets_created_total")},
      {"flits_created", kFlits, 1, kValues<&S::flits_created>, "Flits of these packets", kNoMetric},
      {"packets_delivered", kPackets, 1, kValues<&S::packets_delivered>,
       "Packets that reached their destination here", OfNode("percs_packets_delivered_total")},
      {"flits_delivered", kFlits, 1, kValues<&S::flits_delivered>, "Flits of these packets",
       kNoMetric},
      {"bytes_delivered", kBytes, 1, kValues<&S::bytes_delivered>,
       "Payload bytes that reached their destination here", OfNode("percs_delivered_bytes_total")},
      {"packets_synthesised", kPackets, 1, kValues<&S::packets_synthesised>,
       "Poison tails made for packets that a failed link cut in two", kNoMetric},
      {"flits_synthesised", kFlits, 1, kValues<&S::flits_synthesised>, "Flits of these tails",
       kNoMetric},
      DroppedPackets(kLinkDown, 7, 1),
      DroppedFlits(kLinkDown, 7, 1),
      {"hops_delivered", kLinks, 1, kValues<&S::hops_delivered>,
       "Links crossed by packets that reached their destination here", kNoMetric},
      {"messages_sent", kMessages, 1, kValues<&S::messages_sent>,
       "Messages that the message layer started to send", kNoMetric, "messages.sent"},
      {"messages_acknowledged", kMessages, 1, kValues<&S::messages_acknowledged>,
       "Messages whose sender knows that they arrived", kNoMetric, "messages.acknowledged"},
      {"messages_failed", kMessages, 1, kValues<&S::messages_failed>,
       "Messages that failed at their sender", OfNode("percs_messages_failed_total"),
       "messages.failed"},
      {"messages_delivered", kMessages, 1, kValues<&S::messages_delivered>,
       "Messages that arrived whole", OfNode("percs_messages_delivered_total"),
       "messages.delivered"},
      {"message_bytes_delivered", kBytes, 1, kValues<&S::message_bytes_delivered>,
       "Bytes of these messages", kNoMetric, "messages.bytes_delivered"},
      {"packets_resent", kPackets, 1, kValues<&S::packets_resent>,
       "Packets retransmitted by the message layer", OfNode("percs_packets_resent_total"),
       "messages.packets_resent"},
      {"acks_sent", kPackets, 1, kValues<&S::acks_sent>,
       "Acknowledgements that the message layer sent", kNoMetric, "messages.acks_sent"},
      {"payload_errors", kPackets, 1, kValues<&S::payload_errors>,
       "Packets that arrived with bytes other than those sent",
       OfNode("percs_payload_errors_total"), "messages.payload_errors"},
      {"payload_bytes_verified", kBytes, 1, kValues<&S::payload_bytes_verified>,
       "Payload bytes that were compared with those sent", kNoMetric,
       "messages.payload_bytes_verified"},
      {"measured_bytes_offered", kBytes, 1, kValues<&S::measured_bytes_offered>,
       "Bytes offered in the measurement phase of a pattern", kNoMetric, "measured.bytes_offered"},
      {"measured_bytes_accepted", kBytes, 1, kValues<&S::measured_bytes_accepted>,
       "Bytes delivered in the measurement phase of a pattern", kNoMetric,
       "measured.bytes_accepted"},
      {"alerts_raised", kEvents, 1, kValues<&S::alerts_raised>,
       "Alerts raised to network management", OfNode("percs_alerts_total")},
      {"tables_installed", kEvents, 1, kValues<&S::tables_installed>,
       "Sets of route tables installed", OfNode("percs_route_installs_total")},
      {"blade", kEvents, 2, kValues<&S::blade>,
       "Counters of a Cell blade; the label names the counter",
       OfBlade("percs_blade_events_total", "counter"), "blades", counter_keys::Blade},
      {"packets_by_mode", kPackets, 2, kValues<&S::packets_by_mode>,
       "Packets that entered the network here, by route mode; the rest is hw_direct", kNoMetric,
       "route_modes", counter_keys::RouteMode},
      DroppedPackets(kTableParity, 1, 3),
      DroppedFlits(kTableParity, 1, 3),
      DroppedPackets(kCrc, 1, 3),
      DroppedFlits(kCrc, 1, 3),
      DroppedPackets(kNoCauTree, 1, 3),
      DroppedFlits(kNoCauTree, 1, 3),
      DroppedPackets(kNoCauSlot, 1, 3),
      DroppedFlits(kNoCauSlot, 1, 3),
      {"packets_replicated", kPackets, 3, kValues<&S::packets_replicated>,
       "Copies made of multicast packets", kNoMetric},
      {"flits_replicated", kFlits, 3, kValues<&S::flits_replicated>, "Flits of these copies",
       kNoMetric},
      {"cau", kPackets, 3, ValuesFrom<&S::cau>(0, kCauReductions),
       "Packets that the hub's CAU reduced, by operation and operand type",
       OfReductions("percs_cau_operations_total", "op,dtype"), "caus", counter_keys::Cau},
      {"cau", kEvents, 3, ValuesFrom<&S::cau>(kCauReductions, kCauNamedCounters),
       "Counters of the hub's CAU; the label names the counter",
       OfHub("percs_cau_events_total", "counter"), "caus", counter_keys::Cau},
      {"service_flits", kFlits, 5, kOfEveryPort<&PortStats::service_flits>,
       "Management packets sent, by port", kNoMetric, nullptr, nullptr, CounterTotal::kSum, true},
      {"service.requests", kEvents, 5, kValues<&S::service_requests>,
       "Requests of the service port, retransmissions included", OfService("request")},
      {"service.answers", kEvents, 5, kValues<&S::service_answers>, "Requests that were answered",
       OfService("answer")},
      {"service.unanswered", kEvents, 5, kValues<&S::service_unanswered>,
       "Requests given up after the last attempt", OfService("unanswered")},
      {"service.wrong_partner", kEvents, 5, kValues<&S::service_wrong_partner>,
       "Answers of another hub or port than the wiring has there", OfService("wrong_partner")},
      {"service.round_trip_ps", kPicoseconds, 5, kValues<&S::service_round_trip_ps>,
       "Sum of virtual time from request to answer, over all answered requests of the service port",
       OfHub("percs_service_round_trip_seconds_total")},
      {"service.round_trip_max", kPicoseconds, 5, kValues<&S::service_round_trip_max>,
       "The longest time from request to answer", kNoMetric, "service.round_trip_max_ps", nullptr,
       CounterTotal::kMaximum},
      DroppedPackets(kNoServiceSlot, 1, 5),
      DroppedFlits(kNoServiceSlot, 1, 5),
      DroppedPackets(kServiceTimeout, 1, 5),
      DroppedFlits(kServiceTimeout, 1, 5),
      DroppedPackets(kCauDown, 1, 5),
      DroppedFlits(kCauDown, 1, 5),
      DroppedPackets(kWindowDown, 1, 5),
      DroppedFlits(kWindowDown, 1, 5),
      DroppedPackets(kOldIncarnation, 1, 6),
      DroppedFlits(kOldIncarnation, 1, 6),
      DroppedPackets(kWindowClosed, 1, 6),
      DroppedFlits(kWindowClosed, 1, 6),
      DroppedPackets(kWrongKey, 1, 6),
      DroppedFlits(kWrongKey, 1, 6),
      DroppedPackets(kReceiveFifoFull, 1, 6),
      DroppedFlits(kReceiveFifoFull, 1, 6),
      DroppedPackets(kNoIpReceive, 1, 6),
      DroppedFlits(kNoIpReceive, 1, 6),
      DroppedPackets(kMalformed, 1, 6),
      DroppedFlits(kMalformed, 1, 6),
      {"hfis", kEvents, 6, kValues<&S::hfi>,
       "Counters of an HFI for the windows of programs; the label names the counter",
       OfUsed("percs_hfi_events_total", "hfi,counter"), nullptr, counter_keys::Hfi},
      {"nmmu_hits", kEvents, 6, kValues<&S::nmmu_hits>,
       "Pages whose translation was in the cache of the NMMU", OfNmmu("hit"), "nmmu.hits"},
      {"nmmu_misses", kEvents, 6, kValues<&S::nmmu_misses>,
       "Pages whose translation was not in the cache of the NMMU", OfNmmu("miss"), "nmmu.misses"},
      {"pcie", kEvents, 7, kValues<&S::pcie>,
       "Counters of a PCI Express port of a hub; the label names the counter",
       OfUsed("percs_pcie_events_total", "port,counter"), nullptr, counter_keys::Pcie},
      {"packets_diverted", kPackets, 12, kValues<&S::packets_diverted>,
       "Direct packets of adaptive routes that this hub, which has their D link, made indirect",
       OfUsed("percs_packets_diverted_total", nullptr)},
  });
}();

// Collecting the results of a large machine is mostly this, so all of it is inlined.
template <typename F, typename... Stats>
[[gnu::always_inline]] inline void NodeStats::VisitFirstModel(F&& f, Stats&... stats) {
  for (std::size_t port = 0; port < kPorts; ++port) {
    const auto vcs = static_cast<std::size_t>(VcsOf(static_cast<PortId>(port)));
    const auto visit = [&](auto&... ports) __attribute__((always_inline)) {
      for (std::size_t v = 0; v < vcs; ++v) {
        ForEachRow<kVcCounters>([&](const auto& row) __attribute__((always_inline)) {
          f(row.total, ports.vc[v].*row.member...);
        });
      }
      ForEachRow<kPortCounters>([&](const auto& row) __attribute__((always_inline)) {
        if (row.since < kModelOfLaterPortCounters) f(row.total, ports.*row.member...);
      });
    };
    visit(stats.ports[port]...);
  }
  ForEachRow<kNodeCounters>([&](const NodeCounter& row) __attribute__((always_inline)) {
    if (row.since > 1) return;
    for (std::size_t i = 0; i < row.values.size; ++i) f(row.total, row.Of(stats, i)...);
  });
  const auto visit = [&f](auto&... latency) __attribute__((always_inline)) {
    f(CounterTotal::kSum, latency.count...), f(CounterTotal::kSum, latency.sum...);
    f(CounterTotal::kMaximum, latency.max...);
    const auto visit_buckets = [&f](auto&... counts) __attribute__((always_inline)) {
      for (std::size_t i = 0; i < Histogram::kBuckets; ++i) f(CounterTotal::kSum, counts[i]...);
    };
    visit_buckets(latency.buckets.all()...);
  };
  visit(stats.packet_latency...);
  visit(stats.message_latency...);
}

template <typename F, typename... Stats>
[[gnu::always_inline]] inline void NodeStats::VisitLaterModels(F&& f, Stats&... stats) {
  ForEachRow<kNodeCounters>([&](const NodeCounter& row) __attribute__((always_inline)) {
    if (row.since == 1) return;
    for (std::size_t i = 0; i < row.values.size; ++i) f(row.total, row.Of(stats, i)...);
  });
}

template <typename F, typename... Stats>
[[gnu::always_inline]] inline void NodeStats::VisitTotals(F&& f, Stats&... stats) {
  VisitFirstModel(f, stats...);
  VisitLaterModels(f, stats...);
}

template <typename F>
void NodeStats::Visit(F&& f) {
  VisitTotals([&f](CounterTotal, std::uint64_t& value) { f(value); }, *this);
  Trim();
}

template <typename F>
void NodeStats::Visit(F&& f) const {
  VisitTotals([&f](CounterTotal, std::uint64_t value) { f(value); }, *this);
}

template <typename Stream>
void NodeStats::Fold(Stream& digest) const {
  Stream folded = digest;  // a local one stays in registers
  VisitFirstModel(
      [&folded](CounterTotal, std::uint64_t value)
          __attribute__((always_inline)) { folded.Add(value); },
      *this);
  std::uint64_t index = 0;
  VisitLaterModels(
      [&](CounterTotal, std::uint64_t value) __attribute__((always_inline)) {
        ++index;
        if (value != 0) folded.Add(index << 56 ^ value);
      },
      *this);
  digest = folded;
}

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
      0;                // started, and failed with a reason; repeated if the tree was repaired
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
