#include "emulator/isr/congestion.h"

#include <algorithm>
#include <utility>

namespace percs {

CongestionReports::CongestionReports(NodeId node, const Topology& topology,
                                     const P7ihParameters& parameters, const Isr& isr,
                                     CongestionReport reports,
                                     std::function<void(ControlItem&&)> send)
    : node_(node),
      topology_(topology),
      parameters_(parameters),
      isr_(isr),
      reports_(reports),
      send_(std::move(send)),
      told_(kDFirst) {
  for (PortId port = kDFirst; port < kHfiFirst; ++port) has_d_ |= topology.connected(node, port);
}

CongestionReports::Known CongestionReports::Behind(PortId port, int supernode) const {
  const bool own = IsD(port);
  Known known;
  if (port >= kLinkPorts || !topology_.connected(node_, port)) return known;
  const NodeId hub = own ? node_ : topology_.Peer(node_, port).node;
  const ByDPort& values = own ? own_ : told_[port].value;
  for (int d = 0; d < kDPorts; ++d) {
    const std::uint32_t value = values[static_cast<std::size_t>(d)];
    const PortId out = static_cast<PortId>(kDFirst + d);
    if (value == 0 || !topology_.connected(hub, out)) continue;
    const NodeId peer = topology_.Peer(hub, out).node;
    if (peer >= topology_.hubs() || topology_.supernode_of(peer) != supernode) continue;
    known.flits = std::max(known.flits, value / 2);
    known.congested |= value % 2 == 1;
  }
  return known;
}

void CongestionReports::Receive(const ControlItem& report) {
  under_way_.insert({report.arrival, report.port, report.hops, report.raised, report.epoch,
                     static_cast<std::uint32_t>(report.hash)});
}

void CongestionReports::Expect(Time at) {
  if (!has_d_ || at >= next_look_) return;
  const Time period = parameters_.congestion_period;
  next_look_ = std::min(next_look_, origin_ + (at - origin_) / period * period + period);
}

void CongestionReports::Run(Time now) {
  while (!under_way_.empty() && under_way_.begin()->arrival == now) {
    const Report report = *under_way_.begin();
    under_way_.erase(under_way_.begin());
    const OutputPort& link = isr_.output(report.port);
    if (!link.up || link.generation != report.generation) continue;  // lost with the link
    if (report.sent <= forgotten_) continue;
    Told& told = told_[report.port];
    const auto d = static_cast<std::size_t>(report.d_port);
    if (report.sent < told.sent[d]) continue;  // overtaken: the link's latency was changed
    told.sent[d] = report.sent;
    told.value[d] = report.value;
  }
  if (next_look_ == now) Look(now);
}

void CongestionReports::Look(Time now) {
  ByDPort waiting{};
  isr_.CountWaiting(&waiting);
  const bool any =
      std::any_of(waiting.begin(), waiting.end(), [](auto flits) { return flits > 0; });
  next_look_ = any ? now + parameters_.congestion_period : kNever;
  const ByDPort value = Values(waiting);
  for (int d = 0; d < kDPorts; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (value[i] == own_[i]) continue;
    own_[i] = value[i];
    for (PortId port = 0; port < kDFirst; ++port) Tell(port, d, now);
  }
}

CongestionReports::ByDPort CongestionReports::Values(const ByDPort& waiting) const {
  std::uint32_t all = 0, others = 0;
  for (int d = 0; d < kDPorts; ++d) {
    all += waiting[static_cast<std::size_t>(d)];
    others += topology_.connected(node_, static_cast<PortId>(kDFirst + d)) ? 1 : 0;
  }
  if (others > 0) --others;
  ByDPort value{};
  for (int d = 0; d < kDPorts; ++d) {
    const std::uint32_t flits = waiting[static_cast<std::size_t>(d)];
    const std::uint32_t twice_mean = others == 0 ? 0 : 2 * (all - flits) / others;
    const bool congested =
        flits >= static_cast<std::uint32_t>(parameters_.congestion_threshold) + twice_mean;
    value[static_cast<std::size_t>(d)] =
        (reports_ == CongestionReport::kCounts ? 2 * flits : 0) + (congested ? 1 : 0);
  }
  return value;
}

void CongestionReports::Tell(PortId port, int d_port, Time now) const {
  const OutputPort& out = isr_.output(port);
  if (!out.connected || !out.up) return;
  ControlItem report = out.ToPeer(ControlItem::Kind::kCongestion, node_);
  report.hops = static_cast<std::uint16_t>(d_port);
  report.raised = now;
  report.hash = own_[static_cast<std::size_t>(d_port)];
  report.arrival = now + out.wire + parameters_.credit_processing;
  send_(std::move(report));
}

void CongestionReports::OnLinkDown(PortId port) {
  if (port < kDFirst) told_[port] = Told();
}

void CongestionReports::OnLinkUp(PortId port, Time now) {
  if (port >= kDFirst) return;
  for (int d = 0; d < kDPorts; ++d) {
    if (own_[static_cast<std::size_t>(d)] != 0) Tell(port, d, now);
  }
}

void CongestionReports::Forget(Time now) {
  own_ = {};
  for (Told& told : told_) told = Told();
  forgotten_ = now;
}

void CongestionReports::BeginAgain(Time at) {
  origin_ = at;
  if (next_look_ != kNever) next_look_ = at + parameters_.congestion_period;
}

}  // namespace percs
