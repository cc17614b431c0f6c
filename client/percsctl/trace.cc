// percsctl trace: the way of chosen packets, hop by hop, and what they waited for.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "client/lib/interrupt.h"
#include "client/lib/scenario_file.h"
#include "client/percsctl/capture.h"
#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"
#include "client/percsctl/progress.h"
#include "client/percsctl/scenario_options.h"
#include "emulator/sim/run.h"
#include "proto/process/replace_file.h"
#include "proto/scenario/build.h"
#include "proto/scenario/trace_codec.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

using Json = nlohmann::json;

constexpr const char *kPcapng = "pcapng", *kPerfetto = "perfetto";
constexpr std::int64_t kScalePs = 1, kScaleNs = 1000;

struct TraceArguments {
  FabricOptions fabric;
  std::string file, from, to, since, until, output, scale = "ps", timeout = "wall:30s";
  std::uint64_t packet = 1, every = 1, count = 1;
  std::optional<std::uint32_t> message;
  std::vector<std::string> settings, kinds;
  std::optional<std::uint64_t> seed;
  bool apply = false, follow = false;
  v1::TraceSelection selection;  // what these say
};

// A capture for another program.
bool IsCapture(const TraceArguments& a) {
  return a.fabric.format == kPcapng || a.fabric.format == kPerfetto;
}

absl::Status Select(TraceArguments* a) {
  v1::TraceSelection& selection = a->selection;
  for (const auto& [option, text] :
       {std::pair("--since", &a->since), std::pair("--until", &a->until)}) {
    if (text->empty()) continue;
    const auto time = ParseTime(*text);
    if (!time.ok()) {
      return absl::InvalidArgumentError(fmt::format("{}: {}", option, Text(time.status())));
    }
    text == &a->since ? selection.set_since(*time) : selection.set_until(*time);
  }
  for (const std::string& kind : a->kinds) selection.add_kinds(kind);
  selection.set_content(a->fabric.format == kPcapng);
  selection.set_source(a->from);
  selection.set_destination(a->to);
  if (a->message) selection.set_message(*a->message);
  selection.set_first(a->packet);
  selection.set_every(a->every);
  selection.set_count(a->count);
  return absl::OkStatus();
}

Json HopJson(const v1::TracedHop& hop) {
  Json grants = Json::array();
  for (const v1::TracedGrant& g : hop.grants()) {
    Json waited = Json::object();
    for (const auto& [reason, time] : g.waited()) waited[reason] = time;
    grants.push_back({{"at_ps", g.at()},
                      {"until_ps", g.until()},
                      {"first_flit", g.first()},
                      {"flits", g.flits()},
                      {"waited_ps", std::move(waited)}});
  }
  return {{"node", hop.node()},         {"in", hop.input()},         {"in_vc", hop.input_vc()},
          {"out", hop.output()},        {"out_vc", hop.output_vc()}, {"arrived_ps", hop.arrived()},
          {"grants", std::move(grants)}};
}

Json PacketJson(const v1::TracedPacket& p) {
  Json hops = Json::array(), deliveries = Json::array(), drops = Json::array();
  for (const v1::TracedHop& hop : p.hops()) hops.push_back(HopJson(hop));
  for (const auto& d : p.deliveries())
    deliveries.push_back({{"node", d.node()}, {"at_ps", d.at()}});
  for (const auto& d : p.drops()) {
    drops.push_back(
        {{"node", d.node()}, {"at_ps", d.at()}, {"reason", d.reason()}, {"flits", d.flits()}});
  }
  return {{"source", p.source()},      {"destination", p.destination()},
          {"sequence", p.sequence()},  {"bytes", p.bytes()},
          {"flits", p.flits()},        {"mode", p.mode()},
          {"created_ps", p.created()}, {"hfi_wait_ps", p.hfi_wait()},
          {"hops", std::move(hops)},   {"deliveries", std::move(deliveries)},
          {"drops", std::move(drops)}};
}

// "arbitration 1.2us, credit 0.3us".
std::string WaitsText(const google::protobuf::Map<std::string, google::protobuf::int64>& waited) {
  std::string text;
  for (int w = 0; w < kWaits; ++w) {
    const char* name = WaitName(static_cast<Wait>(w));
    const auto it = waited.find(name);
    if (it == waited.end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatShort(it->second));
  }
  return text;
}

void AddHop(const v1::TracedHop& hop, Table* table) {
  bool first = true;
  const auto row = [&](const std::string& flits, const std::string& from, const std::string& until,
                       const std::string& waits) {
    const bool leaves_isr = hop.output().rfind("HFI", 0) == 0;
    const bool injected = hop.input().rfind("HFI", 0) == 0;
    table->Add({first ? hop.node() : "", first ? hop.input() : "",
                first && !injected ? fmt::format("{}", hop.input_vc()) : "",
                first ? FormatShort(hop.arrived()) : "", first ? hop.output() : "",
                first && !leaves_isr ? fmt::format("{}", hop.output_vc()) : "", flits, from, until,
                waits});
    first = false;
  };
  for (const v1::TracedGrant& g : hop.grants()) {
    row(g.flits() == 1 ? fmt::format("{}", g.first())
                       : fmt::format("{}-{}", g.first(), g.first() + g.flits() - 1),
        FormatShort(g.at()), FormatShort(g.until()), WaitsText(g.waited()));
  }
  if (first) row("", "", "", "");
}

void PrintPacket(const v1::TracedPacket& p) {
  fmt::print("packet {} of {} to {}: {} B in {} flit{}, {}\n", p.sequence(), p.source(),
             p.destination(), FormatCount(p.bytes()), p.flits(), p.flits() == 1 ? "" : "s",
             p.mode());
  fmt::print(
      "  given to the HFI at {}{}\n", FormatShort(p.created()),
      p.hfi_wait() > 0 ? fmt::format(", {} in its send queue", FormatShort(p.hfi_wait())) : "");
  Table table(
      {"hub", "in", "VC", "head there", "out", "VC", "flits", "sent from", "until", "waited for"},
      "lllrllrrrl");
  for (const v1::TracedHop& hop : p.hops()) AddHop(hop, &table);
  if (!table.empty()) fmt::print("{}", table.ToString(2));
  for (const auto& d : p.drops()) {
    fmt::print("  {} flit{} dropped at {} at {}: {}\n", d.flits(), d.flits() == 1 ? "" : "s",
               d.node(), FormatShort(d.at()), d.reason());
  }
  for (const auto& d : p.deliveries()) {
    fmt::print("  delivered at {} at {}, {} after it was given to the HFI\n", d.node(),
               FormatShort(d.at()), FormatShort(d.at() - p.created()));
  }
  if (p.deliveries().empty() && p.drops().empty()) fmt::print("  still in flight\n");
  fmt::print("\n");
}

Json RanksJson(const std::vector<NamedRankSlice>& ranks) {
  Json list = Json::array();
  for (const auto& [node, s] : ranks) {
    list.push_back({{"rank", s.rank},
                    {"node", node},
                    {"state", RankStateName(s.state)},
                    {"begin_ps", s.begin},
                    {"end_ps", s.end}});
  }
  return list;
}

Json DmaJson(const std::vector<NamedDmaSlice>& dma) {
  Json list = Json::array();
  for (const auto& [node, s] : dma) {
    list.push_back({{"node", node},
                    {"spe", s.spe},
                    {"kind", s.kind},
                    {"bytes", s.bytes},
                    {"cell", s.cell},
                    {"unit", s.unit},
                    {"issued_ps", s.issued},
                    {"started_ps", s.started},
                    {"done_ps", s.done}});
  }
  return list;
}

// The bytes of a capture, to a file or a pipe.
Outcome WriteCapture(const TracedPackets& packets, const NodeSlices& slices,
                     const TraceArguments& a) {
  const std::string bytes =
      a.fabric.format == kPcapng
          ? PcapngWriter().Add(packets)
          : AsPerfetto(packets, slices, a.scale == "ns" ? kScaleNs : kScalePs);
  if (a.output.empty()) {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  } else if (const absl::Status status = ReplaceFile(a.output, bytes); !status.ok()) {
    return Outcome::Fail(ExitCode::kFailed, Text(status));
  } else {
    fmt::print("{}: {} in {}\n", a.output,
               Counted(static_cast<std::uint64_t>(packets.size()), "packet"),
               FormatBytes(bytes.size()));
  }
  return Outcome::Ok();
}

// `slices`: of a run in this process.
Outcome Print(const TracedPackets& packets, const TraceArguments& a,
              const NodeSlices& slices = {}) {
  if (IsCapture(a)) {
    if (Outcome outcome = WriteCapture(packets, slices, a); outcome.code != ExitCode::kOk)
      return outcome;
  } else if (IsJson(a.fabric.format)) {
    Json list = Json::array();
    for (const v1::TracedPacket& p : packets) list.push_back(PacketJson(p));
    Json trace{{"packets", std::move(list)}};
    if (!slices.ranks.empty()) trace["rank_slices"] = RanksJson(slices.ranks);
    if (!slices.dma.empty()) trace["dma_slices"] = DmaJson(slices.dma);
    fmt::print("{}\n", trace.dump(2));
  } else {
    for (const v1::TracedPacket& p : packets) PrintPacket(p);
  }
  if (!packets.empty()) return Outcome::Ok();
  return Outcome::Fail(ExitCode::kFailed,
                       "no packet matched; --from and --to name the ends, and --packet is at most "
                       "the number of packets between them");
}

Outcome TraceHere(const TraceArguments& a) {
  const auto input = LoadScenario(a.file, a.settings, a.seed);
  if (!input.ok()) return FromStatus(input.status());
  if (auto status = CheckLoaded(a.file, input->scenario, RunsOn::kProcess); !status.ok())
    return FromStatus(status);
  const auto topology = Topology::Create(input->scenario.topology);
  if (!topology.ok()) return FromStatus(topology.status());
  const auto selection = SelectionFromProto(a.selection, *topology);
  if (!selection.ok()) return FromStatus(selection.status());
  InterruptGuard interrupt;
  std::vector<TraceEvent> events;
  RunOptions options;
  options.trace = *selection;
  options.traced = &events;
  std::vector<RankSlice> ranks;
  std::vector<NodeDmaSlice> dma;
  if (IsJson(a.fabric.format) || a.fabric.format == kPerfetto) {
    options.rank_slices = &ranks;
    options.dma_slices = &dma;
  }
  options.cancelled = [] { return InterruptGuard::raised(); };
  const auto result = RunScenario(input->scenario, options);
  std::erase_if(ranks, [&](const RankSlice& slice) {
    return slice.end <= selection->since || slice.begin >= selection->until;
  });
  std::erase_if(dma, [&](const NodeDmaSlice& one) {
    return one.slice.done <= selection->since || one.slice.issued >= selection->until;
  });
  TracedPackets packets;
  TracedToProto(MergeTrace(input->scenario.parameters, std::move(events)), *topology, &packets);
  const Outcome outcome =
      Print(packets, a, {NamedRanks(ranks, *topology), NamedDma(dma, *topology)});
  if (result.ok()) return outcome;
  Outcome failed = FromStatus(result.status());
  if (result.status().code() == absl::StatusCode::kFailedPrecondition) {
    failed.code = ExitCode::kDeadlock;
  }
  return failed;
}

bool AllEnded(const TracedPackets& packets) {
  return std::all_of(packets.begin(), packets.end(), [](const v1::TracedPacket& p) {
    return !p.deliveries().empty() || !p.drops().empty();
  });
}

using PacketIds = std::set<std::pair<std::string, std::uint64_t>>;

// Until as many packets have ended as one source traces, the run has ended, or the time is over.
absl::StatusOr<v1::GetTraceReply> Await(FabricClient& client, const TraceArguments& a,
                                        std::chrono::milliseconds timeout, std::size_t before) {
  const WaitingLine line("waiting for packets", /*always=*/false);
  InterruptGuard interrupt;
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  while (true) {
    auto reply = client.GetTrace();
    if (!reply.ok()) return reply;
    const std::size_t known = static_cast<std::size_t>(reply->packets_size());
    const bool done = known >= before + a.count && AllEnded(reply->packets());
    if (done || reply->run_ended() || InterruptGuard::raised() ||
        std::chrono::steady_clock::now() >= give_up) {
      return reply;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Those that are not in `earlier`.
Outcome AwaitAndPrint(FabricClient& client, const TraceArguments& a,
                      std::chrono::milliseconds timeout, const PacketIds& earlier) {
  auto reply = Await(client, a, timeout, earlier.size());
  if (!reply.ok()) return FromStatus(reply.status());
  TracedPackets fresh;
  for (v1::TracedPacket& p : *reply->mutable_packets()) {
    if (!earlier.contains({p.source(), p.sequence()})) fresh.Add()->Swap(&p);
  }
  if (fresh.empty()) {
    const auto status = client.Status();
    if (status.ok() && status->state() == v1::FABRIC_STATE_PAUSED) {
      return Outcome::Fail(ExitCode::kFailed,
                           "no packet moves: virtual time is paused; continue it with "
                           "`percsctl resume` or `percsctl step`");
    }
  }
  return Print(fresh, a);
}

// Writes each packet when it ends, except those in `known`. It stops when the run ends, at Ctrl-C,
// or when the output cannot be written any more.
Outcome Follow(FabricClient& client, const TraceArguments& a, PacketIds known) {
  InterruptGuard interrupt;
  PcapngWriter writer;
  std::FILE* file = a.output.empty() ? stdout : std::fopen(a.output.c_str(), "wb");
  if (file == nullptr) return Outcome::Fail(ExitCode::kFailed, a.output + ": cannot be written");
  bool done = false;
  Outcome outcome = Outcome::Ok();
  while (!done) {
    auto reply = client.GetTrace();
    if (!reply.ok()) {
      outcome = FromStatus(reply.status());
      break;
    }
    done = reply->run_ended() || InterruptGuard::raised();
    TracedPackets fresh;
    for (v1::TracedPacket& p : *reply->mutable_packets()) {
      const bool ended = !p.deliveries().empty() || !p.drops().empty();
      if (!ended && !done) continue;
      if (known.emplace(p.source(), p.sequence()).second) fresh.Add()->Swap(&p);
    }
    const std::string bytes = writer.Add(fresh);
    done |= std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size();
    done |= std::fflush(file) != 0;
    if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (file != stdout) std::fclose(file);
  return outcome;
}

Outcome TraceThere(const TraceArguments& a) {
  const auto timeout = ParseWallTime(a.timeout);
  if (!timeout.ok()) return Outcome::Fail(ExitCode::kUsage, "--timeout: " + Text(timeout.status()));
  v1::ApplyRequest request;
  if (a.apply) {
    auto input = LoadScenario(a.file, a.settings, a.seed);
    if (!input.ok()) return FromStatus(input.status());
    if (auto s = InlineFiles(&input->message, input->directory); !s.ok()) return FromStatus(s);
    *request.mutable_scenario() = input->message;
    *request.mutable_trace() = a.selection;
  }
  return WithFabric(a.fabric, [&](FabricClient& client) {
    PacketIds earlier_ids;  // of packets followed before
    if (a.apply) {
      const auto reply = client.Apply(request, *timeout);
      if (!reply.ok()) return FromStatus(reply.status());
    } else {
      const auto earlier = client.GetTrace();
      if (!earlier.ok()) return FromStatus(earlier.status());
      for (const v1::TracedPacket& p : earlier->packets())
        earlier_ids.emplace(p.source(), p.sequence());
      const auto reply = client.Trace(a.selection);
      if (!reply.ok()) return FromStatus(reply.status());
    }
    return a.follow ? Follow(client, a, std::move(earlier_ids))
                    : AwaitAndPrint(client, a, *timeout, earlier_ids);
  });
}

Outcome Trace(TraceArguments a) {
  if (a.file.empty() && a.apply) {
    return Outcome::Fail(ExitCode::kUsage, "--apply needs a scenario FILE to run");
  }
  if (!a.output.empty() && !IsCapture(a)) {
    return Outcome::Fail(ExitCode::kUsage,
                         "--output is for captures; add --format pcapng or perfetto");
  }
  if (IsCapture(a) && a.output.empty() && isatty(STDOUT_FILENO) != 0) {
    return Outcome::Fail(ExitCode::kUsage,
                         "a capture is not written to a terminal; name a file with -o, or pipe it");
  }
  if (a.follow && (a.fabric.format != kPcapng || (!a.file.empty() && !a.apply))) {
    return Outcome::Fail(ExitCode::kUsage,
                         "--follow is for captures of a running fabric; add --format pcapng, and "
                         "--apply if there is a FILE");
  }
  if (const absl::Status status = Select(&a); !status.ok())
    return Outcome::Fail(ExitCode::kUsage, Text(status));
  return a.file.empty() || a.apply ? TraceThere(a) : TraceHere(a);
}

}  // namespace

CommandBody AddTrace(CLI::App& app) {
  auto a = std::make_shared<TraceArguments>();
  app.add_option("FILE", a->file,
                 "Scenario to run in this process; default: trace packets of the running fabric");
  app.add_option("--from", a->from,
                 "Hub or blade that sends the packets, like sn0-d1-h3; default: any");
  app.add_option("--to", a->to, "Hub or blade that receives the packets; default: any");
  app.add_option("--packet", a->packet,
                 "Number of the first packet to trace among those that match, from 1")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--every", a->every, "Then trace every Nth packet")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--count", a->count, "Number of packets to trace, per source")
      ->check(CLI::Range(std::uint64_t{1}, kTracedPacketsMax))
      ->capture_default_str();
  app.add_option("--message", a->message,
                 "Only packets of this message between the two ends, from 0");
  app.add_option("--kind", a->kinds,
                 "Only packets of this kind (repeatable): raw, data, ack, cau, management, window, "
                 "operation; all: of every kind. Default: all but management")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_option("--since", a->since, "Only packets created at this virtual time or later: 40us");
  app.add_option("--until", a->until, "Only packets created before this virtual time");
  app.add_option("--scale", a->scale,
                 "With --format perfetto: virtual time that its nanosecond stands for. ps: times "
                 "are exact, "
                 "1000 times as long; ns: rounded down")
      ->check(CLI::IsMember({"ps", "ns"}))
      ->capture_default_str();
  app.add_option("-o,--output", a->output,
                 "File for a capture; default: standard output, if it is no terminal");
  app.add_flag(
      "--follow", a->follow,
      "With --format pcapng, on a fabric: write packets as they end, until the run ends or "
      "Ctrl-C");
  app.add_flag("--apply", a->apply, "Run FILE on the fabric instead of in this process");
  AddSettingOptions(app, a->settings, a->seed);
  app.add_option("--timeout", a->timeout, "Time limit for waiting on a running fabric")
      ->capture_default_str();
  AddNameOption(app, a->fabric.name);
  AddControllerOptions(app, a->fabric);
  app.add_option("--format", a->fabric.format,
                 "human, json, or a capture: pcapng for Wireshark, perfetto")
      ->check(CLI::IsMember({"human", "json", kPcapng, kPerfetto}))
      ->capture_default_str();
  return [a] { return Trace(*a); };
}

}  // namespace percs
