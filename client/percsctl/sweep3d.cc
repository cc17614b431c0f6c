// percsctl sweep3d: weak scaling of Sweep3D on Roadrunner, in the timing form.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "emulator/experiments/roadrunner_validation.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct Sweep3dArguments {
  std::vector<int> cus;
  int k_block = 20, angle_block = 3;
  bool progress = false;
  std::string format;
};

Outcome Sweep3d(const Sweep3dArguments& a) {
  Table table(
      {"CUs", "SPEs", "grid", "time", "ideal network", "computation", "efficiency", "messages"},
      "rrlrrrrr");
  Json list = Json::array();
  ProgressLine progress(a.progress);
  const double all = std::accumulate(a.cus.begin(), a.cus.end(), 0.0);  // time goes by ranks
  double done = 0;
  for (const int cus : a.cus) {
    const auto point = roadrunner::MeasureScaling(
        roadrunner::DefaultParameters(), cus, a.k_block, a.angle_block, [&](double share) {
          progress.Show(
              fmt::format("Sweep3D on {}", Counted(static_cast<std::uint64_t>(cus), "CU")),
              (done + share * cus) / all);
        });
    done += cus;
    if (!point.ok()) return FromStatus(point.status());
    const roadrunner::SweepTimingResult& real = point->real;
    const std::string grid = fmt::format("{} x {}", real.grid.px, real.grid.py);
    table.Add({fmt::format("{}", cus), FormatCount(static_cast<std::uint64_t>(real.ranks)), grid,
               FormatShort(real.time), FormatShort(point->ideal.time),
               FormatShort(real.computation), FormatPercent(point->efficiency()),
               FormatCount(real.messages)});
    list.push_back({{"cus", cus},
                    {"k_block", a.k_block},
                    {"angle_block", a.angle_block},
                    {"ranks", real.ranks},
                    {"grid", grid},
                    {"time_ps", real.time},
                    {"ideal_time_ps", point->ideal.time},
                    {"computation_ps", real.computation},
                    {"efficiency", point->efficiency()},
                    {"messages", real.messages},
                    {"far_messages", real.far_messages},
                    {"network_messages", real.network_messages},
                    {"events", real.events},
                    {"digest", real.digest.ToString()}});
  }
  progress.Clear();
  if (IsJson(a.format)) {
    fmt::print("{}\n", Json{{"points", std::move(list)}}.dump(2));
  } else {
    fmt::print("Sweep3D, 5 x 5 x 400 cells per SPE, one iteration; times are virtual\n{}",
               table.ToString());
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddSweep3d(CLI::App& app) {
  auto a = std::make_shared<Sweep3dArguments>();
  a->cus = {1};
  app.add_option("--cus", a->cus, "Compute units of 180 triblades, 1 to 24, several with commas")
      ->delimiter(',')
      ->check(CLI::Range(1, roadrunner::kCusMax))
      ->capture_default_str();
  app.add_option("--k-block", a->k_block, "Planes of a block; a divisor of 400")
      ->capture_default_str();
  app.add_option("--angle-block", a->angle_block, "Angles of a block; a divisor of 6")
      ->capture_default_str();
  AddProgressOption(app, a->progress);
  AddFormatOption(app, a->format);
  return [a] { return Sweep3d(*a); };
}

}  // namespace percs
