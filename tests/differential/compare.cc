#include "tests/differential/compare.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "fmt/format.h"

namespace percs::reference {
namespace {

std::string ToText(const ReferenceDelivery& d) {
  return fmt::format("time {} source {} sequence {} flits {} path {:016x}", d.time, d.source,
                     d.sequence, d.flits, d.path);
}

std::string CompareDeliveries(NodeId node, const std::vector<ReferenceDelivery>& reference,
                              const std::vector<ReferenceDelivery>& engine) {
  const std::size_t common = std::min(reference.size(), engine.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (reference[i] == engine[i]) continue;
    return fmt::format("node {} delivery {}: reference {}; engine {}", node, i,
                       ToText(reference[i]), ToText(engine[i]));
  }
  if (reference.size() > common) {
    return fmt::format("node {} delivery {}: reference {}; engine has none", node, common,
                       ToText(reference[common]));
  }
  if (engine.size() > common) {
    return fmt::format("node {} delivery {}: reference has none; engine {}", node, common,
                       ToText(engine[common]));
  }
  return "";
}

class Comparison {
 public:
  Comparison(NodeId node, std::vector<std::string>* differences)
      : node_(node), differences_(differences) {}
  void Check(const std::string& name, std::uint64_t reference, std::uint64_t engine) {
    if (reference == engine) return;
    differences_->push_back(
        fmt::format("node {} {}: reference {}, engine {}", node_, name, reference, engine));
  }

 private:
  NodeId node_;
  std::vector<std::string>* differences_;
};

void ComparePorts(const NodeStats& r, const NodeStats& e, Comparison& c) {
  for (PortId port = 0; port < kPorts; ++port) {
    const PortStats &a = r.ports[port], &b = e.ports[port];
    const std::string name = fmt::format("port {} ", port);
    c.Check(name + "credit_stall_ps", a.credit_stall_ps, b.credit_stall_ps);
    c.Check(name + "crc_errors", a.crc_errors, b.crc_errors);
    c.Check(name + "replays", a.replays, b.replays);
    c.Check(name + "lanes_lost", a.lanes_lost, b.lanes_lost);
    c.Check(name + "service_flits", a.service_flits, b.service_flits);
    for (int v = 0; v < kMaxVcs; ++v) {
      const VcStats &x = a.vc[v], &y = b.vc[v];
      const std::string vc = fmt::format("port {} VC {} ", port, v);
      c.Check(vc + "flits", x.flits, y.flits);
      c.Check(vc + "packets", x.packets, y.packets);
      c.Check(vc + "bytes", x.bytes, y.bytes);
      c.Check(vc + "runs_split", x.runs_split, y.runs_split);
      c.Check(vc + "arbitration_losses", x.arbitration_losses, y.arbitration_losses);
      c.Check(vc + "credit_stalls", x.credit_stalls, y.credit_stalls);
      c.Check(vc + "credit_stall_ps", x.credit_stall_ps, y.credit_stall_ps);
      c.Check(vc + "most_held", x.most_held, y.most_held);
    }
  }
}

void CompareStats(NodeId node, const NodeStats& r, const NodeStats& e,
                  std::vector<std::string>* differences) {
  Comparison c(node, differences);
  c.Check("packets_created", r.packets_created, e.packets_created);
  c.Check("flits_created", r.flits_created, e.flits_created);
  c.Check("packets_delivered", r.packets_delivered, e.packets_delivered);
  c.Check("flits_delivered", r.flits_delivered, e.flits_delivered);
  c.Check("bytes_delivered", r.bytes_delivered, e.bytes_delivered);
  c.Check("packets_synthesised", r.packets_synthesised, e.packets_synthesised);
  c.Check("flits_synthesised", r.flits_synthesised, e.flits_synthesised);
  for (int i = 0; i < kDropReasons; ++i) {
    c.Check(fmt::format("packets_dropped[{}]", i), r.packets_dropped[i], e.packets_dropped[i]);
    c.Check(fmt::format("flits_dropped[{}]", i), r.flits_dropped[i], e.flits_dropped[i]);
  }
  c.Check("packets_replicated", r.packets_replicated, e.packets_replicated);
  c.Check("flits_replicated", r.flits_replicated, e.flits_replicated);
  c.Check("hops_delivered", r.hops_delivered, e.hops_delivered);
  for (int i = 0; i < kPacketRouteModes; ++i) {
    c.Check(fmt::format("packets_by_mode[{}]", i), r.packets_by_mode[i], e.packets_by_mode[i]);
  }
  c.Check("service_requests", r.service_requests, e.service_requests);
  c.Check("service_answers", r.service_answers, e.service_answers);
  c.Check("service_unanswered", r.service_unanswered, e.service_unanswered);
  c.Check("service_wrong_partner", r.service_wrong_partner, e.service_wrong_partner);
  c.Check("service_round_trip_ps", r.service_round_trip_ps, e.service_round_trip_ps);
  c.Check("service_round_trip_max", r.service_round_trip_max, e.service_round_trip_max);
  ComparePorts(r, e, c);
  c.Check("packet_latency.count", r.packet_latency.count, e.packet_latency.count);
  c.Check("packet_latency.sum", r.packet_latency.sum, e.packet_latency.sum);
  c.Check("packet_latency.max", r.packet_latency.max, e.packet_latency.max);
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    if (r.packet_latency.buckets[i] == e.packet_latency.buckets[i]) continue;
    c.Check(fmt::format("packet_latency bucket {}", i), r.packet_latency.buckets[i],
            e.packet_latency.buckets[i]);
  }
}

}  // namespace

std::vector<std::string> Differences(const ReferenceResult& reference, const Observed& engine) {
  std::vector<std::string> differences;
  if (engine.deliveries.size() != reference.nodes.size() ||
      engine.stats.size() != reference.nodes.size()) {
    return {fmt::format("reference has {} nodes, engine {}", reference.nodes.size(),
                        engine.stats.size())};
  }
  for (NodeId n = 0; n < reference.nodes.size(); ++n) {
    std::string difference =
        CompareDeliveries(n, reference.nodes[n].deliveries, engine.deliveries[n]);
    if (!difference.empty()) differences.push_back(std::move(difference));
  }
  for (NodeId n = 0; n < reference.nodes.size(); ++n) {
    CompareStats(n, reference.nodes[n].stats, engine.stats[n], &differences);
  }
  return differences;
}

}  // namespace percs::reference
