#include "client/percsctl/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {
namespace {

constexpr std::size_t kWide = 118;       // columns from which hubs and links are beside each other
constexpr std::size_t kHeaderLines = 4;  // with the empty one below
constexpr std::size_t kHubColumns = 61, kBetween = 2;

std::uint64_t Sum(const google::protobuf::Map<std::string, google::protobuf::uint64>& counts) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// Share of the time between two looks, of shares of the time since the run
// began.
double Between(double before, double then, double now, double at) {
  if (at <= then) return now;
  return std::clamp((now * at - before * then) / (at - then), 0.0, 1.0);
}

// Of the same run, and earlier.
bool Comparable(const TopSample* before, const TopSample& now) {
  return before != nullptr && before->status.run() == now.status.run() && before->links &&
         before->counters;
}

std::string Cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width > 1 ? width - 1 : 0) + "~";
}

std::string Fill(const std::string& text, std::size_t width) {
  return Cut(text, width) + std::string(width - std::min(width, Cut(text, width).size()), ' ');
}

void CompareLinks(const TopSample* before, const TopSample& now, TopState* state) {
  std::map<std::string, const v1::LinkStatus*> earlier;
  double then = 0;
  if (Comparable(before, now)) {
    then = static_cast<double>(before->links->virtual_time());
    for (const v1::LinkStatus& l : before->links->links()) earlier[l.name()] = &l;
  }
  const auto at = static_cast<double>(now.links->virtual_time());
  for (const v1::LinkStatus& l : now.links->links()) {
    const auto it = earlier.find(l.name());
    const v1::LinkStatus& old =
        it == earlier.end() ? v1::LinkStatus::default_instance() : *it->second;
    state->down += l.up() ? 0 : 1;
    state->links.push_back(
        {state->links.size(), l.name(), l.ends(), l.link_class(), l.up(),
         Between(old.utilisation_forward(), then, l.utilisation_forward(), at),
         Between(old.utilisation_backward(), then, l.utilisation_backward(), at)});
  }
}

void CompareHubs(const TopSample* before, const TopSample& now, TopState* state) {
  std::map<std::string, const v1::Counters*> earlier;
  double then = 0;
  if (Comparable(before, now)) {
    then = static_cast<double>(before->counters->virtual_time());
    for (const v1::NodeCounters& n : before->counters->nodes()) earlier[n.node()] = &n.counters();
  }
  const double seconds = (static_cast<double>(now.counters->virtual_time()) - then) * 1e-12;
  for (const v1::NodeCounters& n : now.counters->nodes()) {
    const auto it = earlier.find(n.node());
    const v1::Counters& old = it == earlier.end() ? v1::Counters::default_instance() : *it->second;
    TopHub& hub = state->hubs.emplace_back();
    hub.number = state->hubs.size() - 1;
    hub.name = n.node();
    hub.dropped = Sum(n.counters().packets_dropped());
    hub.dropped_now = hub.dropped - std::min(hub.dropped, Sum(old.packets_dropped()));
    hub.resent = n.counters().packets_resent();
    const auto bytes = static_cast<double>(n.counters().bytes_delivered() - old.bytes_delivered());
    hub.delivered = seconds > 0 ? bytes / seconds : 0;
    state->dropped += hub.dropped;
    state->dropped_now += hub.dropped_now;
    state->resent += hub.resent;
    state->delivered += n.counters().packets_delivered();
  }
}

// Of a link's direction, to the hub that sends on it.
void AddLoads(TopState* state) {
  std::map<std::string, std::pair<TopHub*, int>> hubs;
  for (TopHub& hub : state->hubs) hubs[hub.name] = {&hub, 0};
  const auto add = [&](const std::string& name, double load) {
    const auto it = hubs.find(name);
    if (it == hubs.end()) return;
    auto& [hub, links] = it->second;
    hub->load = (hub->load * links + load) / (links + 1);
    hub->busiest = std::max(hub->busiest, load);
    ++links;
  };
  for (const TopLink& link : state->links) {
    const std::size_t slash = link.ends.find('/');
    if (slash == std::string::npos) continue;
    add(link.ends.substr(0, slash), link.forward);
    add(link.ends.substr(slash + 1), link.backward);
  }
}

std::vector<TopLine> HeaderLines(const TopState& state, const TopScreen& screen) {
  const v1::StatusReply& s = state.status;
  const std::string pace =
      s.pace() > 0 ? fmt::format(", {}/s of {}/s", FormatShort(static_cast<Time>(s.pace_reached())),
                                 FormatShort(s.pace()))
                   : fmt::format(", {}/s", FormatShort(static_cast<Time>(s.pace_reached())));
  std::vector<TopLine> lines;
  lines.push_back(
      {fmt::format("{}: {}{}  run {}  {}  {} of {} daemons", screen.fabric, StateName(s.state()),
                   s.scenario().empty() ? "" : "  " + s.scenario(), s.run(),
                   FormatNodes(s.nodes(), s.blades(), s.crossbars()), s.processes_size(),
                   s.daemons_expected()),
       Style::kHeader});
  lines.push_back({fmt::format("virtual {}  wall {}{}  {} windows/s", FormatShort(s.virtual_time()),
                               FormatWall(s.wall_seconds()), pace,
                               FormatCount(static_cast<std::uint64_t>(s.windows_per_second())))});
  lines.push_back({fmt::format("delivered {}  dropped {} (+{})  resent {}  down {}  faults "
                               "{}  reroutes {}",
                               FormatCount(state.delivered), FormatCount(state.dropped),
                               FormatCount(state.dropped_now), FormatCount(state.resent),
                               state.down, s.faults_active(), s.epoch() > 0 ? s.epoch() - 1 : 0),
                   state.dropped_now > 0 || state.down > 0 ? Style::kWarning : Style::kNone});
  lines.push_back({s.error().empty() ? s.waits_for() : s.error(), Style::kBad});
  return lines;
}

TopLine HubLine(const TopHub& hub) {
  return {fmt::format("{:<13} {:>8} {:>8} {:>11} {:>8} {:>8}", hub.name, FormatPercent(hub.load),
                      FormatPercent(hub.busiest), FormatRate(hub.delivered),
                      FormatCount(hub.dropped), FormatCount(hub.resent)),
          hub.dropped_now > 0 ? Style::kWarning : Style::kNone};
}

TopLine LinkLine(const TopLink& link, bool selected) {
  const std::size_t slash = link.ends.find('/');
  return {fmt::format("{:<19} {:<5} {:>8} {:>8} {}", link.name, link.up ? "up" : "DOWN",
                      FormatPercent(link.forward), FormatPercent(link.backward),
                      slash == std::string::npos ? "" : link.ends.substr(slash + 1)),
          link.up ? Style::kNone : Style::kBad, selected};
}

std::vector<TopLine> HubLines(const TopState& state, std::size_t height) {
  std::vector<TopLine> lines{{fmt::format("{:<13} {:>8} {:>8} {:>11} {:>8} {:>8}", "hub", "load",
                                          "busiest", "delivered", "dropped", "resent"),
                              Style::kHeader}};
  for (const TopHub& hub : state.hubs) {
    if (lines.size() == height) break;
    lines.push_back(HubLine(hub));
  }
  return lines;
}

// As many as there is room for, around the selected one.
std::vector<TopLine> LinkLines(const TopState& state, std::size_t selected, std::size_t height) {
  std::vector<TopLine> lines{
      {fmt::format("{:<19} {:<5} {:>8} {:>8} {}", "link", "state", "load ->", "load <-", "to"),
       Style::kHeader}};
  const std::size_t room = height - 1;
  const std::size_t first = selected < room ? 0 : selected - room + 1;
  for (std::size_t i = first; i < state.links.size() && lines.size() < height; ++i)
    lines.push_back(LinkLine(state.links[i], i == selected));
  return lines;
}

// Two lists in one line each; the selection is of the right one.
std::vector<TopLine> Beside(std::vector<TopLine> left, std::vector<TopLine> right,
                            std::size_t height) {
  left.resize(height);
  right.resize(height);
  std::vector<TopLine> lines;
  for (std::size_t i = 0; i < height; ++i) {
    lines.push_back({Fill(left[i].text, kHubColumns) + std::string(kBetween, ' ') + right[i].text,
                     right[i].style, right[i].selected, kHubColumns + kBetween, left[i].style});
  }
  return lines;
}

constexpr const char* kKeys =
    "q quit  s sort: {}  up/down select  c cut/restore link  p pause/resume";

}  // namespace

TopState CompareTop(const TopSample* before, const TopSample& now) {
  TopState state;
  state.status = now.status;
  if (now.links) CompareLinks(before, now, &state);
  if (now.counters) CompareHubs(before, now, &state);
  AddLoads(&state);
  return state;
}

void SortTop(TopSort sort, TopState* state) {
  std::stable_sort(state->hubs.begin(), state->hubs.end(), [&](const TopHub& a, const TopHub& b) {
    if (sort == TopSort::kName) return a.number < b.number;
    if (sort == TopSort::kDrops && a.dropped != b.dropped) return a.dropped > b.dropped;
    return a.load > b.load;
  });
  std::stable_sort(state->links.begin(), state->links.end(),
                   [&](const TopLink& a, const TopLink& b) {
                     if (sort == TopSort::kName) return a.number < b.number;
                     if (a.up != b.up) return !a.up;  // what is down is seen first
                     return a.load() > b.load();
                   });
}

std::vector<TopLine> TopLines(const TopState& state, const TopScreen& screen) {
  constexpr const char* kSorts[kTopSorts] = {"load", "drops", "name"};
  std::vector<TopLine> lines = HeaderLines(state, screen);
  const std::size_t room = screen.height > kHeaderLines + 1 ? screen.height - kHeaderLines - 1 : 0;
  std::vector<TopLine> body;
  if (room < 4) {
    body = {};
  } else if (state.links.empty()) {
    body = {{"no scenario runs; `percsctl apply FILE` starts one"}};
  } else if (screen.width >= kWide) {
    body = Beside(HubLines(state, room), LinkLines(state, screen.selected, room), room);
  } else {
    body = HubLines(state, room / 2);
    body.resize(room / 2);
    for (TopLine& line : LinkLines(state, screen.selected, room - room / 2))
      body.push_back(std::move(line));
  }
  body.resize(room);
  lines.insert(lines.end(), body.begin(), body.end());
  lines.resize(screen.height > 0 ? screen.height - 1 : 0);
  lines.push_back({screen.message.empty()
                       ? fmt::format(fmt::runtime(kKeys), kSorts[static_cast<int>(screen.sort)])
                       : screen.message,
                   screen.message.empty() ? Style::kNone : Style::kWarning});
  for (TopLine& line : lines) line.text = Cut(line.text, screen.width);
  return lines;
}

}  // namespace percs
