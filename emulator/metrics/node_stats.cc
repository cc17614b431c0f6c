#include "emulator/metrics/node_stats.h"

namespace percs {

const char* CounterUnitName(CounterUnit unit) {
  constexpr const char* kNames[] = {"events", "packets", "flits", "messages",
                                    "bytes",  "links",   "lanes", "picoseconds"};
  return kNames[static_cast<std::size_t>(unit)];
}

void VcStats::Add(const VcStats& other) { AddRows(kVcCounters, other, this); }

VcStats PortStats::sum() const {
  VcStats sum;
  for (const VcStats& v : vc) sum.Add(v);
  return sum;
}

std::uint64_t PortStats::sum(std::uint64_t VcStats::*counter) const {
  std::uint64_t sum = 0;
  for (const VcStats& v : vc) sum += v.*counter;
  return sum;
}

void NodeStats::Add(const NodeStats& other) {
  VisitTotals(
      [](CounterTotal total, std::uint64_t & sum, std::uint64_t value)
          __attribute__((always_inline)) { AddToTotal(total, value, &sum); },
      *this, other);
}

void NodeStats::Trim() {
  ports.Trim();
  packet_latency.buckets.Trim();
  message_latency.buckets.Trim();
}

}  // namespace percs
