#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "client/percsctl/gnuplot.h"
#include "client/percsctl/sweep.h"

namespace percs {
namespace {

struct Panel {
  const char *column, *title;
};
constexpr Panel kPanels[] = {{"packet_latency_mean_ns", "packet latency, mean (ns)"},
                             {"packet_latency_p99_ns", "packet latency, 99th percentile (ns)"},
                             {"accepted_GB_per_s_per_hub", "accepted load (GB/s per hub)"},
                             {"delivered_GB_per_s", "delivered (GB/s, whole machine)"},
                             {"LR_utilisation_max", "busiest LR link (share of time)"},
                             {"D_utilisation_max", "busiest D link (share of time)"},
                             {"collective_mean_ns", "collective, mean time of a call (ns)"}};
constexpr const char* kOffered = "offered_GB_per_s_per_hub";

using Curve = std::map<double, std::vector<double>>;  // values of the repetitions, by x

bool HasNumbers(const std::vector<SweepRow>& rows, const std::string& column) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SweepRow& row) { return row.at(column).is_number(); });
}

// The axis that the curves are over: that of the load, or the first of numbers only.
std::optional<std::string> CurvesOver(const std::vector<SweepAxis>& axes,
                                      const std::vector<SweepRow>& rows) {
  std::optional<std::string> first;
  for (const SweepAxis& axis : axes) {
    const bool numbers = std::all_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
      return row.at(axis.key).is_number();
    });
    if (numbers && (axis.key.ends_with(".load") || axis.key == "load")) return axis.key;
    if (numbers && !first) first = axis.key;
  }
  return first;
}

std::string NameOf(const std::vector<SweepAxis>& axes, const std::string& over,
                   const SweepRow& row) {
  std::string name;
  for (const SweepAxis& axis : axes) {
    if (axis.key == over) continue;
    const SweepRow& value = row.at(axis.key);
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::string last = axis.key.substr(axis.key.rfind('.') + 1);
    name +=
        (name.empty() ? "" : ", ") + (value.is_string() ? text : fmt::format("{} {}", last, text));
  }
  return name;
}

// Curves of one panel as blocks of data: x, mean of the repetitions.
std::string PanelScript(const Panel& panel, std::size_t number, const std::string& x_title,
                        const std::vector<std::pair<std::string, Curve>>& curves) {
  std::string text = fmt::format("$panel{} << EOD\n", number), plots;
  std::size_t index = 0;
  for (const auto& [name, curve] : curves) {
    for (const auto& [x, values] : curve) {
      double sum = 0;
      for (const double value : values) sum += value;
      text += fmt::format("{} {}\n", x, sum / static_cast<double>(values.size()));
    }
    text += "\n\n";
    plots += fmt::format(
        "{}$panel{} index {} using 1:2 with linespoints pointtype 7 pointsize 0.5 "
        "linecolor {} title {}",
        plots.empty() ? "" : ", ", number, index, index + 1, PlotText(name));
    ++index;
  }
  return text + fmt::format("EOD\nset title {}\nset xlabel {} offset 0,0.7\nplot {}\n",
                            PlotText(panel.title), PlotText(x_title), plots);
}

absl::StatusOr<std::string> Script(const std::vector<SweepAxis>& axes,
                                   const std::vector<SweepRow>& rows, const std::string& over,
                                   const std::string& path) {
  const bool load = over.ends_with("load") && HasNumbers(rows, kOffered);
  const std::string x_column = load ? kOffered : over;
  std::vector<std::string> names;  // in the order of the grid
  for (const SweepRow& row : rows) {
    const std::string name = NameOf(axes, over, row);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string panels;
  std::size_t count = 0;
  for (const Panel& panel : kPanels) {
    std::vector<std::pair<std::string, Curve>> curves;
    for (const std::string& name : names) {
      Curve curve;
      // The measured load differs a little between repetitions: they share the axis' value.
      std::map<double, std::pair<double, int>> places;
      for (const SweepRow& row : rows) {
        if (NameOf(axes, over, row) != name || !row.at(x_column).is_number()) continue;
        auto& [sum, n] = places[row.at(over).get<double>()];
        sum += row.at(x_column).get<double>(), ++n;
      }
      for (const SweepRow& row : rows) {
        if (NameOf(axes, over, row) != name || !row.at(panel.column).is_number()) continue;
        const auto place = places.find(row.at(over).get<double>());
        if (place == places.end()) continue;
        curve[place->second.first / place->second.second].push_back(
            row.at(panel.column).get<double>());
      }
      if (!curve.empty()) curves.emplace_back(name, std::move(curve));
    }
    if (curves.empty()) continue;
    panels += PanelScript(panel, count++, load ? "offered load (GB/s per hub)" : over, curves);
  }
  const std::size_t columns = count > 1 ? 2 : 1, lines = (count + columns - 1) / columns;
  const auto terminal = PlotTerminal(path, 480 * columns, 370 * lines + 30);
  if (!terminal.ok()) return terminal.status();
  return *terminal +
         fmt::format(
             "set grid linecolor '#dddddd'\nset key below horizontal\nset yrange [0:*]\n"
             "set offsets graph 0.02, graph 0.02, graph 0.05, 0\n"
             "set multiplot layout {},{} title {}\n",
             lines, columns, PlotText("latency of saturated points is left out")) +
         panels + "unset multiplot\n";
}

}  // namespace

absl::Status PlotSweep(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows,
                       const std::string& path) {
  const auto over = CurvesOver(axes, rows);
  if (!over) {
    return absl::InvalidArgumentError(
        "--plot needs an axis whose values are all plain numbers, like workload.pattern.load");
  }
  const auto script = Script(axes, rows, *over, path);
  return script.ok() ? RunGnuplot(*script) : script.status();
}

}  // namespace percs
