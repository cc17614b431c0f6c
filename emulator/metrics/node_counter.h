// Rows of the table of what a node counts (node_stats.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/metrics/counter_row.h"

namespace percs {

struct NodeStats;

// The values of a row: `size` of them, from the one numbered `first`.
struct CounterValues {
  std::uint64_t& (*to_count)(NodeStats& stats, std::size_t i);
  const std::uint64_t& (*to_read)(const NodeStats& stats, std::size_t i);
  std::size_t first, size;
};
enum class CounterPlace : std::uint8_t { kEveryNode, kHub, kBlade };

// The series that Prometheus has of a row (docs/metrics.md).
struct CounterMetric {
  const char* name = nullptr;    // without one: percs_ and the counter's name
  const char* labels = nullptr;  // "hfi,counter": their values are the last parts of the key
  const char* value = nullptr;   // of the label, where that is not the key
  char between = '.';            // the parts of a key
  CounterPlace place = CounterPlace::kEveryNode;
  bool if_used = false;        // no series while all counters of the metric are zero
  const char* help = nullptr;  // of a metric of several rows
  bool none = false;
};
inline constexpr CounterMetric kNoMetric = {.none = true};
constexpr CounterMetric OfNode(const char* name) { return {.name = name}; }
constexpr CounterMetric OfHub(const char* name, const char* labels = nullptr) {
  return {.name = name, .labels = labels, .place = CounterPlace::kHub};
}
constexpr CounterMetric OfUsed(const char* name, const char* labels) {
  return {.name = name, .labels = labels, .place = CounterPlace::kHub, .if_used = true};
}
constexpr CounterMetric OfBlade(const char* name, const char* labels) {
  return {.name = name, .labels = labels, .place = CounterPlace::kBlade};
}

// A counter of NodeStats, or a group of them, whose keys follow its name: "cau.multicasts".
struct NodeCounter {
  const char* name;
  CounterUnit unit;
  int since;  // model version
  CounterValues values;
  const char* help;
  CounterMetric metric = {};
  const char* json = nullptr;  // where reports have it, if not by its name
  std::string (*key)(std::size_t i) = nullptr;
  CounterTotal total = CounterTotal::kSum;
  bool of_ports = false;  // messages and reports have it with the ports

  std::uint64_t& Of(NodeStats& stats, std::size_t i) const {
    return values.to_count(stats, values.first + i);
  }
  std::uint64_t Of(const NodeStats& stats, std::size_t i) const {
    return values.to_read(stats, values.first + i);
  }
};

}  // namespace percs
