// percsctl perf: messages of CML between any two SPEs of Roadrunner, or between windows of two
// hubs.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/perf_windows.h"
#include "client/percsctl/sizes.h"
#include "emulator/experiments/roadrunner_perf.h"

namespace percs {
namespace {

using Json = nlohmann::json;

struct PerfArguments {
  std::string from, to, protocol = "receiver", format = "human";
  std::vector<std::string> bytes;
  int round_trips = 8;
  WindowPerfArguments windows;
};

// A rank's number, or `triblade3:spe17`.
absl::StatusOr<roadrunner::Rank> ParseSpe(const std::string& name) {
  int rank = 0, triblade = 0, spe = 0;
  if (absl::SimpleAtoi(name, &rank) && rank >= 0) return rank;
  const std::size_t colon = name.find(":spe");
  if (name.rfind("triblade", 0) == 0 && colon != std::string::npos &&
      absl::SimpleAtoi(name.substr(8, colon - 8), &triblade) &&
      absl::SimpleAtoi(name.substr(colon + 4), &spe) && triblade >= 0 &&
      triblade < roadrunner::kTribladesPerCu * roadrunner::kCusMax && spe >= 0 &&
      spe < roadrunner::kSpesPerTriblade) {
    return triblade * roadrunner::kSpesPerTriblade + spe;
  }
  return absl::InvalidArgumentError(
      fmt::format("no SPE '{}'; SPEs are named like triblade0:spe31, or by MPI rank", name));
}

Outcome Perf(const PerfArguments& a) {
  auto sizes = ParseSizes(a.bytes);
  if (!sizes.ok()) return FromStatus(sizes.status());
  if (IsHubName(a.from) || IsHubName(a.to)) {
    WindowPerfArguments windows = a.windows;
    windows.from = a.from;
    windows.to = a.to;
    windows.bytes = *sizes;
    windows.format = a.format;
    return PerfWindows(windows);
  }
  if (a.format == "osu" || a.format == "imb") {
    return Outcome::Fail(ExitCode::kUsage, "between SPEs --format is human or json");
  }
  const auto from = ParseSpe(a.from), to = ParseSpe(a.to);
  if (!from.ok()) return FromStatus(from.status());
  if (!to.ok()) return FromStatus(to.status());
  for (std::uint32_t size = 1; a.bytes.empty() && size <= roadrunner::kPerfBytesMax; size *= 2) {
    sizes->push_back(size);
  }
  for (const std::uint64_t size : *sizes) {
    if (size <= roadrunner::kPerfBytesMax) continue;
    return FromStatus(absl::InvalidArgumentError(fmt::format(
        "a message of {} bytes between SPEs; at most {}", size, roadrunner::kPerfBytesMax)));
  }
  const auto protocol = a.protocol == "sender" ? roadrunner::Protocol::kSenderInitiated
                                               : roadrunner::Protocol::kReceiverInitiated;
  Table table({"bytes", "half round trip", "GB/s"}, "rrr");
  Json list = Json::array();
  roadrunner::PerfResult last;
  for (const std::uint64_t size : *sizes) {
    const auto result =
        roadrunner::MeasurePerf(roadrunner::DefaultParameters(), *from, *to,
                                static_cast<std::uint32_t>(size), a.round_trips, protocol);
    if (!result.ok()) return FromStatus(result.status());
    last = *result;
    table.Add({FormatCount(size), FormatVirtual(last.half_round_trip),
               fmt::format("{:.3f}", last.gigabytes_per_second)});
    list.push_back({{"bytes", size},
                    {"half_round_trip_ps", last.half_round_trip},
                    {"gigabytes_per_second", last.gigabytes_per_second},
                    {"digest", last.digest.ToString()}});
  }
  const char* const distance = roadrunner::DistanceName(last.distance);
  if (IsJson(a.format)) {
    fmt::print("{}\n", Json{{"from", *from},
                            {"to", *to},
                            {"distance", distance},
                            {"crossbars", last.crossbars},
                            {"sizes", std::move(list)}}
                           .dump(2));
  } else {
    fmt::print("SPE {} to SPE {}, {}{}\n{}", *from, *to, distance,
               last.crossbars > 0 ? fmt::format(" ({} crossbars)", last.crossbars) : "",
               table.ToString());
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddPerf(CLI::App& app) {
  auto a = std::make_shared<PerfArguments>();
  app.add_option("FROM", a->from, "A hub: sn0-d0-h0; or an SPE: triblade0:spe0, or its MPI rank")
      ->required();
  app.add_option("TO", a->to, "The other hub or SPE")->required();
  app.add_option("--bytes", a->bytes,
                 "Sizes: 8,1KiB,64KiB; between SPEs at most 128KiB (default: powers of two up to "
                 "the largest allowed)")
      ->delimiter(',');
  app.add_option("--round-trips", a->round_trips, "Iterations per size, after one warm-up")
      ->capture_default_str();
  app.add_option("--protocol", a->protocol, "Within one memory, which side starts a transfer")
      ->check(CLI::IsMember({"receiver", "sender"}))
      ->capture_default_str();
  app.add_option("--mode", a->windows.mode, "Between hubs, packet format: immediate, fifo, rdma")
      ->capture_default_str();
  app.add_option("--iterations", a->windows.iterations,
                 "Between hubs, iterations of each loop; a fifth of them from 64 KiB on")
      ->capture_default_str();
  app.add_option("--scenario", a->windows.scenario,
                 "Between hubs: scenario file that defines the machine (default: two supernodes)");
  app.add_option("--set", a->windows.settings,
                 "Between hubs: change a field of the scenario: path=value");
  app.add_option("--format", a->format, "human or table, json; between hubs also osu and imb")
      ->check(CLI::IsMember({"human", "table", "json", "osu", "imb"}))
      ->capture_default_str();
  return [a] { return Perf(*a); };
}

}  // namespace percs
