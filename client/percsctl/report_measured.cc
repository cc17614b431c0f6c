// What a report says about the measurement phase of a pattern, and about latencies.
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Of what the receiving hubs of a measurement accepted.
std::string Fairness(const Measurement& m, const LoadPerHub& load) {
  if (m.receivers == 0) return "";
  return ReportLine("fairness", fmt::format("{:.3f} (Jain), least accepted {} of {}", m.fairness,
                                            FormatRate(load.least_accepted),
                                            Counted(m.receivers, "receiving hub")));
}

// How well the mean latency is known, under the table of latencies.
std::string Confidence(const Measurement& m) {
  if (m.duration == 0 || m.saturated) return "";
  if (m.latency.half_width_ps < 0)
    return "the mean has no confidence interval: a tenth of the measurement has no packet\n";
  return fmt::format("mean of packets +- {} (95 %, ten batches){}\n",
                     FormatShort(static_cast<Time>(m.latency.half_width_ps)),
                     m.latency.steady ? ""
                                      : "; it still changes: not steady, lengthen `warm_up`, or "
                                        "the load is near saturation");
}

void AddLatency(Table& table, const char* name, const Histogram& h, bool saturated) {
  if (h.count == 0 || saturated) {
    return table.Add({name, saturated ? "saturated" : "-", "-", "-", "-", FormatCount(h.count)});
  }
  table.Add({name, FormatShort(static_cast<Time>(h.Mean())),
             FormatShort(static_cast<Time>(h.Quantile(0.5))),
             FormatShort(static_cast<Time>(h.Quantile(0.99))),
             FormatShort(static_cast<Time>(h.max)), FormatCount(h.count)});
}

}  // namespace

std::string MeasuredText(const RunResult& r) {
  const NodeStats& s = r.total;
  if (s.measured_bytes_offered == 0) return "";
  const LoadPerHub load = LoadOf(r);
  return ReportLine(
             "measured",
             fmt::format("{} accepted of {} offered ({})", FormatBytes(s.measured_bytes_accepted),
                         FormatBytes(s.measured_bytes_offered),
                         FormatPercent(static_cast<double>(s.measured_bytes_accepted) /
                                       static_cast<double>(s.measured_bytes_offered)))) +
         ReportLine("load", fmt::format("{} accepted of {} offered per sending hub ({}){}",
                                        FormatRate(load.accepted), FormatRate(load.offered),
                                        Counted(r.measurement.senders, "hub"),
                                        r.measurement.saturated ? ": saturated" : "")) +
         Fairness(r.measurement, load);
}

std::string LatencyText(const NodeStats& s, const Measurement& measurement) {
  const bool saturated = measurement.saturated;
  Table table({"latency (virtual)", "mean", "p50", "p99", "max", "count"});
  AddLatency(table, "packet", s.packet_latency, saturated);
  if (s.messages_sent > 0) AddLatency(table, "message", s.message_latency, saturated);
  return "\n" + table.ToString() + Confidence(measurement);
}

}  // namespace percs
