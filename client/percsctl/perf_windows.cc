#include "client/percsctl/perf_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/lib/scenario_file.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/sizes.h"
#include "emulator/experiments/window_perf.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLongMessage = 64 * 1024;  // a fifth of the iterations is enough for these

struct PingArguments {
  std::string from, to, scenario, mode = "immediate", interval = "10us", format;
  std::vector<std::string> settings;
  std::uint64_t count = 4;
  std::string bytes = "64";
};

struct Pair {
  Scenario machine;
  NodeId from = 0, to = 0;
};

// The machine of a scenario file without its workload, or two supernodes with the defaults.
absl::StatusOr<Pair> Find(const std::string& file, const std::vector<std::string>& settings,
                          const std::string& from, const std::string& to) {
  Pair pair;
  if (!file.empty()) {
    auto input = LoadScenario(file, settings, std::nullopt);
    if (!input.ok()) return input.status();
    pair.machine = std::move(input->scenario);
    pair.machine.stop_at = 0;
    pair.machine.service = {};
  } else if (!settings.empty()) {
    return absl::InvalidArgumentError("--set changes a scenario; name its file with --scenario");
  } else {
    pair.machine.topology.supernodes = 2;
    pair.machine.topology.drawers = 4;
    pair.machine.topology.hubs = 8;
  }
  const auto topology = Topology::Create(pair.machine.topology);
  if (!topology.ok()) return topology.status();
  for (const auto& [name, node] : {std::pair(&from, &pair.from), std::pair(&to, &pair.to)}) {
    const auto found = topology->ParseNode(*name);
    if (!found.ok()) return found.status();
    *node = *found;
  }
  return pair;
}

absl::StatusOr<PerfFormat> PerfFormatOf(const std::string& mode) {
  for (int i = 0; i < kPerfFormats; ++i) {
    if (mode == PerfFormatName(static_cast<PerfFormat>(i))) return static_cast<PerfFormat>(i);
  }
  return absl::InvalidArgumentError(
      fmt::format("no packet format \"{}\"; formats: immediate, fifo, rdma", mode));
}

double Microseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kMicrosecond);
}

// In the columns that readers of the OSU micro-benchmarks know, one table per test.
std::string OsuTables(const std::vector<PerfPoint>& points, const std::string& mode) {
  std::string text;
  const auto table = [&](const char* title, const char* unit, auto value) {
    text += fmt::format("# PERCS {} {} Test, columns as osu_*\n# {:<8}{:>18}\n", mode, title,
                        "Size", unit);
    for (const PerfPoint& p : points) text += fmt::format("{:<10}{:>18.2f}\n", p.bytes, value(p));
    text += "\n";
  };
  table("Latency", "Latency (us)", [](const PerfPoint& p) { return Microseconds(p.latency); });
  table("Bandwidth", "Bandwidth (MB/s)", [](const PerfPoint& p) { return p.bandwidth / 1e6; });
  table("Bi-Directional Bandwidth", "Bandwidth (MB/s)",
        [](const PerfPoint& p) { return p.bidirectional / 1e6; });
  table("Message Rate", "Messages/s", [](const PerfPoint& p) { return p.rate; });
  text.pop_back();
  return text;
}

// In those of the Intel MPI benchmarks: a PingPong, then a Sendrecv-like line of both ways at once.
std::string ImbTables(const std::vector<PerfPoint>& points, const std::string& mode,
                      std::uint64_t iterations) {
  std::string text = fmt::format(
      "#---------------------------------------------------\n# Benchmarking PingPong, PERCS {}, "
      "columns as IMB\n"
      "# #processes = 2\n#---------------------------------------------------\n"
      "{:>13} {:>13} {:>13} {:>13}\n",
      mode, "#bytes", "#repetitions", "t[usec]", "Mbytes/sec");
  for (const PerfPoint& p : points) {
    const double t = Microseconds(p.latency);
    text += fmt::format("{:>13} {:>13} {:>13.2f} {:>13.2f}\n", p.bytes, iterations, t,
                        static_cast<double>(p.bytes) / t);
  }
  text += fmt::format(
      "\n#---------------------------------------------------\n# Benchmarking Uniband and Biband, "
      "PERCS {}\n"
      "#---------------------------------------------------\n{:>13} {:>13} {:>13} {:>13}\n",
      mode, "#bytes", "Mbytes/sec", "both ways", "Msg/sec");
  for (const PerfPoint& p : points) {
    text += fmt::format("{:>13} {:>13.2f} {:>13.2f} {:>13.0f}\n", p.bytes, p.bandwidth / 1e6,
                        p.bidirectional / 1e6, p.rate);
  }
  return text;
}

std::string PlainTable(const std::vector<PerfPoint>& points) {
  Table table({"bytes", "latency", "bandwidth", "both ways", "messages/s"}, "r");
  for (const PerfPoint& p : points) {
    table.Add({FormatCount(p.bytes), FormatVirtual(p.latency), FormatRate(p.bandwidth),
               FormatRate(p.bidirectional), FormatCount(static_cast<std::uint64_t>(p.rate))});
  }
  return table.ToString();
}

Json ToJson(const PerfPoint& p) {
  return {{"bytes", p.bytes},
          {"latency_ps", p.latency},
          {"latency_min_ps", p.latency_min},
          {"latency_max_ps", p.latency_max},
          {"bytes_per_second", p.bandwidth},
          {"bidirectional_bytes_per_second", p.bidirectional},
          {"messages_per_second", p.rate}};
}

Outcome Ping(const PingArguments& a) {
  const auto pair = Find(a.scenario, a.settings, a.from, a.to);
  if (!pair.ok()) return FromStatus(pair.status());
  const auto format = PerfFormatOf(a.mode);
  if (!format.ok()) return FromStatus(format.status());
  const auto interval = ParseQuantity(Quantity::kTime, a.interval);
  if (!interval.ok()) return FromStatus(interval.status());
  const auto sizes = ParseSizes({a.bytes});
  if (!sizes.ok()) return FromStatus(sizes.status());
  if (sizes->size() != 1)
    return Outcome::Fail(ExitCode::kUsage, "a ping has one size; write for example --bytes 64");
  const std::uint64_t bytes = sizes->front();
  const auto trips =
      PingWindows(pair->machine, pair->from, pair->to, bytes, a.count, *interval, *format);
  if (!trips.ok()) return FromStatus(trips.status());
  const auto [low, high] = std::minmax_element(trips->begin(), trips->end());
  Time sum = 0;
  for (const Time trip : *trips) sum += trip;
  const Time mean = sum / static_cast<Time>(trips->size());
  if (IsJson(a.format)) {
    fmt::print("{}\n", Json{{"from", a.from},
                            {"to", a.to},
                            {"bytes", bytes},
                            {"round_trips_ps", *trips},
                            {"min_ps", *low},
                            {"mean_ps", mean},
                            {"max_ps", *high}}
                           .dump(2));
    return Outcome::Ok();
  }
  fmt::print("PING {} from {}: {} bytes by {}\n", a.to, a.from, bytes, a.mode);
  for (std::size_t i = 0; i < trips->size(); ++i) {
    fmt::print("{} bytes from {}: seq={} time={}\n", bytes, a.to, i + 1,
               FormatVirtual((*trips)[i]));
  }
  fmt::print("{} round trips, min/avg/max = {}/{}/{}\n", trips->size(), FormatShort(*low),
             FormatShort(mean), FormatVirtual(*high));
  return Outcome::Ok();
}

}  // namespace

bool IsHubName(const std::string& name) { return name.rfind("sn", 0) == 0; }

Outcome PerfWindows(const WindowPerfArguments& a) {
  const auto pair = Find(a.scenario, a.settings, a.from, a.to);
  if (!pair.ok()) return FromStatus(pair.status());
  const auto format = PerfFormatOf(a.mode);
  if (!format.ok()) return FromStatus(format.status());
  std::vector<std::uint64_t> sizes(a.bytes.begin(), a.bytes.end());
  for (std::uint64_t size = 1; a.bytes.empty() && size <= PerfBytesMax(*format); size *= 2)
    sizes.push_back(size);
  std::vector<PerfPoint> points;
  for (const std::uint64_t size : sizes) {
    PerfOptions options;
    options.format = *format;
    options.iterations =
        size >= kLongMessage ? std::max<std::uint64_t>(a.iterations / 5, 1) : a.iterations;
    const auto point = MeasurePoint(pair->machine, pair->from, pair->to, size, options);
    if (!point.ok()) return FromStatus(point.status());
    points.push_back(*point);
  }
  if (IsJson(a.format)) {
    Json list = Json::array();
    for (const PerfPoint& p : points) list.push_back(ToJson(p));
    fmt::print(
        "{}\n",
        Json{{"from", a.from}, {"to", a.to}, {"mode", a.mode}, {"sizes", std::move(list)}}.dump(2));
  } else if (a.format == "osu") {
    fmt::print("{}", OsuTables(points, a.mode));
  } else if (a.format == "imb") {
    fmt::print("{}", ImbTables(points, a.mode, a.iterations));
  } else {
    fmt::print("{} to {} by {}\n{}", a.from, a.to, a.mode, PlainTable(points));
  }
  return Outcome::Ok();
}

CommandBody AddPing(CLI::App& app) {
  auto a = std::make_shared<PingArguments>();
  app.add_option("FROM", a->from, "A hub: sn0-d0-h0")->required();
  app.add_option("TO", a->to, "The other hub")->required();
  app.add_option("-c,--count", a->count, "Round trips")->capture_default_str();
  app.add_option("--bytes", a->bytes, "Bytes of each packet")->capture_default_str();
  app.add_option("--interval", a->interval, "Virtual time between round trips")
      ->capture_default_str();
  app.add_option("--mode", a->mode, "Packet format: immediate, fifo, rdma")->capture_default_str();
  app.add_option("--scenario", a->scenario,
                 "Scenario file that defines the machine (default: two supernodes)");
  app.add_option("--set", a->settings, "Change a field of the scenario: path=value");
  AddFormatOption(app, a->format);
  return [a] { return Ping(*a); };
}

}  // namespace percs
