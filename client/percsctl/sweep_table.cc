#include <fmt/format.h>

#include <cmath>

#include "absl/strings/numbers.h"
#include "client/percsctl/report.h"
#include "client/percsctl/sweep.h"

namespace percs {
namespace {

constexpr LinkClass kClasses[] = {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kHfi};

SweepRow Null() { return nullptr; }
SweepRow OrNull(bool known, double value) { return known ? SweepRow(value) : Null(); }

// In nanoseconds. Nothing of no arrivals, and nothing of a saturated or unstable network, whose
// latency says how long was measured.
void AddLatency(const char* of, const Histogram& h, bool unknown, SweepRow& row) {
  const bool known = h.count > 0 && !unknown;
  const auto add = [&](const char* what, double picoseconds) {
    row[fmt::format("{}_latency_{}_ns", of, what)] = OrNull(known, picoseconds / kNanosecond);
  };
  add("mean", known ? h.Mean() : 0);
  add("p50", known ? static_cast<double>(h.Quantile(0.5)) : 0);
  add("p99", known ? static_cast<double>(h.Quantile(0.99)) : 0);
  add("max", static_cast<double>(h.max));
}

// A value of an axis: a number where it is one.
SweepRow Value(const std::string& text) {
  std::int64_t whole = 0;
  double number = 0;
  if (absl::SimpleAtoi(text, &whole)) return whole;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

std::string CsvQuoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvCell(const SweepRow& value) {
  if (value.is_null()) return "";
  return value.is_string() ? CsvQuoted(value.get<std::string>()) : value.dump();
}

}  // namespace

SweepRow SweepMeasures(const RunResult& r) {
  const NodeStats& s = r.total;
  const double seconds = static_cast<double>(r.virtual_time) / static_cast<double>(kSecond);
  const bool measured = r.measurement.duration > 0;
  const LoadPerHub load = LoadOf(r);
  constexpr double kGiga = 1e9;
  SweepRow row;
  row["digest"] = r.digest.ToString();
  row["saturated"] = measured ? SweepRow(r.measurement.saturated) : Null();
  row["virtual_time_us"] = static_cast<double>(r.virtual_time) / kMicrosecond;
  row["nodes"] = r.nodes;
  row["packets_created"] = s.packets_created;
  row["packets_delivered"] = s.packets_delivered;
  row["packets_dropped"] = PacketsDropped(s);
  row["packets_resent"] = s.packets_resent;
  row["messages_failed"] = s.messages_failed;
  row["delivered_bytes"] = s.bytes_delivered;
  row["delivered_GB_per_s"] =
      OrNull(seconds > 0, static_cast<double>(s.bytes_delivered) / seconds / kGiga);
  row["offered_GB_per_s_per_hub"] = OrNull(measured, load.offered / kGiga);
  row["accepted_GB_per_s_per_hub"] = OrNull(measured, load.accepted / kGiga);
  AddLatency("packet", s.packet_latency, !r.measurement.has_latency(), row);
  AddLatency("message", s.message_latency, !r.measurement.has_latency(), row);
  row["hops_mean"] = OrNull(s.packets_delivered > 0, static_cast<double>(s.hops_delivered) /
                                                         static_cast<double>(s.packets_delivered));
  for (const LinkClass c : kClasses) {
    const auto i = static_cast<std::size_t>(c);
    row[fmt::format("{}_utilisation_mean", ClassName(c))] =
        OrNull(r.links[i] > 0, r.utilisation_mean[i]);
    row[fmt::format("{}_utilisation_max", ClassName(c))] =
        OrNull(r.links[i] > 0, r.utilisation_max[i]);
  }
  const CollectiveResult& c = r.collective;
  const auto per_call = [&c](Time total) {
    return OrNull(!c.empty(), static_cast<double>(total) /
                                  static_cast<double>(std::max<std::uint64_t>(c.iterations, 1)) /
                                  kNanosecond);
  };
  row["collective_mean_ns"] = c.empty() ? Null() : SweepRow(c.Nanoseconds());
  row["collective_fastest_ns"] = per_call(c.fastest);
  row["collective_slowest_ns"] = per_call(c.slowest);
  row["reroutes"] = r.reroutes.size();
  row["violations"] = r.violations.size();
  const double half_width = r.measurement.latency.half_width_ps;
  row["packet_latency_half_width_ns"] =
      OrNull(measured && r.measurement.has_latency() && half_width >= 0, half_width / kNanosecond);
  row["steady"] = measured ? SweepRow(r.measurement.latency.steady) : Null();
  const bool judged = measured && r.measurement.receivers > 0;
  row["least_accepted_GB_per_s_per_hub"] = OrNull(judged, load.least_accepted / kGiga);
  row["fairness"] = OrNull(judged, r.measurement.fairness);
  const bool injected = r.measurement.source_fairness > 0;
  row["least_injected_GB_per_s_per_hub"] = OrNull(injected, load.least_injected / kGiga);
  row["source_fairness"] = OrNull(injected, r.measurement.source_fairness);
  row["unstable"] = measured ? SweepRow(r.measurement.unstable) : Null();
  row["error"] = nullptr;
  return row;
}

SweepRow SweepError(const std::string& error) {
  SweepRow row = SweepMeasures(RunResult());
  for (auto& [name, value] : row.items()) value = nullptr;
  row["error"] = error;
  return row;
}

SweepRow SweepTableRow(const std::vector<SweepAxis>& axes, const SweepPoint& point,
                       std::uint64_t seed, const SweepRow& measures) {
  SweepRow row;
  for (std::size_t i = 0; i < axes.size(); ++i) row[axes[i].key] = Value(point.values[i]);
  row["repeat"] = point.repeat;
  row["seed"] = seed;
  for (const auto& [name, value] : measures.items()) row[name] = value;
  return row;
}

std::string SweepCsv(const std::vector<SweepRow>& rows) {
  std::string text;
  if (rows.empty()) return text;
  for (const auto& [name, value] : rows[0].items())
    text += (text.empty() ? "" : ",") + CsvQuoted(name);
  text += "\n";
  for (const SweepRow& row : rows) {
    std::string line;
    for (const auto& [name, value] : row.items()) line += CsvCell(value) + ",";
    line.back() = '\n';
    text += line;
  }
  return text;
}

std::string SweepJsonLines(const std::vector<SweepRow>& rows) {
  std::string text;
  for (const SweepRow& row : rows) text += row.dump() + "\n";
  return text;
}

}  // namespace percs
