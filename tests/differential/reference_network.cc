#include "tests/differential/reference_network.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "emulator/base/payload.h"
#include "fmt/format.h"

namespace percs::reference {

bool Poisoned(const Flit& flit) { return flit.poisoned || (flit.from && Poisoned(*flit.from)); }
bool Corrupted(const Flit& flit) { return flit.corrupted || (flit.from && Corrupted(*flit.from)); }

std::shared_ptr<QueuedPacket> Buffer::Front(PortId output) const {
  for (const auto& queued : packets) {
    if (queued->output == output && !queued->drop) return queued;
  }
  return nullptr;
}

std::shared_ptr<QueuedPacket> Buffer::Newest() const {
  for (auto it = packets.rbegin(); it != packets.rend(); ++it) {
    if (!(*it)->branch) return *it;
  }
  return nullptr;
}

Network::Network(const ReferenceInput& input)
    : topology_(*input.topology),
      parameters_(input.parameters),
      seed_(input.seed),
      routing_(input.routing) {
  if (topology_.graph() != nullptr) graph_.emplace(topology_);
  result_.nodes.resize(topology_.nodes());
  hubs_.resize(topology_.nodes());
  for (NodeId node = 0; node < topology_.nodes(); ++node) BuildHub(node);
  ScheduleInput(input);
}

void Network::BuildHub(NodeId node) {
  Hub& hub = hubs_[node];
  hub.id = node;
  for (ServiceLane& lane : hub.service) lane.credits = parameters_.service_buffer_flits;
  hub.routing = RandomStream(seed_, fmt::format("node/{}/routing", node));
  hub.outputs[kServicePort];  // only management packets leave by it
  for (int p = 0; p < kServicePort; ++p) {
    const auto port = static_cast<PortId>(p);
    if (!IsHfi(port) && !topology_.connected(node, port)) continue;
    const int depth = ClassParameters(port).buffer_flits;
    Output& output = hub.outputs[port];
    output.vcs.resize(VcsOf(port));
    for (OutputVc& vc : output.vcs) {
      for (int i = 0; i < depth; ++i) vc.credits.insert(0);
    }
    if (IsHfi(port)) continue;  // the queues of an HFI port, one per output, are made on first use
    for (int vc = 0; vc < VcsOf(port); ++vc) hub.buffers[{port, vc}] = Buffer{port, vc, depth, {}};
  }
}

void Network::ScheduleInput(const ReferenceInput& input) {
  packets_ = input.packets;
  std::stable_sort(packets_.begin(), packets_.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < packets_.size(); ++i) {
    Schedule(packets_[i].at, kCreate, packets_[i].source, 0, 0, [this, i] { Create(i); });
  }
  for (const Cable& cable : input.cables)
    LinkAt(cable.link.node, cable.link.port).wire = cable.wire;
  ScheduleFaults(input.faults);
  if (input.service.any()) ScheduleService(input.service);
  if (routing_.reports() != CongestionReport::kNone) ScheduleLook(parameters_.congestion_period);
  for (const TableSwitch& change : input.tables) {
    Schedule(change.at, kEpoch, 0, 0, 0, [this, tables = change.tables] { tables_ = tables; });
  }
}

void Network::Schedule(Time at, Class order, NodeId node, int port, int lane,
                       std::function<void()> action) {
  events_.emplace(Key{at, order, node, port, lane, ++serial_}, std::move(action));
}

LinkEnd Network::LowerEnd(LinkEnd end) const {
  const LinkEnd peer = topology_.Peer(end.node, end.port);
  return std::pair(peer.node, peer.port) < std::pair(end.node, end.port) ? peer : end;
}

void Network::Wake(NodeId node, Time at) {
  PERCS_CHECK(at >= now_);
  events_.try_emplace(Key{at, kSettle, node, 0, 0, 0}, [this, node] { Settle(node); });
  events_.try_emplace(Key{at, kArbitrate, node, 0, 0, 0}, [this, node] { Arbitrate(node); });
  WakeInjection(node, at);
}

void Network::WakeInjection(NodeId node, Time at) {
  events_.try_emplace(Key{at, kInject, node, 0, 0, 0}, [this, node] { Inject(node); });
}

Link& Network::LinkAt(NodeId node, PortId port) {
  const LinkEnd peer = topology_.Peer(node, port);
  return links_[std::min(std::pair(node, port), std::pair(peer.node, peer.port))];
}

const LinkParameters& Network::ClassParameters(PortId port) const {
  return parameters_.link(ClassOf(port));
}

Time Network::Propagation(NodeId node, PortId port) {
  Link& link = LinkAt(node, port);
  return link.wire.value_or(ClassParameters(port).wire) + link.latency[node];
}

ReferenceResult Network::Run() {
  Key previous{-1, 0, 0, 0, 0, 0};
  while (!events_.empty()) {
    auto event = events_.extract(events_.begin());
    // An event may only cause later ones: an instant never goes back to an earlier stage.
    PERCS_CHECK(std::tuple(previous.time, previous.order) <=
                std::tuple(event.key().time, event.key().order));
    previous = event.key();
    now_ = event.key().time;
    if (event.key().order != kCongestion) result_.end = now_;
    ++result_.events;
    event.mapped()();
  }
  return Finish();
}

ReferenceResult Network::Finish() {
  for (Hub& hub : hubs_) {
    for (auto& [key, buffer] : hub.buffers) result_.resident_packets += buffer.packets.size();
    for (auto& [port, output] : hub.outputs) {
      if (!LinkUp(hub.id, port)) continue;
      if (!IsHfi(port) && hub.service[port].credits + hub.service[port].credits_under_way !=
                              parameters_.service_buffer_flits) {
        ++result_.credits_wrong;
      }
      const int depth = ClassParameters(port).buffer_flits;
      for (OutputVc& vc : output.vcs) {
        if (static_cast<int>(vc.credits.size()) != depth) ++result_.credits_wrong;
      }
    }
    for (const auto& lane : hub.service) result_.resident_packets += lane.waiting.size();
    for (HfiPort& port : hub.hfi) {
      for (auto& [output, queue] : port.send) result_.resident_packets += queue.size();
    }
  }
  return std::move(result_);
}

ReferenceResult RunReference(const ReferenceInput& input) { return Network(input).Run(); }

namespace {
template <typename Visit>
void VisitCoverage(const Coverage& c, Visit&& visit) {
  visit("credit_stalls", c.credit_stalls);
  visit("slow_to_fast_waits", c.slow_to_fast_waits);
  visit("fast_to_slow", c.fast_to_slow);
  visit("buffer_full_starts", c.buffer_full_starts);
  visit("vc_interleaves", c.vc_interleaves);
  visit("runs_split_by_credit", c.runs_split_by_credit);
  visit("runs_split_by_presence", c.runs_split_by_presence);
  visit("continuations", c.continuations);
  visit("lost_after_split", c.lost_after_split);
  visit("future_credits_used", c.future_credits_used);
  visit("down_mid_packet", c.down_mid_packet);
  visit("down_mid_commitment", c.down_mid_commitment);
  visit("poison_tails_added", c.poison_tails_added);
  visit("poison_tails_in_place", c.poison_tails_in_place);
  visit("poison_overtaken", c.poison_overtaken);
  visit("down_again_before_poison", c.down_again_before_poison);
  visit("begun_packets_drained", c.begun_packets_drained);
  visit("waiting_packets_drained", c.waiting_packets_drained);
  visit("credits_of_old_generation", c.credits_of_old_generation);
  visit("credits_after_up", c.credits_after_up);
  visit("slots_promised_twice", c.slots_promised_twice);
  visit("grants_after_up", c.grants_after_up);
  visit("injection_waits_for_w", c.injection_waits_for_w);
  visit("ejection_waits_for_w", c.ejection_waits_for_w);
  visit("isr_queue_full", c.isr_queue_full);
  visit("contended_grants", c.contended_grants);
  visit("contended_vcs", c.contended_vcs);
  visit("route_choices", c.route_choices);
  visit("striped", c.striped);
  visit("sw_indirect", c.sw_indirect);
  visit("indirect_round_robin", c.indirect_round_robin);
  visit("indirect_random", c.indirect_random);
  visit("striped_choices", c.striped_choices);
  visit("middle_l_hops", c.middle_l_hops);
  visit("middles_closed", c.middles_closed);
  visit("indirect_went_direct", c.indirect_went_direct);
  visit("adaptive_direct", c.adaptive_direct);
  visit("adaptive_indirect", c.adaptive_indirect);
  visit("diverted", c.diverted);
  visit("congestion_reports", c.congestion_reports);
  visit("congestion_reports_lost", c.congestion_reports_lost);
  visit("pb_direct", c.pb_direct);
  visit("pb_indirect", c.pb_indirect);
  visit("multicasts", c.multicasts);
  visit("branches", c.branches);
  visit("branches_dropped", c.branches_dropped);
  visit("multicasts_truncated", c.multicasts_truncated);
  visit("multicasts_overtaking", c.multicasts_overtaking);
  visit("replays", c.replays);
  visit("replays_in_a_row", c.replays_in_a_row);
  visit("replays_exhausted", c.replays_exhausted);
  visit("runs_split_by_error", c.runs_split_by_error);
  visit("rates_reduced", c.rates_reduced);
  visit("given_up_too_late", c.given_up_too_late);
  visit("retrained", c.retrained);
  visit("links_without_lanes", c.links_without_lanes);
  visit("fronts_moved_by_rate", c.fronts_moved_by_rate);
  visit("latencies_added", c.latencies_added);
  visit("held_behind_latency", c.held_behind_latency);
  visit("credits_of_changed_rate", c.credits_of_changed_rate);
  visit("corrupted_packets", c.corrupted_packets);
  visit("truncated", c.truncated);
  visit("no_route", c.no_route);
  visit("no_vc_position", c.no_vc_position);
  visit("detours", c.detours);
  visit("service_grants", c.service_grants);
  visit("service_waits", c.service_waits);
  visit("service_made_way", c.service_made_way);
  visit("service_lacked_credit", c.service_lacked_credit);
  visit("service_no_slot", c.service_no_slot);
  visit("service_timeouts", c.service_timeouts);
  visit("service_link_down", c.service_link_down);
  visit("service_answers", c.service_answers);
  visit("service_repeats", c.service_repeats);
  visit("service_unanswered", c.service_unanswered);
}
}  // namespace

void Coverage::Add(const Coverage& other) {
  std::vector<std::uint64_t> values;
  VisitCoverage(other, [&](const char*, std::uint64_t v) { values.push_back(v); });
  std::size_t i = 0;
  VisitCoverage(*this, [&](const char*, const std::uint64_t& v) {
    const_cast<std::uint64_t&>(v) += values[i++];
  });
}

std::vector<std::string> Coverage::Missing() const {
  std::vector<std::string> names;
  VisitCoverage(*this, [&](const char* name, std::uint64_t v) {
    if (v == 0) names.emplace_back(name);
  });
  return names;
}

std::string Coverage::ToString() const {
  std::string text;
  VisitCoverage(*this, [&](const char* name, std::uint64_t v) {
    text += fmt::format("  {:26} {:>12}\n", name, v);
  });
  return text;
}

}  // namespace percs::reference
