#include "emulator/metrics/cau_counters.h"

#include "fmt/format.h"

namespace percs {
namespace {

std::array<std::string, kCauCounters> MakeNames() {
  constexpr const char* kNamed[kCauNamedCounters] = {
      "multicasts",        "packets_sent", "packets_resent", "reports_sent", "probes_sent",
      "operations_failed", "trees_failed", "results_right",  "results_wrong"};
  std::array<std::string, kCauCounters> names;
  std::size_t i = 0;
  for (int op = 0; op < kReduceOps; ++op) {
    for (int type = 0; type < kOperandTypes; ++type) {
      names[i++] = fmt::format("reduce_{}_{}", OpName(static_cast<ReduceOp>(op)),
                               TypeName(static_cast<OperandType>(type)));
    }
  }
  for (const char* name : kNamed) names[i++] = name;
  return names;
}

}  // namespace

const std::array<std::string, kCauCounters>& CauCounterNames() {
  static const auto* const names = new std::array<std::string, kCauCounters>(MakeNames());
  return *names;
}

}  // namespace percs
