// percsctl collective: a collective in its measurement loop, among tasks of nodes or SPEs of a Cell
// blade.
#include "client/percsctl/collective.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "client/percsctl/command.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/sizes.h"

namespace percs {
namespace {

struct Texts {
  std::string operation, mapping = "core", op, type;
  std::vector<std::string> sizes;
};

absl::Status Read(const Texts& texts, CollectiveArguments* a) {
  for (int i = 0; i < kOperations; ++i) {
    if (texts.operation == OperationName(static_cast<Operation>(i)))
      a->operation = static_cast<Operation>(i);
  }
  auto sizes = ParseSizes(texts.sizes);
  if (!sizes.ok()) return sizes.status();
  a->sizes = *std::move(sizes);
  if (texts.mapping == "cpu") a->tasks.placement.mapping = ThreadMapping::kCpu;
  if (!texts.op.empty()) a->tasks.op = *ParseOp(texts.op);
  if (!texts.type.empty()) a->tasks.type = *ParseType(texts.type);
  return absl::OkStatus();
}

void AddTaskOptions(CLI::App& app, CollectiveArguments& a, Texts& texts) {
  constexpr const char* kGroup = "Tasks on nodes (without --blade)";
  std::vector<std::string> ops, types;
  for (int i = 1; i < kSoftwareReduceOps; ++i) ops.emplace_back(OpName(static_cast<ReduceOp>(i)));
  for (int i = 0; i < kOperandTypes; ++i) types.emplace_back(TypeName(static_cast<OperandType>(i)));
  TaskPlacement& placement = a.tasks.placement;
  std::vector<CLI::Option*> options = {
      app.add_option("--nodes", placement.nodes, "Number of nodes with tasks, 1 to 512"),
      app.add_option("--tasks", placement.tasks_per_node, "Tasks per node, at most 32 x --smt"),
      app.add_option("--smt", placement.threads_per_core, "Threads per core: 1, 2 or 4"),
      app.add_option("--mapping", texts.mapping,
                     "core: thread 0 of every core first; cpu: core by core")
          ->check(CLI::IsMember({"core", "cpu"})),
      app.add_option("--root", a.tasks.root, "Root task, for collectives that have a root"),
      app.add_option("--op", texts.op, "Operator of reductions")
          ->check(CLI::IsMember(ops))
          ->default_str("sum"),
      app.add_option("--type", texts.type, "Type of the operands")
          ->check(CLI::IsMember(types))
          ->default_str("int64"),
      app.add_option("--warm-up", a.tasks.warm_up, "Warm-up calls before the measurement")};
  std::vector<CLI::Option*> flags = {
      app.add_flag("--rotating-root", a.tasks.rotate_root,
                   "Rotate the root: each call uses the next task"),
      app.add_flag("--every-root", a.every_root,
                   "Measure with each task as fixed root, and with a rotating one"),
      app.add_flag("--lengths-only{false}", a.tasks.verified,
                   "Do not move or check data; times stay the same")};
  for (CLI::Option* option : options) option->group(kGroup)->capture_default_str();
  for (CLI::Option* flag : flags) flag->group(kGroup);
}

void AddBladeOptions(CLI::App& app, CollectiveArguments& a) {
  constexpr const char* kGroup = "SPEs of a Cell blade";
  CLI::Option* blade =
      app.add_option("--blade", a.blade, "Blade type: QS20, QS21 or QS22")->group(kGroup);
  for (CLI::Option* option :
       {app.add_option("--spes", a.spes, "Number of SPEs that take part, from SPE 0"),
        app.add_option("--elements", a.elements,
                       "Floats of a reduction, at most 512 (ATO) or 2048 (TT)"),
        app.add_option(
               "--loop", a.loop,
               "back-to-back: time per call; aligned: all enter at once, until the last leaves")
            ->check(CLI::IsMember({"back-to-back", "aligned"}))}) {
    option->group(kGroup)->capture_default_str()->needs(blade);
  }
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().rfind("Tasks", 0) == 0) blade->excludes(option);
  }
}

}  // namespace

CommandBody AddCollective(CLI::App& app) {
  auto a = std::make_shared<CollectiveArguments>();
  auto texts = std::make_shared<Texts>();
  std::vector<std::string> operations;
  for (int i = 0; i < kOperations; ++i)
    operations.emplace_back(OperationName(static_cast<Operation>(i)));
  app.add_option("OPERATION", texts->operation, "Collective to measure")
      ->required()
      ->check(CLI::IsMember(operations));
  app.add_option(
      "--algorithm", a->algorithm,
      "layer or layer:algorithm (p2p, hybrid, ...); on a blade the paper's name, or auto");
  app.add_option("--size,--bytes", texts->sizes,
                 "Bytes: one size, a list, or a doubling range like 8..1MiB")
      ->delimiter(',');
  app.add_option("--iterations", a->iterations,
                 "Number of measured calls; default: 10, 20, 40, ... until the mean changes by no "
                 "more than 0.5 %, at most 1000")
      ->check(CLI::Range(1, 1'000'000'000));
  AddProgressOption(app, a->progress);
  app.add_option("--format", a->format,
                 "table, json, osu (OSU layout) or imb (Intel MPI Benchmarks layout)")
      ->check(CLI::IsMember({"table", "json", "osu", "imb"}))
      ->default_val("table");
  AddTaskOptions(app, *a, *texts);
  AddBladeOptions(app, *a);
  return [a, texts] {
    if (absl::Status status = Read(*texts, a.get()); !status.ok()) return FromStatus(status);
    if (!a->blade.empty()) return MeasureOnBlade(*a);
    return a->every_root ? MeasureEveryRoot(*a) : MeasureAmongTasks(*a);
  };
}

}  // namespace percs
