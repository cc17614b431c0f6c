#include "client/mpi/summary.h"

#include <algorithm>

namespace percs::mpi {

void SummaryToProto(const RankSummary& summary, v1::EndedRank* message) {
  message->set_total(summary.total);
  message->set_computing(summary.computing);
  message->set_waiting(summary.waiting);
  message->set_attached(summary.attached);
  message->set_ended(summary.ended);
  message->set_times_high(summary.times.high);
  message->set_times_low(summary.times.low);
  const TrafficCounts& t = summary.traffic;
  message->set_messages(t.messages);
  message->set_bytes(t.bytes);
  message->set_eager(t.eager);
  message->set_rendezvous(t.rendezvous);
  message->set_local(t.local);
  message->set_packets(t.packets);
  message->set_resent(t.resent);
  message->set_acknowledgements(t.acknowledgements);
  message->set_unexpected(t.unexpected);
  for (const std::uint64_t count : t.by_size) message->add_by_size(count);
}

RankSummary SummaryFromProto(const v1::EndedRank& message) {
  RankSummary summary;
  summary.total = message.total();
  summary.computing = message.computing();
  summary.waiting = message.waiting();
  summary.attached = message.attached();
  summary.ended = message.ended();
  summary.times = {message.times_high(), message.times_low()};
  TrafficCounts& t = summary.traffic;
  t.messages = message.messages();
  t.bytes = message.bytes();
  t.eager = message.eager();
  t.rendezvous = message.rendezvous();
  t.local = message.local();
  t.packets = message.packets();
  t.resent = message.resent();
  t.acknowledgements = message.acknowledgements();
  t.unexpected = message.unexpected();
  const int sizes = std::min<int>(message.by_size_size(), std::size(t.by_size));
  for (int i = 0; i < sizes; ++i) t.by_size[i] = message.by_size(i);
  return summary;
}

void CollectivesToProto(const CollectiveCounts& counts, v1::EndRanksReply* message) {
  for (const std::uint64_t calls : counts.calls) message->add_collectives(calls);
  message->set_communicators(counts.groups);
  message->set_refused(counts.refused);
}

void AddCollectives(const v1::EndRanksReply& message, CollectiveCounts* counts) {
  const int kinds = std::min<int>(message.collectives_size(), std::size(counts->calls));
  for (int kind = 0; kind < kinds; ++kind) counts->calls[kind] += message.collectives(kind);
  counts->groups += message.communicators();
  counts->refused += message.refused();
}

}  // namespace percs::mpi
