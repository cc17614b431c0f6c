#include "emulator/sim/arrival_check.h"

#include <algorithm>

#include "emulator/node/hub.h"
#include "fmt/format.h"

namespace percs {

absl::Status ArrivalCheck::CheckEnd(const char* what, LinkEnd end, VcId vc, Time arrival,
                                    Time now) const {
  if (!HubAt(end.node)) {
    return absl::InvalidArgumentError(
        fmt::format("{} for node {}, which is not in this process", what, end.node));
  }
  if (end.port >= kLinkPorts || !hubs_[end.node]->isr().output(end.port).connected) {
    return absl::InvalidArgumentError(
        fmt::format("{} for port {} of {}, where no link is plugged in", what, end.port,
                    topology_.NodeName(end.node)));
  }
  const int vcs = hubs_[end.node]->isr().output(end.port).vcs;
  if (vc >= vcs) {
    return absl::InvalidArgumentError(fmt::format("{} for VC {} of {}, which has VCs 0..{}", what,
                                                  vc, topology_.LinkName(end), vcs - 1));
  }
  if (arrival < now) {
    return absl::InvalidArgumentError(
        fmt::format("{} for {} arrives at {}, but virtual time is already {}", what,
                    topology_.LinkName(end), FormatTime(arrival), FormatTime(now)));
  }
  return absl::OkStatus();
}

absl::Status ArrivalCheck::CheckOperation(NodeId node, Time at, Time now) const {
  if (node >= topology_.leaves()) {
    return absl::InvalidArgumentError(fmt::format(
        "an operation for a window of node {}, which has none; nodes 0..{} have windows", node,
        topology_.leaves() - 1));
  }
  if (at >= now) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("an operation for a window at {} is in the past: virtual time is {}",
                  FormatTime(at), FormatTime(now)));
}

absl::Status ArrivalCheck::CheckRun(const FlitRun& run) const {
  const int last = run.first + run.count;
  const int windows = kHfisPerHub * scenario_.parameters.windows_per_hfi;
  const PacketHeader& h = run.header;
  if (run.count == 0 || last > kPacketFlitsMax + 1 || run.spacing < 0) {
    return absl::InvalidArgumentError(
        fmt::format("a run of flits {}..{} of a packet; a packet has 1..{}", run.first, last - 1,
                    kPacketFlitsMax));
  }
  if ((run.vc == kServiceVc) != (h.kind == PacketKind::kService) ||
      (run.vc == kServiceVc && last != 1)) {
    return absl::InvalidArgumentError("management packets have one flit and a separate VC");
  }
  if (run.first == 0 &&
      (h.destination >= topology_.destinations() || h.source >= topology_.nodes() || h.flits == 0 ||
       h.flits > kPacketFlitsMax || h.bytes > kPacketBytesMax || h.source_window >= windows ||
       h.destination_window >= windows ||
       (IsIndirect(h.mode) && h.middle >= topology_.supernodes()))) {
    return absl::InvalidArgumentError(fmt::format(
        "a packet header from node {} window {} over supernode {} to node {} window {} of {} flits "
        "and "
        "{} bytes; nodes are 0..{}, windows 0..{}, supernodes 0..{}, flits 1..16, bytes 0..2048",
        h.source, h.source_window, h.middle, h.destination, h.destination_window, h.flits, h.bytes,
        topology_.destinations() - 1, windows - 1, topology_.supernodes() - 1));
  }
  return absl::OkStatus();
}

bool ArrivalCheck::TreeFits(const ControlItem& item) const {
  if (item.kind != ControlItem::Kind::kTreeSet) return item.plan == nullptr;
  return item.plan && item.plan->id == item.tree && !item.plan->vertices.empty() &&
         std::all_of(item.plan->vertices.begin(), item.plan->vertices.end(),
                     [this](const TreeVertex& v) { return v.node < topology_.hubs(); });
}

absl::Status ArrivalCheck::Check(const Outbox& incoming, bool manages, Time now) const {
  for (const FlitRun& run : incoming.flits) {
    const VcId vc = run.vc == kServiceVc ? VcId{0} : run.vc;  // that one every link has
    if (absl::Status s = CheckEnd("flits", {run.node, run.port}, vc, run.arrival, now); !s.ok())
      return s;
    if (absl::Status s = CheckRun(run); !s.ok()) return s;
  }
  for (const CreditRun& run : incoming.credits) {
    const bool service = run.vc == kServiceVc;
    if (absl::Status s =
            CheckEnd("credits", {run.node, run.port}, service ? 0 : run.vc, run.arrival, now);
        !s.ok())
      return s;
    const P7ihParameters& p = scenario_.ParametersOf(topology_, run.node);
    const int slots = service ? p.service_buffer_flits : p.link(ClassOf(run.port)).buffer_flits;
    if (run.count == 0 || run.count > slots || run.spacing < 0) {
      return absl::InvalidArgumentError(
          fmt::format("{} credits for {}, whose buffers hold {} flits", run.count,
                      topology_.LinkName({run.node, run.port}), slots));
    }
  }
  for (const PoisonMark& mark : incoming.marks) {
    if (absl::Status s =
            CheckEnd("a poison mark", {mark.node, mark.port}, mark.vc, mark.arrival, now);
        !s.ok())
      return s;
  }
  for (const ControlItem& item : incoming.control) {
    const bool to_manager = item.target == kManagerNode;
    const bool here = to_manager ? manages : HubAt(item.target) != nullptr;
    const bool meant =
        to_manager ? item.for_manager() && item.source < topology_.nodes() : item.for_hub();
    const bool of_port =
        item.kind == ControlItem::Kind::kAlert || item.kind == ControlItem::Kind::kWiringAlert;
    if (to_manager && of_port && item.source < topology_.nodes() &&
        (item.port >= kLinkPorts || !topology_.connected(item.source, item.port))) {
      return absl::InvalidArgumentError(
          fmt::format("an alert of port {} of {}, where no link is plugged in", item.port,
                      topology_.NodeName(item.source)));
    }
    const bool linked = item.kind != ControlItem::Kind::kLinkLost ||
                        (here && !to_manager && item.port < kLinkPorts &&
                         hubs_[item.target]->isr().output(item.port).connected);
    if (item.kind == ControlItem::Kind::kClock) {
      if (absl::Status s =
              CheckEnd("a sync symbol", {item.target, item.port}, 0, item.arrival, now);
          !s.ok())
        return s;
      if (HubAt(item.target)->has_clock()) continue;
    }
    if (item.kind == ControlItem::Kind::kCongestion) {
      if (absl::Status s =
              CheckEnd("a congestion report", {item.target, item.port}, 0, item.arrival, now);
          !s.ok())
        return s;
      if (HubAt(item.target)->hears_congestion() && IsL(item.port) && item.hops < kDPorts) continue;
    }
    if (!here || !meant || !linked || item.kind == ControlItem::Kind::kClock ||
        item.kind == ControlItem::Kind::kCongestion || item.arrival < now || !TreeFits(item)) {
      return absl::InvalidArgumentError(
          fmt::format("a control message for {} at {}; virtual time is {}", item.target,
                      FormatTime(item.arrival), FormatTime(now)));
    }
  }
  return absl::OkStatus();
}

}  // namespace percs
