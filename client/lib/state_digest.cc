#include "client/lib/state_digest.h"

#include "proto/convert/counters.h"

namespace percs {
namespace {

void Add(const NodeStats& s, DigestStream* digest) {
  for (const std::uint64_t value :
       {s.packets_delivered, s.flits_delivered, s.bytes_delivered, s.hops_delivered,
        s.messages_delivered, s.message_bytes_delivered, s.packet_latency.count,
        s.packet_latency.sum, s.packet_latency.max}) {
    digest->Add(value);
  }
}

}  // namespace

std::string DeliveredDigest(const Fabric& fabric) {
  DigestStream digest;
  for (const NodeId node : fabric.local_nodes()) Add(fabric.stats(node), &digest);
  return digest.Finish().ToString();
}

absl::StatusOr<std::string> DeliveredDigest(const v1::GetCountersReply& counters) {
  DigestStream digest;
  for (const v1::NodeCounters& node : counters.nodes()) {
    const auto stats = CountersFromProto(node.counters());
    if (!stats.ok()) return stats.status();
    Add(*stats, &digest);
  }
  return digest.Finish().ToString();
}

}  // namespace percs
