// Traced packets as Perfetto's TrackEvents.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "client/percsctl/capture.h"
#include "emulator/cell/eib.h"
#include "emulator/metrics/path_trace.h"
#include "percs/perfetto_trace.pb.h"

namespace percs {
namespace {

using perfetto::TrackEvent;

constexpr std::uint32_t kSequence = 1;
constexpr std::int64_t kUtilisationBins = 200, kUtilisationBinMin = 100'000;  // ps

// What one packet did at one place: a slice and what is nested in it.
struct Slice {
  std::string name, category;
  std::int64_t begin = 0, end = 0;
  std::uint64_t flow = 0;
  std::vector<Slice> inner;  // one after the other, within [begin, end]
};

class Writer {
 public:
  Writer(const TracedPackets& packets, const NodeSlices& slices, std::int64_t scale)
      : packets_(packets), ranks_(slices.ranks), dma_(slices.dma), scale_(scale) {}

  std::string Write() {
    for (const NamedDmaSlice& one : dma_) AddDma(one);
    for (int i = 0; i < packets_.size(); ++i)
      AddPacket(packets_[i], static_cast<std::uint64_t>(i) + 1);
    for (auto& [place, slices] : stays_) EmitLanes(place.first, place.second, slices);
    for (auto& [place, slices] : outputs_) EmitOutput(place.first, place.second, slices);
    // After the slices: of one moment, what ends a packet's flow comes last.
    for (int i = 0; i < packets_.size(); ++i)
      AddEnds(packets_[i], static_cast<std::uint64_t>(i) + 1);
    EmitBufferCounters();
    for (const auto& [node, s] : ranks_)
      Emit(Track(node, fmt::format("rank {}", s.rank)),
           {RankStateName(s.state), "rank", s.begin, s.end, 0, {}});
    return Bytes();
  }

 private:
  using Place = std::pair<std::string, std::string>;  // node, name of the track in it
  struct Event {
    std::int64_t at = 0;
    TrackEvent event;
  };

  void AddDma(const NamedDmaSlice& one);
  void AddPacket(const v1::TracedPacket& p, std::uint64_t flow);
  void AddEnds(const v1::TracedPacket& p, std::uint64_t flow);
  void AddHop(const v1::TracedPacket& p, const v1::TracedHop& hop, std::uint64_t flow);
  void EmitLanes(const std::string& node, const std::string& name, std::vector<Slice>& slices);
  void EmitOutput(const std::string& node, const std::string& name, std::vector<Slice>& slices);
  void EmitUtilisation(const std::string& node, const std::string& name,
                       const std::vector<Slice>& slices);
  void EmitBufferCounters();
  void Emit(std::uint64_t track, const Slice& slice);
  void Count(std::uint64_t track, std::int64_t at, double value);
  std::uint64_t Track(const std::string& node, const std::string& name, const char* unit = nullptr);
  std::string Bytes();

  const TracedPackets& packets_;
  const std::vector<NamedRankSlice>& ranks_;
  const std::vector<NamedDmaSlice>& dma_;
  const std::int64_t scale_;  // picoseconds for each nanosecond of Perfetto's clock
  std::map<Place, std::vector<Slice>> stays_, outputs_;
  std::map<std::string, std::map<std::int64_t, int>> entered_;  // by node and time: packets more
  std::map<Place, std::uint64_t> tracks_;
  std::vector<perfetto::TrackDescriptor> descriptors_;
  std::vector<Event> events_;
  std::int64_t first_ = INT64_MAX, last_ = 0;
};

// The group of a crossbar of Roadrunner, by its level in the tree: "cu0-leaf3" and all other leaves
// have one. Empty: the node is no crossbar.
std::string LevelOf(const std::string& node) {
  static const std::pair<std::regex, const char*> kLevels[] = {
      {std::regex("cu[0-9]+-leaf[0-9]+"), "crossbars: leaves"},
      {std::regex("cu[0-9]+-spine[0-9]+"), "crossbars: spines"},
      {std::regex("sw[0-9]+-a[0-9]+"), "crossbars: switches, A"},
      {std::regex("sw[0-9]+-b[0-9]+"), "crossbars: switches, B"},
      {std::regex("sw[0-9]+-c[0-9]+"), "crossbars: switches, C"}};
  for (const auto& [pattern, level] : kLevels)
    if (std::regex_match(node, pattern)) return level;
  return "";
}

std::string NameOf(const v1::TracedPacket& p) {
  return fmt::format("{} {} to {}", p.source(), p.sequence(), p.destination());
}

// When the packet left the buffer of this hop, or was lost in it.
std::int64_t EndOf(const v1::TracedPacket& p, const v1::TracedHop& hop) {
  std::int64_t end = hop.arrived();
  for (const v1::TracedGrant& g : hop.grants()) end = std::max(end, g.until());
  for (const v1::TracedDrop& d : p.drops())
    if (d.node() == hop.node() && d.at() >= end) return d.at();
  return end;
}

// One slice for each reason, in the order of reasons: when a wait changed its reason is not
// recorded, only how long each was the reason.
void AddWaits(const v1::TracedGrant& g, std::int64_t begin, Slice* stay) {
  for (int w = 0; w < kWaits; ++w) {
    const char* reason = WaitName(static_cast<Wait>(w));
    const auto it = g.waited().find(reason);
    if (it == g.waited().end()) continue;
    const std::int64_t end = std::min(begin + it->second, g.at());
    if (end > begin) stay->inner.push_back({reason, "wait", begin, end, 0, {}});
    begin = std::max(begin, end);
  }
}

void Writer::AddHop(const v1::TracedPacket& p, const v1::TracedHop& hop, std::uint64_t flow) {
  Slice stay{NameOf(p), "buffer", hop.arrived(), EndOf(p, hop), flow, {}};
  std::int64_t since = hop.arrived();
  for (const v1::TracedGrant& g : hop.grants()) {
    AddWaits(g, since, &stay);
    stay.inner.push_back({fmt::format("sent flits {} to {}", g.first(), g.first() + g.flits() - 1),
                          "send",
                          g.at(),
                          g.until(),
                          0,
                          {}});
    outputs_[{hop.node(), fmt::format("out {} VC {}", hop.output(), hop.output_vc())}].push_back(
        {NameOf(p), "link", g.at(), g.until(), flow, {}});
    since = g.until();
  }
  ++entered_[hop.node()][stay.begin];
  --entered_[hop.node()][stay.end];
  first_ = std::min(first_, stay.begin);
  last_ = std::max(last_, stay.end);
  stays_[{hop.node(), fmt::format("in {} VC {}", hop.input(), hop.input_vc())}].push_back(
      std::move(stay));
}

// The unit of a bus, as the blade's hardware calls it.
std::string UnitName(int unit) {
  for (int spe = 0; spe < cell::kSpesPerCell; ++spe)
    if (cell::kUnitOfSpe[static_cast<std::size_t>(spe)] == unit) return fmt::format("SPE{}", spe);
  return unit == cell::kUnitMic ? "memory" : fmt::format("unit {}", unit);
}

// From its issue to its completion; in it, how long it waited for earlier ones.
void Writer::AddDma(const NamedDmaSlice& one) {
  const cell::DmaSlice& s = one.slice;
  const std::string bytes = s.bytes > 0 ? fmt::format(" {} B", s.bytes) : "";
  Slice command{fmt::format("{}{}, {} of Cell {}", s.kind, bytes, UnitName(s.unit), s.cell),
                "dma",
                s.issued,
                s.done,
                0,
                {}};
  if (s.started > s.issued) command.inner.push_back({"queue", "wait", s.issued, s.started, 0, {}});
  command.inner.push_back({"under way", "send", s.started, s.done, 0, {}});
  first_ = std::min(first_, s.issued);
  last_ = std::max(last_, s.done);
  stays_[{one.node, fmt::format("SPE {} DMA", s.spe)}].push_back(std::move(command));
}

void Writer::AddPacket(const v1::TracedPacket& p, std::uint64_t flow) {
  const std::int64_t entered = p.hops().empty() ? p.created() : p.hops(0).arrived();
  Slice sending{NameOf(p), "HFI", p.created(), entered, flow, {}};
  const std::int64_t taken = std::min(p.created() + p.hfi_wait(), entered);
  if (taken > p.created())
    sending.inner.push_back({"send queue", "wait", p.created(), taken, 0, {}});
  if (entered > taken) sending.inner.push_back({"to the switch", "send", taken, entered, 0, {}});
  stays_[{p.source(), "HFI send"}].push_back(std::move(sending));
  for (const v1::TracedHop& hop : p.hops()) AddHop(p, hop, flow);
}

// Where it was delivered or lost; its flow ends with the last of them.
void Writer::AddEnds(const v1::TracedPacket& p, std::uint64_t flow) {
  struct End {
    std::int64_t at;
    std::string node, what;
  };
  std::vector<End> ends;
  for (const v1::TracedDelivery& d : p.deliveries())
    ends.push_back({d.at(), d.node(), "delivered"});
  for (const v1::TracedDrop& d : p.drops())
    ends.push_back({d.at(), d.node(), "dropped, " + d.reason() + ":"});
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.at < b.at; });
  for (const End& end : ends) {
    Event& e = events_.emplace_back();
    e.at = end.at;
    e.event.set_type(TrackEvent::TYPE_INSTANT);
    e.event.set_track_uuid(Track(end.node, "packets"));
    e.event.set_name(fmt::format("{} {}", end.what, NameOf(p)));
    if (&end == &ends.back()) {
      e.event.add_terminating_flow_ids(flow);
    } else {
      e.event.add_flow_ids(flow);
    }
  }
}

// Packets that are in a buffer together are on tracks beside each other.
void Writer::EmitLanes(const std::string& node, const std::string& name,
                       std::vector<Slice>& slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  std::vector<std::int64_t> free_at;
  for (const Slice& slice : slices) {
    std::size_t lane = 0;
    while (lane < free_at.size() && free_at[lane] > slice.begin) ++lane;
    if (lane == free_at.size()) free_at.push_back(0);
    free_at[lane] = slice.end;
    Emit(Track(node, lane == 0 ? name : fmt::format("{} #{}", name, lane + 1)), slice);
  }
}

void Writer::EmitOutput(const std::string& node, const std::string& name,
                        std::vector<Slice>& slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  for (const Slice& slice : slices) Emit(Track(node, name), slice);
  EmitUtilisation(node, name, slices);
}

// Share of each interval in which traced packets were sent.
void Writer::EmitUtilisation(const std::string& node, const std::string& name,
                             const std::vector<Slice>& slices) {
  const std::int64_t bin = std::max(kUtilisationBinMin, (last_ - first_) / kUtilisationBins + 1);
  std::map<std::int64_t, std::int64_t> busy;
  for (const Slice& s : slices) {
    for (std::int64_t b = s.begin / bin; b <= s.end / bin; ++b)
      busy[b] +=
          std::max<std::int64_t>(0, std::min(s.end, (b + 1) * bin) - std::max(s.begin, b * bin));
  }
  const std::uint64_t track = Track(node, name + " busy", "%");
  for (const auto& [b, time] : busy) {
    Count(track, b * bin, 100.0 * static_cast<double>(time) / static_cast<double>(bin));
    if (!busy.contains(b + 1)) Count(track, (b + 1) * bin, 0);
  }
}

void Writer::EmitBufferCounters() {
  for (const auto& [node, changes] : entered_) {
    const std::uint64_t track = Track(node, "in buffers", "packets");
    int packets = 0;
    for (const auto& [at, change] : changes) {
      if (change == 0) continue;
      packets += change;
      Count(track, at, packets);
    }
  }
}

void Writer::Count(std::uint64_t track, std::int64_t at, double value) {
  Event& e = events_.emplace_back();
  e.at = at;
  e.event.set_type(TrackEvent::TYPE_COUNTER);
  e.event.set_track_uuid(track);
  e.event.set_double_counter_value(value);
}

void Writer::Emit(std::uint64_t track, const Slice& slice) {
  Event& begin = events_.emplace_back();
  begin.at = slice.begin;
  begin.event.set_type(TrackEvent::TYPE_SLICE_BEGIN);
  begin.event.set_track_uuid(track);
  begin.event.set_name(slice.name);
  begin.event.add_categories(slice.category);
  if (slice.flow != 0) begin.event.add_flow_ids(slice.flow);
  for (const auto& [key, value] :
       {std::pair("begin_ps", slice.begin), std::pair("duration_ps", slice.end - slice.begin)}) {
    perfetto::DebugAnnotation* a = begin.event.add_debug_annotations();
    a->set_name(key);
    a->set_int_value(value);
  }
  for (const Slice& inner : slice.inner) Emit(track, inner);
  Event& end = events_.emplace_back();
  end.at = slice.end;
  end.event.set_type(TrackEvent::TYPE_SLICE_END);
  end.event.set_track_uuid(track);
}

std::uint64_t Writer::Track(const std::string& node, const std::string& name, const char* unit) {
  const std::string group = name.empty() ? LevelOf(node) : node;
  const std::uint64_t parent = group.empty() ? 0 : Track(group, "");
  const auto [it, added] = tracks_.emplace(Place(node, name), tracks_.size() + 1);
  if (!added) return it->second;
  perfetto::TrackDescriptor& d = descriptors_.emplace_back();
  d.set_uuid(it->second);
  d.set_name(name.empty() ? node : name);
  if (parent != 0) d.set_parent_uuid(parent);
  if (unit != nullptr) d.mutable_counter()->set_unit_name(unit);
  return it->second;
}

std::string Writer::Bytes() {
  // Events of one track keep their order where Perfetto's clock cannot tell them apart.
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  std::string bytes;
  perfetto::Trace one;
  const auto append = [&](perfetto::TracePacket* packet) {
    packet->set_trusted_packet_sequence_id(kSequence);
    bytes += one.SerializeAsString();
    one.Clear();
  };
  for (perfetto::TrackDescriptor& d : descriptors_) {
    perfetto::TracePacket* packet = one.add_packet();
    packet->mutable_track_descriptor()->Swap(&d);
    append(packet);
  }
  for (Event& e : events_) {
    perfetto::TracePacket* packet = one.add_packet();
    packet->set_timestamp(static_cast<std::uint64_t>(e.at / scale_));
    packet->mutable_track_event()->Swap(&e.event);
    append(packet);
  }
  return bytes;
}

}  // namespace

std::vector<NamedRankSlice> NamedRanks(const std::vector<RankSlice>& slices,
                                       const Topology& topology) {
  std::vector<NamedRankSlice> named;
  named.reserve(slices.size());
  for (const RankSlice& slice : slices) named.push_back({topology.NodeName(slice.node), slice});
  std::stable_sort(
      named.begin(), named.end(), [](const NamedRankSlice& a, const NamedRankSlice& b) {
        return std::pair(a.slice.rank, a.slice.begin) < std::pair(b.slice.rank, b.slice.begin);
      });
  return named;
}

std::vector<NamedDmaSlice> NamedDma(const std::vector<NodeDmaSlice>& slices,
                                    const Topology& topology) {
  std::vector<NamedDmaSlice> named;
  named.reserve(slices.size());
  for (const auto& [node, slice] : slices) named.push_back({topology.NodeName(node), slice});
  return named;
}

std::string AsPerfetto(const TracedPackets& packets, const NodeSlices& slices, std::int64_t scale) {
  return Writer(packets, slices, scale).Write();
}

}  // namespace percs
