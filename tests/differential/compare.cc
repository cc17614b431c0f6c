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
  void Check(std::string_view name, std::uint64_t reference, std::uint64_t engine) {
    if (reference == engine) return;
    differences_->push_back(
        fmt::format("node {} {}: reference {}, engine {}", node_, name, reference, engine));
  }

 private:
  NodeId node_;
  std::vector<std::string>* differences_;
};

void ComparePorts(const NodeStats& r, const NodeStats& e, Comparison& c) {
  for (int port = 0; port < kPorts; ++port) {
    const PortStats &a = r.ports[port], &b = e.ports[port];
    if (std::tie(a.flits, a.packets, a.bytes, a.runs, a.runs_split, a.credit_stall_ps) ==
        std::tie(b.flits, b.packets, b.bytes, b.runs, b.runs_split, b.credit_stall_ps)) {
      continue;
    }
    const std::string name = fmt::format("port {} ", port);
    c.Check(name + "flits", a.flits, b.flits);
    c.Check(name + "packets", a.packets, b.packets);
    c.Check(name + "bytes", a.bytes, b.bytes);
    c.Check(name + "runs", a.runs, b.runs);
    c.Check(name + "runs_split", a.runs_split, b.runs_split);
    c.Check(name + "credit_stall_ps", a.credit_stall_ps, b.credit_stall_ps);
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
  c.Check("hops_delivered", r.hops_delivered, e.hops_delivered);
  for (int i = 0; i < kPacketRouteModes; ++i) {
    c.Check(fmt::format("packets_by_mode[{}]", i), r.packets_by_mode[i], e.packets_by_mode[i]);
  }
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
