#include "emulator/workload/trace_traffic.h"

#include "fmt/format.h"

namespace percs {
namespace {

// Number of a rank among those of its hub, and back.
std::uint32_t LocalIndex(const TraceWorkload& workload, std::uint32_t rank, std::uint32_t ranks,
                         NodeId nodes) {
  return workload.mapping == RankMapping::kRoundRobin ? rank / nodes
                                                      : rank % ((ranks + nodes - 1) / nodes);
}
std::uint32_t RankOf(const TraceWorkload& workload, NodeId node, std::uint32_t index,
                     std::uint32_t ranks, NodeId nodes) {
  return workload.mapping == RankMapping::kRoundRobin
             ? index * nodes + node
             : node * ((ranks + nodes - 1) / nodes) + index;
}

}  // namespace

absl::Status TraceTraffic::Check(const TraceWorkload& workload, const Topology& topology,
                                 int windows) {
  // Hub 0 has as many ranks as any.
  const auto ranks = static_cast<std::uint32_t>(workload.trace.ranks.size());
  const std::size_t here = RanksOfNode(workload.mapping, 0, ranks, topology.leaves()).size();
  if (here <= static_cast<std::size_t>(windows)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a trace of {} ranks puts {} on each of {} hubs; a hub has {} windows", ranks,
                  here, topology.leaves(), windows));
}

TraceTraffic::TraceTraffic(const TraceWorkload& workload, const Topology& topology,
                           HubServices& hub)
    : workload_(workload),
      topology_(topology),
      hub_(hub),
      rank_count_(static_cast<std::uint32_t>(workload.trace.ranks.size())),
      replay_(workload,
              RanksOfNode(workload.mapping, hub.context().node, rank_count_, topology.leaves()),
              hub.context().parameters->send_overhead, hub.context().parameters->receive_overhead) {
}

void TraceTraffic::Start() {
  counted_ = !replay_.done();
  if (counted_) ++hub_.context().work->unfinished;
  replay_.Start(hub_.context().now, *this);
  NoteDone();
}

void TraceTraffic::OnTimer(std::uint64_t token) {
  replay_.OnTimer(hub_.context().now, token, *this);
  NoteDone();
}

void TraceTraffic::OnMessage(const DeliveredMessage& message) {
  replay_.OnMessage(hub_.context().now, RankAt(message.source, message.source_window),
                    RankAt(hub_.context().node, message.destination_window), message.tag,
                    message.bytes, *this);
  NoteDone();
}

void TraceTraffic::NoteDone() {
  if (!counted_ || !replay_.done()) return;
  counted_ = false;
  --hub_.context().work->unfinished;
  hub_.context().last_event = hub_.context().now;
}

void TraceTraffic::SendMessage(std::uint32_t source_rank, std::uint32_t destination_rank,
                               std::uint32_t tag, std::uint64_t bytes) {
  hub_.SendMessage(
      {NodeOfRank(workload_.mapping, destination_rank, rank_count_, topology_.leaves()),
       WindowOf(source_rank), WindowOf(destination_rank), bytes, tag, false});
}

WindowId TraceTraffic::WindowOf(std::uint32_t rank) const {
  const std::uint32_t index = LocalIndex(workload_, rank, rank_count_, topology_.leaves());
  const std::uint32_t per_hfi =
      static_cast<std::uint32_t>(hub_.context().parameters->windows_per_hfi);
  return static_cast<WindowId>(index % kHfisPerHub * per_hfi + index / kHfisPerHub);
}

std::uint32_t TraceTraffic::RankAt(NodeId node, WindowId window) const {
  const std::uint32_t per_hfi =
      static_cast<std::uint32_t>(hub_.context().parameters->windows_per_hfi);
  return RankOf(workload_, node, window % per_hfi * kHfisPerHub + window / per_hfi, rank_count_,
                topology_.leaves());
}

}  // namespace percs
