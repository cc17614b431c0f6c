// Arbitrary text as a GOAL trace. What is accepted keeps the promises of goal.h, so that a replay
// can neither index out of range nor wait for ever; what is refused says where.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "emulator/base/check.h"
#include "emulator/workload/goal.h"

namespace percs {
namespace {

// Runs the operations of one rank in dependency order; true if all of them could run.
bool CanFinish(const std::vector<GoalOp>& ops) {
  std::vector<std::uint32_t> waiting(ops.size());
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    waiting[i] = ops[i].dependencies;
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const GoalOp& op = ops[ready.back()];
    ready.pop_back();
    ++done;
    for (const auto* list : {&op.after_finish, &op.after_start}) {
      for (std::uint32_t next : *list) {
        PERCS_CHECK(next < ops.size());
        if (--waiting[next] == 0) ready.push_back(next);
      }
    }
  }
  return done == ops.size();
}

void CheckTrace(const GoalTrace& trace) {
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, std::int64_t> open;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    PERCS_CHECK(CanFinish(trace.ranks[rank]));
    for (const GoalOp& op : trace.ranks[rank]) {
      if (op.kind == GoalOp::Kind::kCalc) continue;
      PERCS_CHECK(op.peer < trace.ranks.size());
      if (op.kind == GoalOp::Kind::kSend) ++open[{rank, op.peer, op.tag}];
      if (op.kind == GoalOp::Kind::kRecv) --open[{op.peer, rank, op.tag}];
    }
  }
  for (const auto& [channel, count] : open) PERCS_CHECK(count == 0);
}

}  // namespace
}  // namespace percs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = percs::ParseGoal(text, "input");
  if (trace.ok()) {
    percs::CheckTrace(*trace);
  } else {
    PERCS_CHECK(trace.status().message().find("input:") == 0);
  }
  return 0;
}
