#include "tests/differential/compare.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include "emulator/metrics/named_counters.h"
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

template <typename Rows, typename Stats>
bool RowsDiffer(const Rows& rows, const Stats& r, const Stats& e) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const auto& row) { return r.*row.member != e.*row.member; });
}

template <typename Rows, typename Stats>
void CompareRows(const std::string& where, const Rows& rows, const Stats& r, const Stats& e,
                 Comparison& c) {
  for (const auto& row : rows) c.Check(where + row.name, r.*row.member, e.*row.member);
}

// The reference models neither messages, payload checks and measurement, nor management.
bool IsModelled(const NamedCounter& counter) {
  constexpr std::string_view kNotModelled[] = {"messages_sent",
                                               "messages_acknowledged",
                                               "messages_failed",
                                               "messages_delivered",
                                               "message_bytes_delivered",
                                               "packets_resent",
                                               "acks_sent",
                                               "payload_errors",
                                               "payload_bytes_verified",
                                               "measured_bytes_offered",
                                               "measured_bytes_accepted",
                                               "alerts_raised",
                                               "tables_installed"};
  return std::find(std::begin(kNotModelled), std::end(kNotModelled), counter.name) ==
         std::end(kNotModelled);
}

const std::vector<NamedCounter>& ModelledCounters() {
  static const auto* const modelled = [] {
    auto* counters = new std::vector<NamedCounter>();
    std::copy_if(NamedCounters().begin(), NamedCounters().end(), std::back_inserter(*counters),
                 IsModelled);
    return counters;
  }();
  return *modelled;
}

void CompareStats(NodeId node, const NodeStats& r, const NodeStats& e,
                  std::vector<std::string>* differences) {
  Comparison c(node, differences);
  for (const NamedCounter& counter : ModelledCounters())
    c.Check(counter.name, counter.Of(r), counter.Of(e));
  for (PortId port = 0; port < kPorts; ++port) {
    const PortStats &a = r.ports[port], &b = e.ports[port];
    if (RowsDiffer(kPortCounters, a, b))
      CompareRows(fmt::format("port {} ", port), kPortCounters, a, b, c);
    for (int v = 0; v < kMaxVcs; ++v) {
      if (!RowsDiffer(kVcCounters, a.vc[v], b.vc[v])) continue;
      CompareRows(fmt::format("port {} VC {} ", port, v), kVcCounters, a.vc[v], b.vc[v], c);
    }
  }
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
