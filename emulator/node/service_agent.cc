#include "emulator/node/service_agent.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"

namespace percs {

absl::Status CheckPing(const ServicePing& ping, const Topology& topology) {
  const auto is_hub = [&](NodeId node) { return node < topology.hubs(); };
  const auto name = [&](NodeId node) {
    return node < topology.nodes() ? topology.NodeName(node) : fmt::format("node {}", node);
  };
  if (!is_hub(ping.from) || !is_hub(ping.to) || ping.from == ping.to) {
    return absl::InvalidArgumentError(
        fmt::format("{} pings {}; write two different hubs", name(ping.from), name(ping.to)));
  }
  if (ping.count < 1 || ping.period < 1) {
    return absl::InvalidArgumentError(fmt::format(
        "{} times every {}; write at least 1 time and 1ps", ping.count, FormatTime(ping.period)));
  }
  return absl::OkStatus();
}

absl::Status CheckService(const ServiceTraffic& traffic, const Topology& topology) {
  std::uint64_t requests = 0;
  for (std::size_t i = 0; i < traffic.pings.size(); ++i) {
    if (const absl::Status status = CheckPing(traffic.pings[i], topology); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("pings[", i, "]: ", status.message()));
    }
    requests += std::min(traffic.pings[i].count, ServiceAgent::kRequestsMax);
  }
  if (traffic.any() && (traffic.timeout < 1 || traffic.tries < 1 || traffic.probe_period < 1)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} tries of {}, probes every {}; write at least 1 try and times of at least 1ps",
        traffic.tries, FormatTime(traffic.timeout), FormatTime(traffic.probe_period)));
  }
  requests += std::min(traffic.probe_rounds, ServiceAgent::kRequestsMax) * kLinkPorts;
  if (requests > ServiceAgent::kRequestsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} or more requests (rounds of probes x {} links, and all pings); write at most {}",
        requests, kLinkPorts, ServiceAgent::kRequestsMax));
  }
  return absl::OkStatus();
}

ServiceAgent::ServiceAgent(NodeContext& context, Isr& isr, const ServiceTraffic& traffic,
                           TellWiring tell_wiring)
    : context_(context), isr_(isr), traffic_(traffic), tell_wiring_(std::move(tell_wiring)) {
  for (const ServicePing& ping : traffic.pings) {
    if (ping.from != context.node) continue;
    for (std::uint64_t k = 0; k < ping.count; ++k) {
      requests_.push_back({.at = ping.at + static_cast<Time>(k) * ping.period, .to = ping.to});
    }
  }
  for (std::uint64_t k = 0; k < traffic.probe_rounds; ++k) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const NodeId peer = context.topology->Peer(context.node, port).node;
      if (peer >= context.topology->hubs()) continue;  // nothing, or a blade
      requests_.push_back({.at = traffic.probe_at + static_cast<Time>(k) * traffic.probe_period,
                           .to = peer,
                           .port = port});
    }
  }
}

void ServiceAgent::Start() {
  context_.work->unfinished += static_cast<std::int64_t>(requests_.size());
  for (std::size_t id = 0; id < requests_.size(); ++id) {
    context_.queue.Push(requests_[id].at, EventKey(EventClass::kHfi, kServiceTimer, 0, id), id);
  }
}

void ServiceAgent::StartAt(Time now, std::uint64_t first) {
  sequence_ += first;
  std::erase_if(requests_, [now](const Request& request) { return request.at < now; });
  Start();
}

void ServiceAgent::OnTimer(std::uint64_t id) {
  Request& request = requests_[id];
  if (request.done) return;
  context_.last_event = std::max(context_.last_event, context_.now);
  if (request.tries == traffic_.tries) {
    request.done = true;
    ++context_.stats.service_unanswered;
    --context_.work->unfinished;
    return;
  }
  ++request.tries;
  request.sent = context_.now;
  ++context_.stats.service_requests;
  context_.queue.Push(context_.now + traffic_.timeout,
                      EventKey(EventClass::kHfi, kServiceTimer, 0, id), id);
  Send(request.to, request.port, request.port == kNoPort ? 0 : kServiceDirected, id, 0);
}

void ServiceAgent::Send(NodeId to, PortId port, std::uint32_t tag, std::uint64_t id,
                        std::uint64_t identity) {
  Packet* p = context_.packets.Take();
  p->ResetState();
  PacketHeader& header = p->header;
  header.ResetRaw();
  header.kind = PacketKind::kService;
  header.source = context_.node;
  header.destination = to;
  header.source_window = header.destination_window = 0;
  header.flits = 1;
  header.epoch = isr_.router().epoch();
  header.sequence = ++sequence_;
  header.created = context_.now;
  header.flow_sequence = static_cast<std::uint32_t>(id);
  header.tag = tag;
  header.offset = identity;
  isr_.EnterService(p, port);
}

void ServiceAgent::OnPacket(const PacketHeader& header, PortId in) {
  if (header.tag & kAnswer) {
    if (header.flow_sequence < requests_.size()) OnAnswer(header, requests_[header.flow_sequence]);
    return;
  }
  const bool directed = header.tag & kServiceDirected;
  Send(header.source, directed ? in : kNoPort, header.tag | kAnswer, header.flow_sequence,
       Identity(context_.node, directed ? in : kNoPort));
}

void ServiceAgent::OnAnswer(const PacketHeader& header, Request& request) {
  if (request.done) return;  // of an earlier try
  request.done = true;
  --context_.work->unfinished;
  NodeStats& stats = context_.stats;
  ++stats.service_answers;
  const auto took = static_cast<std::uint64_t>(context_.now - request.sent);
  stats.service_round_trip_ps += took;
  stats.service_round_trip_max = std::max(stats.service_round_trip_max, took);
  const PortId at =
      request.port == kNoPort ? kNoPort : context_.topology->Peer(context_.node, request.port).port;
  const bool right = header.offset == Identity(request.to, at);
  if (!right) ++stats.service_wrong_partner;
  if (request.port == kNoPort) return;
  const std::uint64_t wrong = right ? 0 : header.offset + 1;  // node 0 and port 0 are valid, too
  if (std::exchange(wrong_[request.port], wrong) != wrong)
    tell_wiring_(request.port, header.offset, right);
}

}  // namespace percs
