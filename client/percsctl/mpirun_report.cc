// What percsctl mpirun says at the end.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/mpirun.h"
#include "client/percsctl/report.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kRankRows = 16;

std::string SizeName(std::size_t bucket) {
  return bucket == 0 ? "0 B" : "<= " + FormatBytes(std::uint64_t{1} << (bucket - 1));
}

// Of a run on daemons only the faults that are left are known.
std::uint64_t LostToFaults(const MpirunEnd& end) {
  std::uint64_t lost = 0;
  for (const FaultTally& tally : end.result.run.tallies) lost += tally.losses.lost;
  if (!end.result.run.tallies.empty()) return lost;
  for (const v1::FaultStatus& fault : end.faults) lost += fault.packets_lost();
  return lost;
}

std::string RankTable(const mpi::JobResult& result, const MpirunPlan& plan,
                      const Topology& topology) {
  Table table(
      {"rank", "hub", "virtual time", "computing", "communicating", "waiting", "messages", "bytes"},
      "rlrrrrrr");
  for (std::size_t r = 0; r < std::min(result.ranks.size(), kRankRows); ++r) {
    const mpi::RankSummary& rank = result.ranks[r];
    table.Add({fmt::format("{}", r), topology.NodeName(plan.places[r].hub), FormatShort(rank.total),
               FormatShort(rank.computing), FormatShort(rank.total - rank.computing - rank.waiting),
               FormatShort(rank.waiting), FormatCount(rank.traffic.messages),
               FormatBytes(rank.traffic.bytes)});
  }
  std::string text = table.ToString(2);
  if (result.ranks.size() > kRankRows)
    text += fmt::format("  ... and {} more ranks\n", result.ranks.size() - kRankRows);
  return text;
}

std::string CollectivesText(const mpi::CollectiveCounts& c) {
  std::string text = fmt::format(
      "on CAUs    {} barriers, {} broadcasts, {} reduces, {} allreduces; communicators: {} with a "
      "tree, {} without",
      FormatCount(c.calls[0]), FormatCount(c.calls[1]), FormatCount(c.calls[2]),
      FormatCount(c.calls[3]), c.groups, c.refused);
  if (c.repairs > 0) text += fmt::format("; {} repairs", c.repairs);
  return text + "\n";
}

}  // namespace

mpi::TrafficCounts SumTraffic(const mpi::JobResult& result) {
  mpi::TrafficCounts sum;
  for (const mpi::RankSummary& rank : result.ranks) {
    const mpi::TrafficCounts& t = rank.traffic;
    sum.messages += t.messages, sum.bytes += t.bytes;
    sum.eager += t.eager, sum.rendezvous += t.rendezvous, sum.local += t.local;
    sum.packets += t.packets, sum.resent += t.resent;
    sum.acknowledgements += t.acknowledgements, sum.unexpected += t.unexpected;
    for (std::size_t i = 0; i < std::size(t.by_size); ++i) sum.by_size[i] += t.by_size[i];
  }
  return sum;
}

void PrintJob(const MpirunEnd& end, const MpirunPlan& plan, const Topology& topology) {
  const mpi::JobResult& result = end.result;
  const mpi::TrafficCounts sum = SumTraffic(result);
  fmt::print(stderr, "\n{} on {} ranks: {}, {} wall\n", plan.program.front(), result.ranks.size(),
             FormatVirtual(result.virtual_time), FormatWall(end.wall_seconds));
  fmt::print(stderr, "{}", RankTable(result, plan, topology));
  fmt::print(stderr,
             "messages   {} with {}: {} eager, {} by rendezvous, {} on one hub; {} unexpected\n",
             FormatCount(sum.messages), FormatBytes(sum.bytes), FormatCount(sum.eager),
             FormatCount(sum.rendezvous), FormatCount(sum.local), FormatCount(sum.unexpected));
  std::string sizes;
  for (std::size_t i = 0; i < std::size(sum.by_size); ++i) {
    if (sum.by_size[i] > 0)
      sizes += fmt::format("{}{}: {}", sizes.empty() ? "" : ", ", SizeName(i),
                           FormatCount(sum.by_size[i]));
  }
  fmt::print(stderr, "by size    {}\n", sizes.empty() ? "none" : sizes);
  fmt::print(stderr, "packets    {}, {} sent again, {} acknowledgements\n",
             FormatCount(sum.packets), FormatCount(sum.resent), FormatCount(sum.acknowledgements));
  if (plan.collective_bytes > 0) fmt::print(stderr, "{}", CollectivesText(result.collectives));
  for (const mpi::LinkUse& link : result.links)
    fmt::print(stderr, "link       {}: {} flits\n", link.name, FormatCount(link.flits));
  if (!end.faults.empty()) fmt::print(stderr, "{}", FaultsText(end.faults));
  fmt::print(stderr, "{}", ReroutesText(result.run, topology));
  if (const std::uint64_t lost = LostToFaults(end); lost > 0)
    fmt::print(stderr, "faults     {} packets lost where a fault was\n", FormatCount(lost));
  if (result.late_calls > 0) {
    fmt::print(stderr,
               "late       {} times a rank called that had said it would wait: times depend on the "
               "machine's speed\n",
               FormatCount(result.late_calls));
  }
  for (const std::string& violation : result.run.violations)
    fmt::print(stderr, "violation  {}\n", violation);
  if (end.has_run) fmt::print(stderr, "digest     {}\n", result.digest.ToString());
  fmt::print(stderr, "times      {}\n", result.times.ToString());
}

absl::Status WriteJob(const std::string& file, const MpirunEnd& end, const MpirunPlan& plan,
                      const Topology& topology) {
  const mpi::JobResult& result = end.result;
  const mpi::TrafficCounts sum = SumTraffic(result);
  Json ranks = Json::array(), links = Json::array(), sizes = Json::array();
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const mpi::RankSummary& rank = result.ranks[r];
    ranks.push_back({{"rank", r},
                     {"hub", topology.NodeName(plan.places[r].hub)},
                     {"window", plan.places[r].window},
                     {"virtual_ps", rank.total},
                     {"computing_ps", rank.computing},
                     {"waiting_ps", rank.waiting},
                     {"messages", rank.traffic.messages},
                     {"bytes", rank.traffic.bytes},
                     {"finalized", rank.ended}});
  }
  for (const mpi::LinkUse& link : result.links)
    links.push_back({{"link", link.name}, {"flits", link.flits}});
  for (std::size_t i = 0; i < std::size(sum.by_size); ++i) {
    if (sum.by_size[i] > 0)
      sizes.push_back(
          {{"bytes_max", i == 0 ? 0 : std::uint64_t{1} << (i - 1)}, {"messages", sum.by_size[i]}});
  }
  const Json report = {{"program", plan.program},
                       {"virtual_ps", result.virtual_time},
                       {"wall_seconds", end.wall_seconds},
                       {"digest", end.has_run ? result.digest.ToString() : ""},
                       {"times", result.times.ToString()},
                       {"failure", result.failure},
                       {"violations", result.run.violations},
                       {"messages", sum.messages},
                       {"bytes", sum.bytes},
                       {"eager", sum.eager},
                       {"rendezvous", sum.rendezvous},
                       {"local", sum.local},
                       {"unexpected", sum.unexpected},
                       {"packets", sum.packets},
                       {"resent", sum.resent},
                       {"late_calls", result.late_calls},
                       {"sizes", std::move(sizes)},
                       {"links", std::move(links)},
                       {"faults", FaultsJson(end.faults)},
                       {"collectives",
                        {{"barriers", result.collectives.calls[0]},
                         {"broadcasts", result.collectives.calls[1]},
                         {"reduces", result.collectives.calls[2]},
                         {"allreduces", result.collectives.calls[3]},
                         {"communicators", result.collectives.groups},
                         {"refused", result.collectives.refused},
                         {"repairs", result.collectives.repairs}}},
                       {"reroutes", result.run.reroutes.size()},
                       {"lost_to_faults", LostToFaults(end)},
                       {"ranks", std::move(ranks)}};
  std::ofstream stream(file);
  stream << report.dump(2) << "\n";
  stream.close();
  if (stream) return absl::OkStatus();
  return absl::InternalError(fmt::format("cannot write the report to {}", file));
}

}  // namespace percs
