// percsctl check: reads and builds scenario files without running them, and reports every error,
// also what `run` and `apply` would refuse.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/scenario_options.h"
#include "proto/scenario/build.h"

namespace percs {
namespace {

constexpr const char *kRun = "run", *kApply = "apply", *kEither = "both";

struct CheckArguments {
  std::vector<std::string> files, settings;
  std::optional<std::uint64_t> seed;
  std::string format;
  std::string wanted = kEither;
};

// What `run` and `apply` would say. Only a fabric runs until it is stopped, and a scenario on the
// live clock may be meant for that.
std::vector<std::string> Refusals(const std::string& file, const ScenarioInput& input,
                                  const std::string& wanted) {
  const bool live = PacingOf(input.message).live && RunsUntilStopped(input.scenario);
  std::vector<std::string> refusals;
  for (const auto& [command, where] :
       {std::pair(kRun, RunsOn::kProcess), std::pair(kApply, RunsOn::kDaemons)}) {
    if (wanted != command && (wanted != kEither || (live && where == RunsOn::kProcess))) continue;
    const absl::Status status = CheckScenario(input.scenario, where);
    if (status.ok()) continue;
    const std::string text = Text(status);
    const bool known = !refusals.empty() && refusals.back().ends_with(": " + text);
    if (!known) refusals.push_back(fmt::format("{}: refused by `{}`: {}", file, command, text));
  }
  return refusals;
}

// As the file names it.
std::string WorkloadName(const v1::Workload& workload) {
  const auto* const kind = workload.GetDescriptor()->FindOneofByName("kind");
  const auto* const field = workload.GetReflection()->GetOneofFieldDescriptor(workload, kind);
  return field == nullptr ? "no workload" : field->name();
}

std::vector<std::string> LinesOf(const absl::Status& status) {
  std::vector<std::string> lines;
  const std::string text = Text(status);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// One file; appends to `report` when JSON is wanted.
std::size_t CheckOne(const std::string& file, const CheckArguments& a, nlohmann::json& report) {
  const auto input = LoadScenario(file, a.settings, a.seed);
  const std::vector<std::string> errors =
      input.ok() ? Refusals(file, *input, a.wanted) : LinesOf(input.status());
  if (IsJson(a.format)) {
    report.push_back({{"file", file}, {"ok", errors.empty()}, {"errors", errors}});
  } else if (errors.empty()) {
    const TopologySpec& t = input->scenario.topology;
    const auto hubs = static_cast<std::uint64_t>(t.supernodes) * t.drawers * t.hubs;
    const int cus = t.infiniband ? t.infiniband->cus : 0;
    const auto crossbars = static_cast<std::uint64_t>(
        roadrunner::kCrossbarsPerSwitch * (cus + (cus > 1 ? roadrunner::kInterSwitches : 0)));
    fmt::print("{}: ok ({}: {}, {}, {})\n", file, input->scenario.name,
               FormatNodes(hubs + t.blades.size() + crossbars, t.blades.size(), crossbars),
               WorkloadName(input->message.workload()),
               Counted(static_cast<std::uint64_t>(input->message.faults_size()), "fault"));
  } else {
    for (const std::string& error : errors) fmt::print(stderr, "{}\n", error);
  }
  return errors.size();
}

Outcome Check(const CheckArguments& a) {
  nlohmann::json report = nlohmann::json::array();
  std::size_t errors = 0;
  for (const std::string& file : a.files) errors += CheckOne(file, a, report);
  if (IsJson(a.format)) fmt::print("{}\n", report.dump(2));
  if (errors == 0) return Outcome::Ok();
  return Outcome::Fail(ExitCode::kBadInput, fmt::format("{} in {}", Counted(errors, "error"),
                                                        Counted(a.files.size(), "file")));
}

}  // namespace

CommandBody AddCheck(CLI::App& app) {
  auto a = std::make_shared<CheckArguments>();
  app.add_option("FILE", a->files, "Scenarios: .yaml, .json or .textproto")->required();
  app.add_option("--for", a->wanted, "Command that must accept the scenario: run, apply or both")
      ->check(CLI::IsMember({kRun, kApply, kEither}))
      ->capture_default_str();
  AddSettingOptions(app, a->settings, a->seed);
  AddFormatOption(app, a->format);
  return [a] { return Check(*a); };
}

}  // namespace percs
