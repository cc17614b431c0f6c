// A loop of collectives among tasks in reports.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/percsctl/format.h"
#include "client/percsctl/report.h"

namespace percs {
namespace {

Time PerCall(Time total, std::uint64_t calls) {
  return calls == 0 ? 0 : total / static_cast<Time>(calls);
}

}  // namespace

nlohmann::json CollectiveJson(const CollectiveResult& c) {
  if (c.empty()) return nullptr;
  const auto nanoseconds = [&c](Time total, std::uint64_t calls) {
    return static_cast<double>(total) / static_cast<double>(calls) / kNanosecond;
  };
  nlohmann::json levels = nlohmann::json::object();
  for (const LevelTime& l : c.levels) {
    if (l.calls > 0) levels[l.level] = nanoseconds(l.total, l.calls);
  }
  return {{"tasks", c.tasks},
          {"iterations", c.iterations},
          {"nanoseconds", c.Nanoseconds()},
          {"fastest_ns", nanoseconds(c.fastest, c.iterations)},
          {"slowest_ns", nanoseconds(c.slowest, c.iterations)},
          {"wrong", c.wrong},
          {"levels_ns", std::move(levels)}};
}

std::string CollectiveText(const CollectiveResult& c) {
  if (c.empty()) return "";
  Table table({"collective", "per call (virtual)"});
  table.Add({"mean of all tasks", FormatShort(PerCall(c.total, c.tasks * c.iterations))});
  table.Add({"fastest task", FormatShort(PerCall(c.fastest, c.iterations))});
  table.Add({"slowest task", FormatShort(PerCall(c.slowest, c.iterations))});
  for (const LevelTime& l : c.levels)
    table.Add({"in " + l.level, FormatShort(PerCall(l.total, l.calls))});
  return fmt::format("\n{}{} by each of {}; {}\n", table.ToString(), Counted(c.iterations, "call"),
                     Counted(c.tasks, "task"),
                     c.wrong == 0 ? "no wrong result" : FormatCount(c.wrong) + " wrong results");
}

}  // namespace percs
