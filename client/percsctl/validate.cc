// percsctl validate: published figures beside what the emulator gives for them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/validate_page.h"
#include "emulator/experiments/cell_validation.h"
#include "emulator/experiments/judge.h"
#include "emulator/experiments/p7ih_mechanisms.h"
#include "emulator/experiments/p7ih_validation.h"
#include "emulator/experiments/roadrunner_validation.h"
#include "emulator/experiments/smartmap_validation.h"
#include "emulator/experiments/withheld.h"

namespace percs {
namespace {

using Json = nlohmann::json;
using Rows = std::vector<ValidationRow>;

struct ValidateArguments {
  std::string machine, only, format = "table", withhold, without;
  bool progress = false;
};

// All of them take about a second.
absl::StatusOr<Rows> ValidateBlade(const std::string& only, const ShareObserver&) {
  auto rows = cell::ValidateCell();
  if (rows.ok()) {
    rows->erase(std::remove_if(rows->begin(), rows->end(),
                               [&](const ValidationRow& row) {
                                 return row.id.compare(0, only.size(), only) != 0;
                               }),
                rows->end());
  }
  return rows;
}

absl::StatusOr<Rows> ValidateHubs(const std::string& only, const ShareObserver& progress) {
  return ValidateP7ih(only, progress);
}

absl::StatusOr<Rows> ValidateCluster(const std::string& only, const ShareObserver& progress) {
  return ValidateSmartmap(only, progress);
}

// A machine whose published figures are known here.
struct Machine {
  const char* name;
  // Rows whose id begins so.
  absl::StatusOr<Rows> (*validate)(const std::string& only, const ShareObserver& progress);
};
constexpr const char* kHubs = "p7ih";
constexpr Machine kMachines[] = {{"cell", ValidateBlade},
                                 {kHubs, ValidateHubs},
                                 {"roadrunner", roadrunner::ValidateRoadrunner},
                                 {"smartmap", ValidateCluster}};
constexpr const char* kAllMachines = "all";

struct Judgement {
  std::vector<ValidatedMachine> machines;
  std::vector<ErrorSummary> summaries;
  std::vector<std::string> unmatched;  // figures from outside without a row
};

// A published figure that is a plain number is one in JSON too.
Json PublishedJson(const PublishedFigure& published) {
  if (published.text.empty()) return nullptr;
  return published.is_one_value() ? Json(published.low) : Json(published.text);
}

Json RowJson(const std::string& machine, const ValidationRow& row) {
  const double error = RelativeError(row);
  return {{"machine", machine},
          {"id", row.id},
          {"quantity", row.quantity},
          {"emulated", row.emulated},
          {"unit", row.unit},
          {"kind", RowKindName(row.kind)},
          {"published", PublishedJson(row.published)},
          {"error", std::isfinite(error) ? Json(error) : Json(nullptr)},
          {"holds", IsJudged(row) ? Json(Holds(row)) : Json(nullptr)}};
}

Json SummaryJson(const ErrorSummary& s) {
  return {{"machine", s.family}, {"kind", s.kind},
          {"rows", s.rows},      {"judged", s.judged},
          {"held", s.held},      {"figures", s.figures},
          {"median", s.median},  {"percentile_90", s.percentile_90},
          {"worst", s.worst},    {"worst_id", s.worst_id}};
}

void PrintJson(const std::string& machine, const Judgement& judgement) {
  Json rows = Json::array(), summaries = Json::array();
  for (const ValidatedMachine& one : judgement.machines) {
    for (const ValidationRow& row : one.rows) rows.push_back(RowJson(one.name, row));
  }
  for (const ErrorSummary& summary : judgement.summaries) summaries.push_back(SummaryJson(summary));
  fmt::print("{}\n", Json{{"machine", machine},
                          {"rows", std::move(rows)},
                          {"summary", std::move(summaries)},
                          {"unmatched", judgement.unmatched}}
                         .dump(2));
}

void PrintTables(const Judgement& judgement) {
  Table rows({"id", "published", "emulated", "unit", "error", "kind", "judged", "quantity"},
             "lrrlrlll");
  for (const ValidatedMachine& one : judgement.machines) {
    for (const ValidationRow& row : one.rows) {
      rows.Add({row.id, row.published.text.empty() ? "-" : row.published.text,
                fmt::format("{:.6g}", row.emulated), row.unit, ErrorText(row),
                RowKindName(row.kind), JudgementText(row), row.quantity});
    }
  }
  Table summaries({"machine", "rows", "count", "judged", "hold", "median", "90th percentile",
                   "worst", "worst row"},
                  "llrrrrrrl");
  for (const ErrorSummary& s : judgement.summaries) {
    const auto percent = [](double error, int of) {
      return of == 0 ? std::string("-") : FormatPercent(error);
    };
    summaries.Add({s.family, s.kind, std::to_string(s.rows), std::to_string(s.judged),
                   std::to_string(s.held), percent(s.median, s.figures),
                   percent(s.percentile_90, s.figures), percent(s.worst, s.judged), s.worst_id});
  }
  fmt::print("{}\n{}", rows.ToString(), summaries.ToString());
  for (const std::string& figure : judgement.unmatched) fmt::print("not judged: {}\n", figure);
}

absl::StatusOr<std::vector<WithheldFigure>> ReadWithheldFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot be read", name));
  }
  auto figures = ReadWithheld(text);
  if (figures.ok()) return figures;
  return absl::InvalidArgumentError(fmt::format("{}: {}", name, Text(figures.status())));
}

// Leaves the rows that figures from outside belong to.
void JudgeWithheld(const std::vector<WithheldFigure>& figures, Judgement& judgement) {
  Rows all;
  for (const ValidatedMachine& machine : judgement.machines) {
    all.insert(all.end(), machine.rows.begin(), machine.rows.end());
  }
  WithheldMatch match = MatchWithheld(all, figures);
  judgement.unmatched = std::move(match.unmatched);
  for (ValidatedMachine& machine : judgement.machines) {
    Rows matched;
    for (const ValidationRow& row : match.rows) {
      const bool own = std::any_of(machine.rows.begin(), machine.rows.end(),
                                   [&](const ValidationRow& of) { return of.id == row.id; });
      if (own) matched.push_back(row);
    }
    machine.rows = std::move(matched);
  }
}

void Summarize(Judgement& judgement) {
  Rows all;
  for (const ValidatedMachine& machine : judgement.machines) {
    const auto some = SummarizeErrors(machine.name, machine.rows);
    judgement.summaries.insert(judgement.summaries.end(), some.begin(), some.end());
    all.insert(all.end(), machine.rows.begin(), machine.rows.end());
  }
  if (judgement.machines.size() < 2) return;
  const auto some = SummarizeErrors(kAllMachines, all);
  judgement.summaries.insert(judgement.summaries.end(), some.begin(), some.end());
}

// The calibrated machine without this mechanism.
P7ihMachine Without(const std::string& name) {
  P7ihMachine machine;
  for (const P7ihMechanism& mechanism : P7ihMechanisms()) {
    if (name == mechanism.name) mechanism.remove(machine);
  }
  return machine;
}

Outcome Validate(const ValidateArguments& a) {
  if (!a.without.empty() && a.machine != kHubs) {
    return Outcome::Fail(ExitCode::kUsage, "--without belongs to p7ih");
  }
  std::vector<WithheldFigure> figures;
  if (!a.withhold.empty()) {
    auto read = ReadWithheldFile(a.withhold);
    if (!read.ok()) return FromStatus(read.status());
    figures = *std::move(read);
  }
  Judgement judgement;
  ProgressLine progress(a.progress);
  bool any = false;
  for (const Machine& machine : kMachines) {
    if (a.machine != kAllMachines && a.machine != machine.name) continue;
    progress.StartEstimate(0);  // each machine has its own pace
    const ShareObserver show = [&progress, &machine](double share) {
      progress.Show(fmt::format("figures of {}", machine.name), share);
    };
    absl::StatusOr<Rows> rows = a.without.empty() ? machine.validate(a.only, show)
                                                  : ValidateP7ih(a.only, show, Without(a.without));
    if (!rows.ok()) return FromStatus(rows.status());
    any = any || !rows->empty();
    judgement.machines.push_back({machine.name, *std::move(rows)});
  }
  progress.Clear();
  if (!any) {
    return Outcome::Fail(ExitCode::kBadInput,
                         fmt::format("no row of {} begins with \"{}\"", a.machine, a.only));
  }
  if (!a.withhold.empty()) JudgeWithheld(figures, judgement);
  Summarize(judgement);
  if (IsJson(a.format)) {
    PrintJson(a.machine, judgement);
  } else if (a.format == "html") {
    fmt::print("{}", ValidationPage(judgement.machines, judgement.summaries, judgement.unmatched));
  } else {
    PrintTables(judgement);
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddValidate(CLI::App& app) {
  auto a = std::make_shared<ValidateArguments>();
  std::vector<std::string> names{kAllMachines};
  for (const Machine& machine : kMachines) names.push_back(machine.name);
  app.add_option("MACHINE", a->machine, "Machine whose published figures are compared, or all")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("--only", a->only, "Only rows whose id starts with this");
  app.add_option("--withhold", a->withhold,
                 "Judge against the figures of this file (CSV: id, value, conditions) instead, and "
                 "show only rows that they belong to")
      ->type_name("FILE");
  std::vector<std::string> mechanisms;
  for (const P7ihMechanism& mechanism : P7ihMechanisms()) mechanisms.emplace_back(mechanism.name);
  app.add_option("--without", a->without, "p7ih: measure the machine without this mechanism")
      ->check(CLI::IsMember(mechanisms));
  app.add_option("--format", a->format, "table, json, or html with drawings")
      ->check(CLI::IsMember({"table", "json", "html"}))
      ->capture_default_str();
  AddProgressOption(app, a->progress);
  return [a] { return Validate(*a); };
}

}  // namespace percs
