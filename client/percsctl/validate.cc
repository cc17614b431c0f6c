// percsctl validate: published figures beside what the emulator gives for them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "emulator/experiments/cell_validation.h"
#include "emulator/experiments/p7ih_validation.h"
#include "emulator/experiments/roadrunner_validation.h"
#include "emulator/experiments/smartmap_validation.h"

namespace percs {
namespace {

using Json = nlohmann::json;
using Rows = std::vector<ValidationRow>;

struct ValidateArguments {
  std::string machine, only, format;
};

// All of them take about a second.
absl::StatusOr<Rows> ValidateBlade(const std::string& only) {
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

// A machine whose published figures are known here.
struct Machine {
  const char* name;
  absl::StatusOr<Rows> (*validate)(const std::string& only);  // rows whose id begins so
};
constexpr Machine kMachines[] = {{"cell", ValidateBlade},
                                 {"p7ih", ValidateP7ih},
                                 {"roadrunner", roadrunner::ValidateRoadrunner},
                                 {"smartmap", ValidateSmartmap}};

const char* RoleName(ValidationRole role) {
  constexpr const char* kNames[] = {"specified", "calibrated", "predicted"};
  return kNames[static_cast<int>(role)];
}

// A published figure that is a plain number is one in JSON too.
Json PublishedJson(const std::string& published) {
  if (published.empty()) return nullptr;
  const Json number = Json::parse(published, nullptr, /*allow_exceptions=*/false);
  return number.is_number() ? number : Json(published);
}

Json RowJson(const ValidationRow& row) {
  Json one{{"id", row.id},
           {"quantity", row.quantity},
           {"emulated", row.emulated},
           {"unit", row.unit},
           {"role", RoleName(row.role)},
           {"published", PublishedJson(row.published)}};
  one["holds"] = row.holds == ValidationRow::Holds::kUnknown
                     ? Json(nullptr)
                     : Json(row.holds == ValidationRow::Holds::kYes);
  return one;
}

std::string RowsText(const Rows& rows) {
  Table table({"id", "published", "emulated", "unit", "role", "holds", "quantity"}, "lrrllll");
  int held = 0, judged = 0;
  for (const ValidationRow& row : rows) {
    const bool known = row.holds != ValidationRow::Holds::kUnknown;
    const bool holds = row.holds == ValidationRow::Holds::kYes;
    judged += known;
    held += holds;
    table.Add({row.id, row.published.empty() ? "-" : row.published,
               fmt::format("{:.6g}", row.emulated), row.unit, RoleName(row.role),
               !known  ? "-"
               : holds ? "holds"
                       : "does not hold",
               row.quantity});
  }
  return table.ToString() +
         fmt::format("{} of {} rows with a published value hold\n", held, judged);
}

Outcome Validate(const ValidateArguments& a) {
  for (const Machine& machine : kMachines) {
    if (a.machine != machine.name) continue;
    const absl::StatusOr<Rows> rows = machine.validate(a.only);
    if (!rows.ok()) return FromStatus(rows.status());
    if (rows->empty()) {
      return Outcome::Fail(ExitCode::kBadInput,
                           fmt::format("no row of {} begins with \"{}\"", a.machine, a.only));
    }
    if (IsJson(a.format)) {
      Json list = Json::array();
      for (const ValidationRow& row : *rows) list.push_back(RowJson(row));
      fmt::print("{}\n", Json{{"machine", machine.name}, {"rows", std::move(list)}}.dump(2));
    } else {
      fmt::print("{}", RowsText(*rows));
    }
    return Outcome::Ok();
  }
  return Outcome::Fail(ExitCode::kUsage, fmt::format("unknown machine '{}'", a.machine));
}

}  // namespace

CommandBody AddValidate(CLI::App& app) {
  auto a = std::make_shared<ValidateArguments>();
  std::vector<std::string> names;
  for (const Machine& machine : kMachines) names.push_back(machine.name);
  app.add_option("MACHINE", a->machine, "Machine whose published figures are compared")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("--only", a->only, "Only rows whose id starts with this");
  AddFormatOption(app, a->format);
  return [a] { return Validate(*a); };
}

}  // namespace percs
