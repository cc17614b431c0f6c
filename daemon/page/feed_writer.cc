#include "daemon/page/feed_writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/page/switch_spots.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/util/json_util.h"
#include "proto/convert/counters.h"

namespace percs {
namespace {

constexpr std::size_t kEventsKept = 256;
constexpr char kLinkColumns[] =
    R"(["ends","link_class","up","recent_forward","recent_backward",)"
    R"("forward.flits","forward.packets","forward.credit_stall_ps","forward.crc_errors",)"
    R"("forward.replays","forward.lanes_lost",)"
    R"("backward.flits","backward.packets","backward.credit_stall_ps","backward.crc_errors",)"
    R"("backward.replays","backward.lanes_lost"])";

std::string JsonOf(const google::protobuf::Message& message, bool with_zeros) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = with_zeros;
  std::string json;
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

// Two digits of base 64 for a share: 0 is "AA", 1 is "//".
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr double kShareSteps = 4095;

void AddShare(double share, std::string* cells) {
  const auto steps = static_cast<unsigned>(std::lround(std::clamp(share, 0.0, 1.0) * kShareSteps));
  *cells += kDigits[steps >> 6];
  *cells += kDigits[steps & 63];
}

// Pairs of a value and how often it follows itself.
std::string RunsOf(const std::vector<int>& values) {
  std::string runs;
  for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
    while (end < values.size() && values[end] == values[i]) ++end;
    runs += fmt::format("{}[{},{}]", runs.empty() ? "" : ",", values[i], end - i);
  }
  return "[" + runs + "]";
}

std::string MatrixJson(Time at, const std::string& rows, const std::string& more) {
  return fmt::format(R"({{"virtual_time":{},{}"rows":{{{}}}}})", at, more, rows);
}

// One letter for each rank, RankState by RankState.
constexpr char kRankLetters[] = "icsrbwd";
static_assert(sizeof(kRankLetters) == kRankStates + 1);

std::string RanksJson(const std::vector<HubRanks>& hubs, const std::vector<HubRanks>& told) {
  std::string json;
  for (std::size_t i = 0; i < hubs.size(); ++i) {
    if (i < told.size() && hubs[i] == told[i]) continue;
    std::string numbers, states;
    for (const RankNow& rank : hubs[i].ranks) {
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", rank.rank);
      states += kRankLetters[static_cast<std::size_t>(rank.state)];
    }
    json += fmt::format(R"({}"{}":[[{}],"{}"])", json.empty() ? "" : ",", hubs[i].name, numbers,
                        states);
  }
  return json.empty() ? "" : "{" + json + "}";
}

// Where switches stand; "" for hubs.
std::string SpotsJson(const std::vector<std::string>& names) {
  const std::vector<Spot> spots = SpotsOfSwitches(names);
  if (spots.empty()) return "";
  std::vector<std::string> members;
  for (std::size_t i = 0; i < spots.size(); ++i)
    members.push_back(fmt::format(R"("{}":[{:.3f},{:.3f}])", names[i], spots[i].x, spots[i].y));
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

// Those that changed since the last message.
std::string HubsJson(const std::vector<std::string>& names, const std::vector<HubSight>& hubs,
                     const std::vector<HubSight>& told) {
  std::string json;
  for (std::size_t i = 0; i < hubs.size(); ++i) {
    if (hubs[i] == (i < told.size() ? told[i] : HubSight{})) continue;
    json += fmt::format(R"({}"{}":[{},{}])", json.empty() ? "" : ",", names[i],
                        hubs[i].packets_dropped, hubs[i].reroutes);
  }
  return json.empty() ? "" : "{" + json + "}";
}

// All that is under way, of all nodes that have something.
std::string InFlightJson(const std::vector<NodeInFlight>& nodes) {
  std::string json;
  for (const NodeInFlight& node : nodes) {
    std::vector<std::string> trees, spes;
    for (const TreeInFlight& tree : node.in_flight.trees) {
      std::vector<std::string> sent;
      for (const TreePacketsInFlight& to : tree.sent)
        sent.push_back(fmt::format("[{},{}]", to.neighbor, to.packets));
      trees.push_back(
          fmt::format("[{},{},{},[{}]]", tree.tree, tree.vertex, tree.held, fmt::join(sent, ",")));
    }
    for (const cell::SpeInFlight& spe : node.in_flight.spes) {
      std::vector<std::string> moves;
      for (const cell::DmaMove& move : spe.moves)
        moves.push_back(
            fmt::format("[{},{},{},{}]", move.cell, move.unit, move.out ? 1 : 0, move.commands));
      spes.push_back(fmt::format("[{},{},[{}]]", spe.spe, spe.queued, fmt::join(moves, ",")));
    }
    json += fmt::format(R"({}"{}":[[{}],[{}]])", json.empty() ? "" : ",", node.name,
                        fmt::join(trees, ","), fmt::join(spes, ","));
  }
  return "{" + json + "}";
}

void AddPart(const char* name, const std::string& part, std::string* message) {
  if (part.empty()) return;
  *message += fmt::format("{}\"{}\":{}", message->empty() ? "" : ",", name, part);
}

}  // namespace

std::string FeedMessage(std::string_view event, std::string_view data) {
  return fmt::format("event: {}\ndata: {{{}}}\n\n", event, data);
}

// Readers get everything of the new run.
void FeedWriter::BeginRun(std::uint64_t run) {
  run_ = run;
  last_event_ = 0;
  links_at_ = -1;
  links_.clear();
  places_.reset();
  rows_.clear();
  outputs_.reset();
  ranks_.clear();
  in_flight_.clear();
  hub_names_.reset();
  spots_.clear();
  hubs_.clear();
  events_.clear();
  counters_.clear();
  changed_ = {};
}

void FeedWriter::TakeStatus(const v1::StatusReply& reply) {
  if (reply.run() != run_) BeginRun(reply.run());
  v1::StatusReply status = reply;
  status.clear_versions();
  for (v1::ProcessStatus& process : *status.mutable_processes()) {
    v1::ProcessStatus kept;
    kept.set_name(process.name());
    kept.set_connected(process.connected());
    kept.set_first_node(process.first_node());
    kept.set_nodes(process.nodes());
    process = std::move(kept);
  }
  std::string json = JsonOf(status, /*with_zeros=*/true);
  if (json != status_) changed_.status = status_ = std::move(json);
}

void FeedWriter::ForgetRecent() {
  links_at_ = -1;
  for (Row& row : rows_) row.at = -1;
}

void FeedWriter::TakeSight(FabricSight sight) {
  TakeRows(sight);
  TakeRanks(&sight);
  TakeHubs(&sight);
  TakeInFlight(&sight);
  if (!sight.counted) return TakeLinks(std::move(sight));
  v1::GetCountersReply reply;
  reply.set_virtual_time(sight.virtual_time);
  reply.set_run_ended(sight.run_ended);
  v1::Counters* const counters = reply.add_nodes()->mutable_counters();
  CountersToProto(sight.total, counters);
  counters->clear_ports();
  changed_.counters = counters_ = JsonOf(reply, /*with_zeros=*/false);
  TakeLinks(std::move(sight));
}

bool FeedWriter::Update(const LinkSight& sight, double passed, Link* link) const {
  const Link before = *link;
  link->seen = sight;
  if (links_at_ >= 0 && passed > 0) {
    const auto recent = [passed](const WaySight& now, const WaySight& then) {
      return std::clamp((now.busy_ps - then.busy_ps) / passed, 0.0, 1.0);
    };
    link->recent_forward = recent(sight.forward, before.seen.forward);
    link->recent_backward = recent(sight.backward, before.seen.backward);
  }
  return !(link->seen == before.seen) || link->recent_forward != before.recent_forward ||
         link->recent_backward != before.recent_backward;
}

void FeedWriter::AddRow(std::size_t index, std::string* rows) const {
  const Link& link = links_[index];
  AddLinkRow((*places_)[index], link.seen, link.recent_forward, link.recent_backward, rows);
}

void FeedWriter::TakeLinks(FabricSight sight) {
  const bool first = places_ != sight.places;
  if (first) {
    places_ = std::move(sight.places);
    links_.assign(sight.links.size(), {});
  }
  const double passed = static_cast<double>(sight.virtual_time - links_at_);
  std::string rows;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (Update(sight.links[i], passed, &links_[i]) || first) AddRow(i, &rows);
  }
  links_at_ = sight.virtual_time;
  if (!rows.empty()) changed_.links = LinksJson(links_at_, rows);
}

void FeedWriter::TakeRanks(FabricSight* sight) {
  if (std::string json = RanksJson(sight->ranks, ranks_); !json.empty())
    changed_.ranks = std::move(json);
  ranks_ = std::move(sight->ranks);
}

void FeedWriter::TakeHubs(FabricSight* sight) {
  if (!sight->hub_names) return;
  if (hub_names_ != sight->hub_names) {
    hub_names_ = std::move(sight->hub_names);
    changed_.spots = spots_ = SpotsJson(*hub_names_);
  }
  if (std::string json = HubsJson(*hub_names_, sight->hubs, hubs_); !json.empty())
    changed_.hubs = std::move(json);
  hubs_ = std::move(sight->hubs);
}

void FeedWriter::TakeInFlight(FabricSight* sight) {
  if (sight->in_flight == in_flight_) return;
  in_flight_ = std::move(sight->in_flight);
  changed_.in_flight = InFlightJson(in_flight_);
}

void FeedWriter::TakeRows(const FabricSight& sight) {
  if (!sight.outputs) return;
  if (!outputs_) changed_.outputs = true;
  outputs_ = sight.outputs;
  for (const RowSight& seen : sight.rows) {
    const std::size_t size = seen.busy_ps.size();
    const auto supernode = static_cast<std::size_t>(seen.supernode);
    rows_.resize(size);
    Row& row = rows_[supernode];
    const double passed = row.at < 0 ? 0 : static_cast<double>(seen.at - row.at);
    std::string cells, down;
    for (std::size_t to = 0; to < size; ++to) {
      const double most = passed * (*outputs_)[supernode * size + to];
      AddShare(most > 0 ? (seen.busy_ps[to] - row.busy_ps[to]) / most : 0, &cells);
      if (seen.down[to] > 0)
        down += fmt::format("{}[{},{}]", down.empty() ? "" : ",", to, seen.down[to]);
    }
    std::string told = fmt::format(R"("{}":["{}",[{}]])", seen.supernode, cells, down);
    row.at = seen.at;
    row.busy_ps = seen.busy_ps;
    changed_.rows_at = seen.at;
    if (told == row.told) continue;
    row.told = std::move(told);
    changed_.rows += (changed_.rows.empty() ? "" : ",") + row.told;
  }
}

void FeedWriter::TakeEvent(const v1::FabricEvent& event) {
  last_event_ = event.sequence();
  events_.push_back(JsonOf(event, /*with_zeros=*/true));
  changed_.events += (changed_.events.empty() ? "" : ",") + events_.back();
  if (events_.size() > kEventsKept) events_.pop_front();
}

std::string FeedWriter::OutputsOfMatrix() const {
  return fmt::format(R"("supernodes":{},"outputs":{},)", rows_.size(), RunsOf(*outputs_));
}

std::string FeedWriter::Delta() {
  const Parts parts = std::exchange(changed_, {});
  std::string message;
  AddPart("status", parts.status, &message);
  AddPart("spots", parts.spots, &message);
  AddPart("links", parts.links, &message);
  if (!parts.rows.empty()) {
    const std::string outputs = parts.outputs ? OutputsOfMatrix() : "";
    AddPart("matrix", MatrixJson(parts.rows_at, parts.rows, outputs), &message);
  }
  AddPart("ranks", parts.ranks, &message);
  AddPart("hubs", parts.hubs, &message);
  AddPart("in_flight", parts.in_flight, &message);
  AddPart("counters", parts.counters, &message);
  AddPart("events", parts.events.empty() ? "" : "[" + parts.events + "]", &message);
  return FeedMessage("delta", message);
}

std::string FeedWriter::Snapshot() const {
  std::string rows, events, message;
  for (std::size_t i = 0; i < links_.size(); ++i) AddRow(i, &rows);
  for (const std::string& event : events_) events += (events.empty() ? "" : ",") + event;
  AddPart("link_columns", kLinkColumns, &message);
  AddPart("status", status_, &message);
  AddPart("spots", spots_, &message);
  AddPart("links", LinksJson(links_at_, rows), &message);
  if (outputs_) {
    std::string told;
    for (const Row& row : rows_) told += (told.empty() || row.told.empty() ? "" : ",") + row.told;
    AddPart("matrix", MatrixJson(links_at_, told, OutputsOfMatrix()), &message);
  }
  AddPart("ranks", RanksJson(ranks_, {}), &message);
  if (hub_names_) AddPart("hubs", HubsJson(*hub_names_, hubs_, {}), &message);
  if (!in_flight_.empty()) AddPart("in_flight", InFlightJson(in_flight_), &message);
  AddPart("counters", counters_, &message);
  AddPart("events", "[" + events + "]", &message);
  return FeedMessage("snapshot", message);
}

}  // namespace percs
