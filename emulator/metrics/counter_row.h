// A counter is one row of a table: totals, digests, messages, reports, metrics and help follow the
// row. Whatever counts increments the member itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace percs {

enum class CounterUnit : std::uint8_t {
  kEvents,
  kPackets,
  kFlits,
  kMessages,
  kBytes,
  kLinks,
  kLanes,
  kPicoseconds,
};
const char* CounterUnitName(CounterUnit unit);  // "packets"

// How two values become one.
enum class CounterTotal : std::uint8_t {
  kSum,
  kLevel,    // a state, not something that happened; levels of several nodes add up
  kMaximum,  // the greater one
};

// A counter of `Stats`, under its name in messages and in JSON.
template <typename Stats>
struct CounterRow {
  const char* name;
  CounterUnit unit;
  int since;  // model version
  std::uint64_t Stats::*member;
  const char* help;
  CounterTotal total = CounterTotal::kSum;
};

inline void AddToTotal(CounterTotal total, std::uint64_t value, std::uint64_t* sum) {
  *sum = total == CounterTotal::kMaximum ? std::max(*sum, value) : *sum + value;
}

// Calls f(row) with every row of a table. Each call is compiled by itself, so that what the row
// says is known there: no branch and no pointer is left.
template <const auto& kRows, typename F>
[[gnu::always_inline]] inline void ForEachRow(F&& f) {
  [&]<std::size_t... kRow>(std::index_sequence<kRow...>) __attribute__((always_inline)) {
    (f(kRows[kRow]), ...);
  }
  (std::make_index_sequence<std::size(kRows)>());
}

template <typename Rows, typename Stats>
void AddRows(const Rows& rows, const Stats& other, Stats* stats) {
  for (const auto& row : rows) AddToTotal(row.total, other.*row.member, &(stats->*row.member));
}

}  // namespace percs
