// The counters of NodeStats one by one, by name: messages, reports and metrics are made from this.
// What ports count is not among them, nor latencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/metrics/node_stats.h"

namespace percs {

struct NamedCounter {
  const NodeCounter* row = nullptr;
  std::size_t index = 0;  // in the row
  std::string name;       // "nmmu_hits", "cau.multicasts", "hfis.0.sent"
  std::string key;        // in its group: "multicasts", "0.sent"; empty: it is in no group
  std::string json;       // place in reports: "nmmu.hits", "caus.multicasts"
  std::string metric;     // "percs_cau_events_total"; empty: none

  std::uint64_t& Of(NodeStats& stats) const { return row->Of(stats, index); }
  std::uint64_t Of(const NodeStats& stats) const { return row->Of(stats, index); }
};

// In the order of the rows.
const std::vector<NamedCounter>& NamedCounters();
// Null if there is none.
const NamedCounter* FindCounter(std::string_view name);
// Those of one group, by its name: "cau".
std::vector<const NamedCounter*> CountersOf(std::string_view group);

}  // namespace percs
