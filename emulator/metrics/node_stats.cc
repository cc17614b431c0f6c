#include "emulator/metrics/node_stats.h"

#include <vector>

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

void NodeStats::Add(const NodeStats& other) {
  std::vector<std::uint64_t> values;
  NodeStats copy = other;  // Visit is for writing
  copy.Visit([&values](std::uint64_t value) { values.push_back(value); });
  std::size_t next = 0;
  VisitTotals(
      [&](CounterTotal total, std::uint64_t& sum) { AddToTotal(total, values[next++], &sum); });
}

}  // namespace percs
