// How percsctl writes quantities and tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/percsctl/screen.h"
#include "emulator/base/time.h"

namespace percs {

// `5.2us`, `21.034ms`: with at most three decimals, for tables.
inline std::string FormatShort(Time time) { return FormatTime(time, 3); }
// With the mark that tells virtual time from wall time: `5.2us virtual`.
std::string FormatVirtual(Time time);
std::string FormatWall(double seconds);  // `0.42 s`, `2 min 05 s`
// ` (= 28 h 00 min at 10us/s)` if this virtual time takes more than a minute at this pace, in
// virtual picoseconds per wall second; else nothing, and nothing for a pace of 0.
std::string FormatLongWait(Time wait, Time pace);
std::string FormatBytes(std::uint64_t bytes);  // `64 KiB`
std::string FormatCount(std::uint64_t n);      // `12,345,678`
// `1 packet`, `12,345 packets`.
std::string Counted(std::uint64_t n, const char* noun);
std::string FormatPercent(double fraction);       // `12.3 %`
std::string FormatRate(double bytes_per_second);  // `24.0 GB/s`

// Columns as wide as their widest cell; the first is left-aligned, the rest as `align` says
// ('l' or 'r', by column; the last letter repeats). Times and rates have one unit in the whole
// table, or else in their column, where that makes none of them long and none 0. What all cells of
// a column end with, a unit or "virtual", is written once, in the header; "virtual" of several
// columns in the header of the first. Where a screen is too narrow, first headers and then texts
// are broken at spaces; then further columns follow below, each time beside the first one.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::string align = "lr")
      : align_(std::move(align)), rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string ToString(int indent = 0, const Screen& screen = Screen::OfOutput()) const;

 private:
  std::string align_;
  std::vector<std::vector<std::string>> rows_;
};

// "8 hubs", "8 hubs and 2 blades".
std::string FormatNodes(std::uint64_t nodes, std::uint64_t blades, std::uint64_t crossbars = 0);

}  // namespace percs
