// percsctl collective --every-root: each fixed root beside a root that moves from call to call.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/lib/interrupt.h"
#include "client/percsctl/collective.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "emulator/experiments/collective_measure.h"

namespace percs {
namespace {

using Json = nlohmann::json;

// As many calls as `percsctl validate p7ih` measures.
constexpr std::uint64_t kCalls = 40;

bool HasRoot(Operation operation) {
  return operation == Operation::kBroadcast || operation == Operation::kReduce ||
         operation == Operation::kGather || operation == Operation::kScatter;
}

// Mean time of a call in us.
absl::StatusOr<double> MeanOf(CollectiveWorkload w, std::uint32_t root, bool rotating) {
  w.root = root;
  w.rotate_root = rotating;
  RunOptions options;
  options.cancelled = [] { return InterruptGuard::raised(); };
  const auto run = MeasureCollective(w, options);
  if (!run.ok()) return run.status();
  return run->collective.Nanoseconds() / 1000;
}

void Print(const CollectiveArguments& a, double rotating, const std::vector<double>& fixed) {
  if (IsJson(a.format)) {
    fmt::print("{}\n", Json{{"operation", std::string(OperationName(a.operation))},
                            {"algorithm", a.algorithm},
                            {"rotating_us", rotating},
                            {"fixed_us", fixed}}
                           .dump(2));
    return;
  }
  Table table({"root", "mean us", "rotating root is slower by %"}, "r");
  for (std::size_t root = 0; root < fixed.size(); ++root) {
    table.Add({std::to_string(root), fmt::format("{:.3f}", fixed[root]),
               fmt::format("{:.1f}", 100 * (rotating / fixed[root] - 1))});
  }
  table.Add({"rotating", fmt::format("{:.3f}", rotating), "-"});
  fmt::print("{}", table.ToString());
}

}  // namespace

Outcome MeasureEveryRoot(const CollectiveArguments& a) {
  if (!HasRoot(a.operation))
    return Outcome::Fail(ExitCode::kUsage,
                         fmt::format("{} has no root", OperationName(a.operation)));
  if (a.sizes.size() > 1 || !(IsJson(a.format) || a.format == "table"))
    return Outcome::Fail(ExitCode::kUsage, "--every-root prints one size, as table or json");
  CollectiveWorkload w = a.tasks;
  w.operation = a.operation;
  w.algorithm = a.algorithm;
  if (!a.sizes.empty()) w.bytes = a.sizes.front();
  w.iterations = a.iterations > 0 ? a.iterations : kCalls;
  InterruptGuard interrupt;
  ProgressLine progress(a.progress);
  const auto rotating = MeanOf(w, 0, true);
  if (!rotating.ok()) return FromStatus(rotating.status());
  std::vector<double> fixed;
  const std::uint32_t tasks = w.placement.tasks();
  for (std::uint32_t root = 0; root < tasks; ++root) {
    progress.Show(fmt::format("root {}", root), static_cast<double>(root) / tasks);
    const auto mean = MeanOf(w, root, false);
    if (!mean.ok()) return FromStatus(mean.status());
    fixed.push_back(*mean);
  }
  progress.Clear();
  Print(a, *rotating, fixed);
  return Outcome::Ok();
}

}  // namespace percs
