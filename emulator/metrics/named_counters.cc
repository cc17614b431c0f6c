#include "emulator/metrics/named_counters.h"

#include <algorithm>
#include <map>

#include "emulator/base/check.h"
#include "emulator/cell/blade_context.h"
#include "emulator/packet/route_mode.h"
#include "fmt/format.h"

namespace percs {
namespace {

// What is counted for each Cell appears once per Cell: "dma_bytes", "eib_transfers_cell0".
std::vector<std::string> BladeKeys() {
  std::map<std::string, int> times, seen;
  const cell::BladeStats stats;
  stats.Visit([&](const char* name, std::uint64_t) { ++times[name]; });
  std::vector<std::string> keys;
  stats.Visit([&](const char* name, std::uint64_t) {
    keys.push_back(times[name] > 1 ? fmt::format("{}_cell{}", name, seen[name]++) : name);
  });
  PERCS_CHECK(keys.size() == kBladeCounters);
  return keys;
}

// percs_nmmu_hits_total, percs_service_round_trip_seconds_total.
std::string MetricOf(const NodeCounter& row) {
  if (row.metric.none) return "";
  if (row.metric.name != nullptr) return row.metric.name;
  std::string name = row.name;
  std::replace(name.begin(), name.end(), '.', '_');
  if (row.unit == CounterUnit::kPicoseconds) {
    if (name.ends_with("_ps")) name.resize(name.size() - 3);
    name += "_seconds";
  }
  return fmt::format("percs_{}_total", name);
}

std::vector<NamedCounter> NameCounters() {
  std::vector<NamedCounter> counters;
  for (const NodeCounter& row : kNodeCounters) {
    if (row.of_ports) continue;
    PERCS_CHECK((row.key != nullptr) || row.values.size == 1);
    for (std::size_t i = 0; i < row.values.size; ++i) {
      NamedCounter counter{&row, i, row.name, "", row.json ? row.json : row.name, MetricOf(row)};
      if (row.key != nullptr) {
        counter.key = row.key(row.values.first + i);
        counter.name += "." + counter.key;
        counter.json += "." + counter.key;
      }
      counters.push_back(std::move(counter));
    }
  }
  return counters;
}

}  // namespace

namespace counter_keys {

std::string DropReason(std::size_t i) { return DropReasonName(static_cast<percs::DropReason>(i)); }
std::string RouteMode(std::size_t i) { return RouteModeName(static_cast<percs::RouteMode>(i)); }
std::string Blade(std::size_t i) {
  static const auto* const keys = new std::vector<std::string>(BladeKeys());
  return (*keys)[i];
}
std::string Cau(std::size_t i) {
  if (i >= kCauReductions) return kCauCounterNames[i - kCauReductions];
  return fmt::format("reduce_{}_{}", OpName(static_cast<ReduceOp>(i / kOperandTypes)),
                     TypeName(static_cast<OperandType>(i % kOperandTypes)));
}
std::string Hfi(std::size_t i) {
  return fmt::format("{}.{}", i / kHfiCounters, kHfiCounterNames[i % kHfiCounters]);
}
std::string Pcie(std::size_t i) {
  return fmt::format("{}.{}", i / kPcieCounters, kPcieCounterNames[i % kPcieCounters]);
}

}  // namespace counter_keys

const std::vector<NamedCounter>& NamedCounters() {
  static const auto* const counters = new std::vector<NamedCounter>(NameCounters());
  return *counters;
}

const NamedCounter* FindCounter(std::string_view name) {
  static const auto* const by_name = [] {
    auto* all = new std::map<std::string_view, const NamedCounter*>();
    for (const NamedCounter& counter : NamedCounters()) {
      PERCS_CHECK(all->emplace(counter.name, &counter).second);
    }
    return all;
  }();
  const auto found = by_name->find(name);
  return found == by_name->end() ? nullptr : found->second;
}

std::vector<const NamedCounter*> CountersOf(std::string_view group) {
  std::vector<const NamedCounter*> counters;
  for (const NamedCounter& counter : NamedCounters()) {
    if (!counter.key.empty() && group == counter.row->name) counters.push_back(&counter);
  }
  return counters;
}

}  // namespace percs
