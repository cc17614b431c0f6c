// The pictures of percsctl plot as scripts for gnuplot.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "client/percsctl/gnuplot.h"
#include "client/percsctl/plot.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kCellsMax = 64;      // rows of a heat map
constexpr std::size_t kRowsLabelled = 40;  // of which each has its name beside it
constexpr std::size_t kLoadBins = 120;
constexpr std::size_t kRanksLabelled = 32;
constexpr double kFlitGigabytes = 128e-9;
constexpr const char* kGrid = "set grid linetype 1 linecolor '#dddddd'\n";

absl::Status Nothing(const PlotInput& input, const std::string& what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", input.source, what));
}

// The number at a path of keys, if there is one.
std::optional<double> Number(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &at->at(key);
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

const Json* List(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_array() && !it->empty() ? &*it : nullptr;
}

// --- Links

// "sn0-d1" of "sn0-d1-h3", "sn0" of "sn0-d1".
std::string Above(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  return dash == std::string::npos ? name : name.substr(0, dash);
}

struct Matrix {
  std::vector<std::string> names;
  std::map<std::pair<std::size_t, std::size_t>, double> load;
  std::vector<std::pair<std::size_t, std::size_t>> down;
};

// Of links whose nodes are named `levels` levels above themselves.
Matrix MatrixOf(const Json& links, int levels) {
  Matrix matrix;
  const auto name_of = [&](std::string name) {
    for (int i = 0; i < levels; ++i) name = Above(name);
    return name;
  };
  std::map<std::string, std::size_t> places;
  const auto place = [&](const std::string& name) {
    const auto [it, added] = places.emplace(name_of(name), matrix.names.size());
    if (added) matrix.names.push_back(it->first);
    return it->second;
  };
  for (const Json& link : links) {
    const std::string ends = link.value("ends", "");
    const std::size_t slash = ends.find('/');
    if (slash == std::string::npos) continue;
    const std::size_t a = place(ends.substr(0, slash)), b = place(ends.substr(slash + 1));
    double& there = matrix.load[{a, b}];
    there = std::max(there, Number(link, {"forward", "utilisation"}).value_or(0));
    double& back = matrix.load[{b, a}];
    back = std::max(back, Number(link, {"backward", "utilisation"}).value_or(0));
    if (!link.value("up", true)) matrix.down.insert(matrix.down.end(), {{a, b}, {b, a}});
  }
  return matrix;
}

std::string NameTics(const std::vector<std::string>& names, std::size_t every) {
  std::string tics;
  for (std::size_t i = 0; i < names.size(); i += every)
    tics += fmt::format("{}{} {}", tics.empty() ? "" : ", ", PlotText(names[i]), i);
  return tics;
}

std::string MatrixScript(const Matrix& m, const std::string& title) {
  std::string cells, down;
  for (const auto& [place, load] : m.load)
    cells += fmt::format("{} {} {:.4f}\n", place.second, place.first, 100 * load);
  for (const auto& [from, to] : m.down) down += fmt::format("{} {}\n", to, from);
  const std::size_t n = m.names.size(), every = (n + kRowsLabelled - 1) / kRowsLabelled;
  const std::string tics = NameTics(m.names, every);
  std::string script = fmt::format(
      "$cells << EOD\n{}EOD\nset title {}\nset xlabel 'to'\nset ylabel 'from'\n"
      "set xtics rotate by 90 right font ',9' ({})\nset ytics font ',9' ({})\n"
      "set xrange [-0.5:{}]\nset yrange [{}:-0.5]\nset size ratio 1\n"
      "set cblabel 'load, share of time (%)'\nset cbrange [0:*]\n"
      "set palette defined (0 '#f7fbff', 0.25 '#c6dbef', 0.5 '#6baed6', 0.75 '#2171b5', 1 "
      "'#08306b')\n"
      "set style fill solid noborder\nset tics nomirror out\nunset key\n",
      cells, PlotText(title), tics, tics, static_cast<double>(n) - 0.5,
      static_cast<double>(n) - 0.5);
  std::string plots = "plot $cells using 1:2:(0.5):(0.5):3 with boxxyerror linecolor palette";
  if (!down.empty()) {
    script =
        fmt::format("$down << EOD\n{}EOD\n", down) + script + "set key outside bottom center\n";
    plots +=
        " notitle, $down using 1:2 with points pointtype 2 pointsize 1 "
        "linecolor '#ff7f00' linewidth 2.5 title 'a link is down'";
  }
  return script + plots + "\n";
}

// --- Latency

struct Bucket {
  double from = 0, to = 0, count = 0;
};

std::vector<Bucket> BucketsOf(const Json& json) {
  std::vector<Bucket> buckets;
  if (json.contains("latency_ns")) {
    const Json packet = json["latency_ns"].value("packet", Json::object());
    for (const Json& b : packet.value("buckets", Json::array())) {
      buckets.push_back({Number(b, {"from"}).value_or(0), Number(b, {"to"}).value_or(0),
                         Number(b, {"count"}).value_or(0)});
    }
    return buckets;
  }
  // Of a trace: as narrow as those of a result, 8 for each power of two.
  std::map<int, double> counts;
  for (const Json& packet : json.value("packets", Json::array())) {
    const double created = Number(packet, {"created_ps"}).value_or(0);
    for (const Json& d : packet.value("deliveries", Json::array())) {
      const double ns = (Number(d, {"at_ps"}).value_or(0) - created) / 1000;
      if (ns > 0) ++counts[static_cast<int>(std::floor(8 * std::log2(ns)))];
    }
  }
  for (const auto& [bucket, count] : counts)
    buckets.push_back({std::exp2(bucket / 8.0), std::exp2((bucket + 1) / 8.0), count});
  return buckets;
}

// Corners of the steps: share of packets in each bucket, zero between them.
std::string StepsOf(const std::vector<Bucket>& buckets) {
  double sum = 0, end = -1;
  for (const Bucket& b : buckets) sum += b.count;
  std::string text;
  for (const Bucket& b : buckets) {
    if (b.from > end) {
      if (end >= 0) text += fmt::format("{} 0\n", end);
      text += fmt::format("{} 0\n", b.from);
    }
    text += fmt::format("{} {}\n{} {}\n", b.from, 100 * b.count / sum, b.to, 100 * b.count / sum);
    end = b.to;
  }
  return text + fmt::format("{} 0\n", end);
}

// --- Curves

struct CurvePanel {
  const char* title;
  std::initializer_list<const char*> path;
  double scale;
};
const CurvePanel kCurvePanels[] = {
    {"packet latency, mean (ns)", {"latency_ns", "packet", "mean"}, 1},
    {"packet latency, 99th percentile (ns)", {"latency_ns", "packet", "p99"}, 1},
    {"accepted load (GB/s per hub)", {"measured", "accepted_bytes_per_second_per_hub"}, 1e-9}};

// A single point is no curve, but is drawn as a point.
std::string CurvePanelScript(const CurvePanel& panel, const PlotInputs& inputs) {
  std::map<std::string, std::map<double, double>> curves;
  std::vector<std::string> order;
  for (const PlotInput& input : inputs) {
    const auto x = Number(input.json, {"measured", "offered_bytes_per_second_per_hub"});
    const Json* at = &input.json;
    for (const char* key : panel.path) at = at->contains(key) ? &at->at(key) : &input.json;
    if (!curves.contains(input.title)) order.push_back(input.title);
    auto& curve = curves[input.title];
    if (x && at->is_number()) curve[*x * 1e-9] = at->get<double>() * panel.scale;
  }
  std::string data = "$curves << EOD\n", plots;
  bool empty = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    empty = empty && curves[order[i]].empty();
    for (const auto& [x, y] : curves[order[i]]) data += fmt::format("{} {}\n", x, y);
    data += "\n\n";
    if (curves[order[i]].empty()) data += "NaN NaN\n\n\n";
    plots += fmt::format(
        "{}$curves index {} using 1:2 with linespoints pointtype 7 pointsize 0.6 "
        "linecolor {} title {}",
        plots.empty() ? "plot " : ", ", i, i + 1, PlotText(order[i]));
  }
  // gnuplot finds no range without a point.
  return data + fmt::format("EOD\nset title {}\n{}\n{}\n", PlotText(panel.title),
                            empty ? "set yrange [0:1]\nset label 1 'every point is saturated' at "
                                    "graph 0.5, graph 0.5 center"
                                  : "set yrange [0:*]\nunset label 1",
                            plots);
}

// --- Load over time

std::string ClassOfOutput(const std::string& output) {
  std::size_t letters = 0;
  while (letters < output.size() && std::isalpha(static_cast<unsigned char>(output[letters])))
    ++letters;
  return output.substr(0, letters);
}

struct Sent {
  double at = 0, until = 0, flits = 0;
};

std::map<std::string, std::vector<Sent>> SentByClass(const Json& packets, double* begin,
                                                     double* end) {
  std::map<std::string, std::vector<Sent>> sent;
  for (const Json& packet : packets) {
    for (const Json& hop : packet.value("hops", Json::array())) {
      for (const Json& g : hop.value("grants", Json::array())) {
        const Sent s{Number(g, {"at_ps"}).value_or(0), Number(g, {"until_ps"}).value_or(0),
                     Number(g, {"flits"}).value_or(0)};
        *begin = std::min(*begin, s.at);
        *end = std::max(*end, s.until);
        sent[ClassOfOutput(hop.value("out", ""))].push_back(s);
      }
    }
  }
  return sent;
}

// GB/s in each bin; what was sent across the edge of a bin counts in both by its share.
std::vector<double> Binned(const std::vector<Sent>& sent, double begin, double width) {
  std::vector<double> bins(kLoadBins, 0);
  for (const Sent& s : sent) {
    const double length = std::max(s.until - s.at, 1.0);
    const auto last = std::min(kLoadBins - 1, static_cast<std::size_t>((s.until - begin) / width));
    for (auto b = static_cast<std::size_t>((s.at - begin) / width); b <= last; ++b) {
      const double from = std::max(s.at, begin + static_cast<double>(b) * width);
      const double to = std::min(s.at + length, begin + static_cast<double>(b + 1) * width);
      if (to > from) bins[b] += s.flits * kFlitGigabytes * (to - from) / length / (width * 1e-12);
    }
  }
  return bins;
}

}  // namespace

absl::StatusOr<std::string> LinksPlot(const PlotInputs& inputs, PlotSize* size) {
  const Json* links = List(inputs[0].json, "links");
  if (inputs.size() > 1) return Nothing(inputs[1], "a heat map takes one list of links");
  if (links == nullptr)
    return Nothing(inputs[0], "has no list \"links\"; links --format json does");
  Matrix matrix = MatrixOf(*links, 0);
  for (int levels = 1; matrix.names.size() > kCellsMax && levels <= 2; ++levels)
    matrix = MatrixOf(*links, levels);
  *size = {900, 860};
  return MatrixScript(matrix, "busiest link from and to: " + inputs[0].title);
}

absl::StatusOr<std::string> LatencyPlot(const PlotInputs& inputs, PlotSize* size) {
  std::string data, plots;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Bucket> buckets = BucketsOf(inputs[i].json);
    if (buckets.empty()) {
      return Nothing(
          inputs[i],
          "has no latencies of packets; give a trace, or the result of a run that delivered "
          "packets and was not saturated");
    }
    data += fmt::format("$h{} << EOD\n{}EOD\n", i, StepsOf(buckets));
    plots += fmt::format("{}$h{} using 1:2 with filledcurves y1=0 linecolor {} title {}",
                         i == 0 ? "plot " : ", ", i, i + 1, PlotText(inputs[i].title));
  }
  *size = {900, 520};
  return data + kGrid +
         "set style fill transparent solid 0.4 border\nset logscale x\n"
         "set xlabel 'packet latency (ns, virtual)'\nset ylabel 'packets in the interval (%)'\n"
         "set yrange [0:*]\nset offsets 0, 0, graph 0.1, 0\nset rmargin 6\nset key outside top "
         "center horizontal\n" +
         plots + "\n";
}

absl::StatusOr<std::string> CurvesPlot(const PlotInputs& inputs, PlotSize* size) {
  for (const PlotInput& input : inputs) {
    if (!Number(input.json, {"measured", "offered_bytes_per_second_per_hub"}))
      return Nothing(input, "measured no offered load; only runs of traffic patterns do");
  }
  *size = {1320, 400};
  double most = 0;  // of all panels, also where latency is left out
  for (const PlotInput& input : inputs)
    most = std::max(most, *Number(input.json, {"measured", "offered_bytes_per_second_per_hub"}));
  std::string script = fmt::format(
      "{}set key bottom right\nset xrange [0:{}]\nset xlabel 'offered load (GB/s per hub)'\n"
      "set offsets 0, graph 0.02, graph 0.05, 0\n"
      "set multiplot layout 1,3 title 'latency of saturated points is left out'\n",
      kGrid, most > 0 ? most * 1.02e-9 : 1);
  for (const CurvePanel& panel : kCurvePanels) script += CurvePanelScript(panel, inputs);
  return script + "unset multiplot\n";
}

absl::StatusOr<std::string> LoadPlot(const PlotInputs& inputs, PlotSize* size) {
  const Json* packets = List(inputs[0].json, "packets");
  if (inputs.size() > 1) return Nothing(inputs[1], "a plot of load over time takes one trace");
  if (packets == nullptr) return Nothing(inputs[0], "has no packets; trace --format json does");
  double begin = 1e300, end = 0;
  const auto sent = SentByClass(*packets, &begin, &end);
  if (sent.empty()) return Nothing(inputs[0], "none of its packets was sent");
  const double width = std::max((end - begin) / static_cast<double>(kLoadBins), 1.0);
  std::string data, plots;
  std::size_t index = 0;
  for (const auto& [name, list] : sent) {
    const std::vector<double> bins = Binned(list, begin, width);
    data += fmt::format("$l{} << EOD\n", index);
    for (std::size_t b = 0; b < kLoadBins; ++b)
      data +=
          fmt::format("{} {}\n", (begin + (static_cast<double>(b) + 0.5) * width) * 1e-6, bins[b]);
    data += "EOD\n";
    plots += fmt::format("{}$l{} using 1:2 with lines linewidth 1.5 linecolor {} title {}",
                         index == 0 ? "plot " : ", ", index, index + 1, PlotText(name));
    ++index;
  }
  *size = {900, 480};
  return data + kGrid +
         fmt::format(
             "set title {}\nset xlabel 'virtual time (us)'\nset ylabel 'sent (GB/s)'\n"
             "set yrange [0:*]\nset offsets 0, 0, graph 0.05, 0\nset key outside right\n{}\n",
             PlotText(fmt::format("{} traced packets on links, by class: {}", packets->size(),
                                  inputs[0].title)),
             plots);
}

PlotSize SizeOfRanks(std::size_t ranks) {
  return {900, std::clamp<std::size_t>(160 + 18 * ranks, 320, 900)};
}

std::string RanksAxes(std::size_t ranks) {
  const std::size_t every = (ranks + kRanksLabelled - 1) / kRanksLabelled;
  return fmt::format(
      "set ylabel 'rank'\nset ytics {} out nomirror\nset yrange [{}:-0.6]\nset xrange [0:*]\n"
      "set style fill solid noborder\nset key outside top center horizontal\n",
      every, static_cast<double>(ranks) - 0.4);
}

// When each rank did what (Gantt).
absl::StatusOr<std::string> RankSlicesPlot(const PlotInput& input, const Json& slices,
                                           PlotSize* size) {
  static const std::pair<const char*, const char*> kStates[] = {{"computing", "#4477aa"},
                                                                {"busy", "#4477aa"},
                                                                {"sending", "#ccbb44"},
                                                                {"receiving", "#66ccee"},
                                                                {"waiting", "#ee6677"}};
  std::map<std::string, std::string> boxes;
  double ranks = 0;
  for (const Json& s : slices) {
    const double rank = Number(s, {"rank"}).value_or(0);
    ranks = std::max(ranks, rank + 1);
    boxes[s.value("state", "")] +=
        fmt::format("{} {} {}\n", rank, Number(s, {"begin_ps"}).value_or(0) * 1e-6,
                    Number(s, {"end_ps"}).value_or(0) * 1e-6);
  }
  std::string data, plots;
  for (const auto& [state, colour] : kStates) {
    if (!boxes.contains(state)) continue;
    data += fmt::format("${} << EOD\n{}EOD\n", state, boxes[state]);
    plots += fmt::format(
        "{}${} using 3:1:2:3:($1-0.4):($1+0.4) with boxxyerror linecolor '{}' title '{}'",
        plots.empty() ? "" : ", ", state, colour, state);
  }
  if (plots.empty()) return Nothing(input, "has no slices of ranks");
  *size = SizeOfRanks(static_cast<std::size_t>(ranks));
  return data + fmt::format("set title {}\nset xlabel 'virtual time (us)'\n{}plot {}\n",
                            PlotText("what the ranks did: " + input.title),
                            RanksAxes(static_cast<std::size_t>(ranks)), plots);
}

absl::StatusOr<std::string> RanksPlot(const PlotInputs& inputs, PlotSize* size) {
  if (inputs.size() > 1) return Nothing(inputs[1], "a plot of ranks takes one result");
  if (const Json* slices = List(inputs[0].json, "rank_slices"))
    return RankSlicesPlot(inputs[0], *slices, size);
  const Json* ranks = List(inputs[0].json, "ranks");
  if (ranks == nullptr) {
    return Nothing(inputs[0],
                   "has no ranks; results of trace replays do, and `trace --format "
                   "json` of trace replays and of collectives");
  }
  std::string data = "$ranks << EOD\n";
  for (const Json& r : *ranks) {
    const double calc = Number(r, {"calc_ns"}).value_or(0),
                 overhead = Number(r, {"overhead_ns"}).value_or(0),
                 waiting = Number(r, {"waiting_ns"}).value_or(0),
                 finished = Number(r, {"finished_ns"}).value_or(0);
    data +=
        fmt::format("{} {} {} {} {}\n", Number(r, {"rank"}).value_or(0), calc * 1e-3,
                    (calc + overhead) * 1e-3, (calc + overhead + waiting) * 1e-3, finished * 1e-3);
  }
  *size = SizeOfRanks(ranks->size());
  const auto bars = [](int from, int to, const char* colour, const char* title) {
    return fmt::format(
        "$ranks using {}:1:{}:{}:($1-0.4):($1+0.4) with boxxyerror "
        "linecolor '{}' title {}",
        to, from == 0 ? "(0)" : fmt::format("{}", from), to, colour, PlotText(title));
  };
  return data + fmt::format(
                    "EOD\nset title {}\nset xlabel 'virtual time (us), sums by state'\n{}plot {}, "
                    "{}, {}, $ranks using 5:1 with points pointtype 7 pointsize 0.4 linecolor "
                    "'black' title 'finished'\n",
                    PlotText("what each rank did: " + inputs[0].title), RanksAxes(ranks->size()),
                    bars(0, 2, "#4477aa", "computing"),
                    bars(2, 3, "#ccbb44", "overhead of messages"),
                    bars(3, 4, "#ee6677", "waiting"));
}

}  // namespace percs
