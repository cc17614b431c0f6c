#include "emulator/metrics/node_stats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace percs {

void Histogram::Merge(const Histogram& other) {
  count += other.count;
  sum += other.sum;
  max = std::max(max, other.max);
  for (std::size_t b = 0; b < buckets.size(); ++b) buckets[b] += other.buckets[b];
}

std::uint64_t Histogram::Quantile(double q) const {
  if (count == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count)));
  std::uint64_t seen = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    seen += buckets[b];
    if (seen < std::max<std::uint64_t>(rank, 1)) continue;
    if (b < 8) return b;
    const int log = static_cast<int>(b / 8) + 2;
    const std::uint64_t upper = ((static_cast<std::uint64_t>(b % 8) + 9) << (log - 3)) - 1;
    return std::min(upper, max);
  }
  return max;
}

void VcStats::Add(const VcStats& other) {
  flits += other.flits;
  packets += other.packets;
  bytes += other.bytes;
  runs_split += other.runs_split;
  arbitration_losses += other.arbitration_losses;
  credit_stalls += other.credit_stalls;
  credit_stall_ps += other.credit_stall_ps;
  most_held = std::max(most_held, other.most_held);
}

VcStats PortStats::sum() const {
  VcStats sum;
  for (const VcStats& v : vc) sum.Add(v);
  return sum;
}

void NodeStats::Add(const NodeStats& other) {
  NodeStats copy = other;  // Visit is for writing
  const auto maxima = [](NodeStats& stats) {
    std::vector<std::uint64_t*> all = {&stats.packet_latency.max, &stats.message_latency.max,
                                       &stats.service_round_trip_max};
    for (PortStats& port : stats.ports) {
      for (VcStats& vc : port.vc) all.push_back(&vc.most_held);
    }
    return all;
  };
  const std::vector<std::uint64_t*> ours = maxima(*this), theirs = maxima(copy);
  std::vector<std::uint64_t> greater, values;
  for (std::size_t i = 0; i < ours.size(); ++i) greater.push_back(std::max(*ours[i], *theirs[i]));
  copy.Visit([&values](std::uint64_t& v) { values.push_back(v); });
  std::size_t next = 0;
  Visit([&](std::uint64_t& v) { v += values[next++]; });
  for (std::size_t i = 0; i < ours.size(); ++i) *ours[i] = greater[i];
}

}  // namespace percs
