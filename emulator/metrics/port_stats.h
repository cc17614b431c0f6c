// What a port of a hub counts, and each of its virtual channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/base/ids.h"
#include "emulator/base/on_demand.h"
#include "emulator/metrics/counter_row.h"

namespace percs {

// One VC of a port: what was granted on it as an output, and the input buffer behind it. One cache
// line, the only one that a commitment counts in.
struct alignas(64) VcStats {
  std::uint64_t flits = 0, packets = 0, bytes = 0;
  std::uint64_t runs_split = 0, arbitration_losses = 0;
  std::uint64_t credit_stalls = 0, credit_stall_ps = 0;
  std::uint64_t most_held = 0;

  std::uint64_t runs() const { return packets + runs_split; }  // commitments
  void Add(const VcStats& other);
  bool operator==(const VcStats&) const = default;
};

// In the order of digests, which have all of them.
inline constexpr CounterRow<VcStats> kVcCounters[] = {
    {"flits", CounterUnit::kFlits, 1, &VcStats::flits, "Flits sent"},
    {"packets", CounterUnit::kPackets, 1, &VcStats::packets, "Packets sent"},
    {"bytes", CounterUnit::kBytes, 1, &VcStats::bytes, "Payload bytes sent"},
    {"runs_split", CounterUnit::kEvents, 1, &VcStats::runs_split,
     "Commitments that ended before the tail of the packet"},
    {"arbitration_losses", CounterUnit::kEvents, 3, &VcStats::arbitration_losses,
     "Grants to another input that an input for this VC could have had"},
    {"credit_stalls", CounterUnit::kEvents, 3, &VcStats::credit_stalls,
     "Times that a flit was ready and the link idle, but no credit was available"},
    {"credit_stall_ps", CounterUnit::kPicoseconds, 3, &VcStats::credit_stall_ps,
     "Virtual time of these stalls"},
    {"most_held", CounterUnit::kFlits, 3, &VcStats::most_held,
     "Most slots of the input buffer in use at once", CounterTotal::kMaximum},
};

struct PortStats {
  std::array<VcStats, kMaxVcs> vc{};
  std::uint64_t credit_stall_ps = 0;
  std::uint64_t crc_errors = 0, replays = 0;
  std::uint64_t lanes_lost = 0;
  std::uint64_t service_flits = 0;

  // Over all VCs; `most_held` of the fullest one.
  VcStats sum() const;
  // Of one counter that adds up.
  std::uint64_t sum(std::uint64_t VcStats::*counter) const;
  bool operator==(const PortStats&) const = default;
};

// Of the port itself, in the order of digests. Those of the first models stand behind the VCs of
// the port; later ones have a row of kNodeCounters, too, which says where in a digest they stand.
inline constexpr CounterRow<PortStats> kPortCounters[] = {
    {"credit_stall_ps", CounterUnit::kPicoseconds, 1, &PortStats::credit_stall_ps,
     "Virtual time in which a flit was ready and the link idle, but no credit was available"},
    {"crc_errors", CounterUnit::kEvents, 3, &PortStats::crc_errors,
     "Transmissions that the receiving end found corrupted"},
    {"replays", CounterUnit::kEvents, 3, &PortStats::replays, "Rounds of link-level replay"},
    {"lanes_lost", CounterUnit::kLanes, 3, &PortStats::lanes_lost,
     "Sending lanes of the link that do not work", CounterTotal::kLevel},
    {"service_flits", CounterUnit::kFlits, 5, &PortStats::service_flits,
     "Management packets sent, one flit each, on none of the VCs"},
};
inline constexpr int kModelOfLaterPortCounters = 5;

// The ports of a node: most never carry anything, and the largest machine has a million.
class PortTable {
 public:
  const PortStats& operator[](std::size_t port) const { return ports_[port].to_read(); }
  PortStats& operator[](std::size_t port) { return ports_[port].to_write(); }  // to count on it

  // Reads one port after the other.
  struct Iterator {
    const OnDemand<PortStats>* at;
    const PortStats& operator*() const { return at->to_read(); }
    Iterator& operator++() { return ++at, *this; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator begin() const { return {ports_.data()}; }
  Iterator end() const { return {ports_.data() + ports_.size()}; }

  void Trim() {
    for (OnDemand<PortStats>& port : ports_) port.Trim();
  }

 private:
  std::array<OnDemand<PortStats>, kPorts> ports_;
};

}  // namespace percs
