// What a report says about the measurement phase of a pattern, and about latencies.
#include "client/percsctl/format.h"
#include "client/percsctl/report.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Of what the receiving hubs of a measurement accepted.
std::string Fairness(const Measurement& m, const LoadPerHub& load) {
  if (m.receivers == 0) return "";
  const std::string received =
      ReportLine("fairness", fmt::format("{:.3f} (Jain), least accepted {} of {}", m.fairness,
                                         FormatRate(load.least_accepted),
                                         Counted(m.receivers, "receiving hub")));
  if (m.source_fairness == 0) return received;
  return received + ReportLine("", fmt::format("{:.3f} (Jain), least injected {} of {}",
                                               m.source_fairness, FormatRate(load.least_injected),
                                               Counted(m.senders, "sending hub")));
}

// With auto_warm_up.
std::string WarmUp(const Measurement& m) {
  if (m.unstable) {
    return ReportLine("warm-up",
                      "unstable: no steady part was found; lengthen `measure`, or the load is too "
                      "high");
  }
  if (m.warm_up == 0) return "";
  return ReportLine("warm-up", FormatShort(m.warm_up) + " left out, until the latency was steady");
}

// Of a pattern with a drain.
std::string Drained(const Measurement& m) {
  if (m.created == 0) return "";
  return ReportLine(
      "drained",
      m.undelivered == 0
          ? fmt::format("all {} packets of the measurement arrived", FormatCount(m.created))
          : fmt::format("{} of {} packets of the measurement did not arrive",
                        FormatCount(m.undelivered), FormatCount(m.created)));
}

// How well the mean latency is known, under the table of latencies.
std::string Confidence(const Measurement& m) {
  if (m.duration == 0 || !m.has_latency()) return "";
  if (m.latency.half_width_ps < 0)
    return "the mean has no confidence interval: a tenth of the measurement has no packet\n";
  return fmt::format("mean of packets +- {} (95 %, ten batches){}\n",
                     FormatShort(static_cast<Time>(m.latency.half_width_ps)),
                     m.latency.steady ? ""
                                      : "; it still changes: not steady, lengthen `warm_up`, or "
                                        "the load is near saturation");
}

// `trouble`: why there is no latency.
void AddLatency(Table& table, const char* name, const Histogram& h, const char* trouble) {
  if (h.count == 0 || trouble)
    return table.Add({name, trouble ? trouble : "-", "-", "-", "-", FormatCount(h.count)});
  table.Add({name, FormatShort(static_cast<Time>(h.Mean())),
             FormatShort(static_cast<Time>(h.Quantile(0.5))),
             FormatShort(static_cast<Time>(h.Quantile(0.99))),
             FormatShort(static_cast<Time>(h.max)), FormatCount(h.count)});
}

// Packets by where they went and over how many links, if they did not all do the same.
std::string PathsText(const PathLatencies& paths) {
  Table table({"path", "links", "mean (virtual)", "max (virtual)", "packets"});
  int rows = 0;
  for (std::uint8_t path = 0; path < PathLatencies::kClasses; ++path) {
    for (std::size_t hops = 0; hops < PathLatencies::kHops; ++hops) {
      const PathLatencies::Cell& cell = paths.cells[path][hops];
      if (cell.count == 0) continue;
      ++rows;
      table.Add({PathLatencies::ClassText(static_cast<PathLatencies::Class>(path)),
                 fmt::format("{}{}", hops, hops + 1 == PathLatencies::kHops ? " or more" : ""),
                 FormatShort(static_cast<Time>(cell.sum_ps / cell.count)),
                 FormatShort(static_cast<Time>(cell.max_ps)), FormatCount(cell.count)});
    }
  }
  return rows < 2 ? "" : "\n" + table.ToString();
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
         WarmUp(r.measurement) + Drained(r.measurement) + Fairness(r.measurement, load);
}

std::string LatencyText(const NodeStats& s, const Measurement& measurement) {
  const char* const trouble = measurement.saturated  ? "saturated"
                              : measurement.unstable ? "unstable"
                                                     : nullptr;
  Table table({"latency (virtual)", "mean", "p50", "p99", "max", "count"});
  AddLatency(table, "packet", s.packet_latency, trouble);
  if (s.messages_sent > 0) AddLatency(table, "message", s.message_latency, trouble);
  return "\n" + table.ToString() + Confidence(measurement) +
         (trouble ? "" : PathsText(measurement.paths));
}

}  // namespace percs
