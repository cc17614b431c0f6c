#include "proto/convert/counters.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "emulator/base/check.h"
#include "emulator/metrics/named_counters.h"
#include "fmt/format.h"

namespace percs {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kWithoutField[] = "counts";  // the map of counters that have no field

absl::Status UnknownCounter(std::string_view what, std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("the message has {} \"{}\", which this version does not know", what, name));
}

void SetInMap(Message* message, const FieldDescriptor* map, std::string_view key,
              std::uint64_t value) {
  PERCS_CHECK(map != nullptr && map->is_map());
  Message* entry = message->GetReflection()->AddMessage(message, map);
  const google::protobuf::Descriptor* type = map->message_type();
  entry->GetReflection()->SetString(entry, type->map_key(), std::string(key));
  entry->GetReflection()->SetUInt64(entry, type->map_value(), value);
}

// `name` is that of a field; behind a dot follows the key of a map, the name in a message, or the
// number in a list of messages and then the name.
void SetCounter(Message* message, std::string_view name, std::uint64_t value) {
  const auto* type = message->GetDescriptor();
  const auto* reflection = message->GetReflection();
  const std::size_t dot = std::min(name.find('.'), name.size());
  const FieldDescriptor* field = type->FindFieldByName(std::string(name.substr(0, dot)));
  if (field == nullptr) return SetInMap(message, type->FindFieldByName(kWithoutField), name, value);
  if (dot == name.size()) return reflection->SetUInt64(message, field, value);
  const std::string_view rest = name.substr(dot + 1);
  if (field->is_map()) return SetInMap(message, field, rest, value);
  if (!field->is_repeated())
    return SetCounter(reflection->MutableMessage(message, field), rest, value);
  int index = 0;
  const char* end = std::from_chars(rest.data(), rest.data() + rest.size(), index).ptr;
  while (reflection->FieldSize(*message, field) <= index) reflection->AddMessage(message, field);
  SetCounter(reflection->MutableRepeatedMessage(message, field, index),
             rest.substr(static_cast<std::size_t>(end - rest.data()) + 1), value);
}

// Calls set(name, value) for every counter in the message.
template <typename Set>
absl::Status VisitCounters(const Message& message, const std::string& before, const Set& set) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = before + field->name();
    const std::string inside = field->name() == kWithoutField ? before : name + ".";
    absl::Status status;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      status = set(name, reflection->GetUInt64(message, field));
    } else if (field->message_type() == v1::Histogram::descriptor() ||
               field->message_type() == v1::PortCounters::descriptor()) {
      continue;  // not by name
    } else if (!field->is_repeated()) {
      status = VisitCounters(reflection->GetMessage(message, field), inside, set);
    } else {
      for (int i = 0; status.ok() && i < reflection->FieldSize(message, field); ++i) {
        const Message& one = reflection->GetRepeatedMessage(message, field, i);
        const auto* type = one.GetDescriptor();
        status = field->is_map()
                     ? set(inside + one.GetReflection()->GetString(one, type->map_key()),
                           one.GetReflection()->GetUInt64(one, type->map_value()))
                     : VisitCounters(one, fmt::format("{}{}.", inside, i), set);
      }
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Rows, typename Stats>
bool AnyCounted(const Rows& rows, const Stats& stats) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&stats](const auto& row) { return stats.*row.member != 0; });
}

template <typename Rows, typename Stats>
void RowsToProto(const Rows& rows, const Stats& stats, Message* message) {
  for (const auto& row : rows) {
    if (stats.*row.member != 0) SetCounter(message, row.name, stats.*row.member);
  }
}

// Other fields of the message are not of these rows; other names in `counts` are an error.
template <typename Rows, typename Stats, typename Counted>
absl::Status RowsFromProto(const Rows& rows, const Counted& message, Stats* stats) {
  const auto* type = message.GetDescriptor();
  for (const auto& row : rows) {
    const FieldDescriptor* field = type->FindFieldByName(row.name);
    if (field != nullptr) stats->*row.member = message.GetReflection()->GetUInt64(message, field);
  }
  for (const auto& [name, value] : message.counts()) {
    const auto row = std::find_if(std::begin(rows), std::end(rows),
                                  [&name = name](const auto& r) { return name == r.name; });
    if (row == std::end(rows)) return UnknownCounter("counter of a port", name);
    stats->*row->member = value;
  }
  return absl::OkStatus();
}

absl::Status PortsFromProto(const v1::Counters& message, NodeStats* stats) {
  for (const v1::PortCounters& p : message.ports()) {
    if (p.port() >= kPorts) return UnknownCounter("port", fmt::format("{}", p.port()));
    PortStats& port = stats->ports[p.port()];
    if (absl::Status s = RowsFromProto(kPortCounters, p, &port); !s.ok()) return s;
    for (const v1::VcCounters& v : p.vcs()) {
      if (v.vc() >= kMaxVcs) return UnknownCounter("VC", fmt::format("{}", v.vc()));
      if (absl::Status s = RowsFromProto(kVcCounters, v, &port.vc[v.vc()]); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

void HistogramToProto(const Histogram& histogram, v1::Histogram* message) {
  message->set_count(histogram.count);
  message->set_sum(histogram.sum);
  message->set_max(histogram.max);
  std::size_t used = Histogram::kBuckets;
  while (used > 0 && histogram.buckets[used - 1] == 0) --used;
  for (std::size_t b = 0; b < used; ++b) message->add_buckets(histogram.buckets[b]);
}

Histogram HistogramFromProto(const v1::Histogram& message) {
  Histogram h;
  h.count = message.count();
  h.sum = message.sum();
  h.max = message.max();
  for (int i = 0; i < message.buckets_size() && i < Histogram::kBuckets; ++i) {
    h.buckets[static_cast<std::size_t>(i)] = message.buckets(i);
  }
  return h;
}

int IntegersOfNode() {
  static const int count = [] {
    int n = 0;
    NodeStats stats;
    stats.Visit([&n](std::uint64_t&) { ++n; });
    return n;
  }();
  return count;
}

}  // namespace

void PortToProto(PortId port, const PortStats& stats, v1::PortCounters* message) {
  const VcStats sum = stats.sum();
  message->set_port(port);
  message->set_flits(sum.flits);
  message->set_packets(sum.packets);
  message->set_bytes(sum.bytes);
  message->set_runs(sum.runs());
  message->set_runs_split(sum.runs_split);
  RowsToProto(kPortCounters, stats, message);
  for (int v = 0; v < VcsOf(port); ++v) {
    const VcStats& vc = stats.vc[static_cast<std::size_t>(v)];
    if (!AnyCounted(kVcCounters, vc)) continue;
    v1::VcCounters* m = message->add_vcs();
    m->set_vc(static_cast<std::uint32_t>(v));
    RowsToProto(kVcCounters, vc, m);
  }
}

void CountersToProto(const NodeStats& stats, v1::Counters* message) {
  for (PortId port = 0; port < kPorts; ++port) {
    v1::PortCounters counters;
    PortToProto(port, stats.ports[port], &counters);
    if (counters.vcs_size() > 0 || AnyCounted(kPortCounters, stats.ports[port])) {
      *message->add_ports() = std::move(counters);
    }
  }
  for (const NamedCounter& counter : NamedCounters()) {
    if (const std::uint64_t value = counter.Of(stats); value != 0) {
      SetCounter(message, counter.name, value);
    }
  }
  HistogramToProto(stats.packet_latency, message->mutable_packet_latency());
  HistogramToProto(stats.message_latency, message->mutable_message_latency());
}

absl::StatusOr<NodeStats> CountersFromProto(const v1::Counters& message) {
  NodeStats stats;
  if (absl::Status status = PortsFromProto(message, &stats); !status.ok()) return status;
  const absl::Status status =
      VisitCounters(message, "", [&stats](const std::string& name, std::uint64_t value) {
        const NamedCounter* counter = FindCounter(name);
        if (counter == nullptr) return UnknownCounter("counter", name);
        counter->Of(stats) = value;
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  stats.packet_latency = HistogramFromProto(message.packet_latency());
  stats.message_latency = HistogramFromProto(message.message_latency());
  return stats;
}

void PackStats(const NodeStats& stats, PackedStats* packed) {
  packed->Reserve(IntegersOfNode());
  stats.Visit([packed](std::uint64_t value) { packed->Add(value); });
}

absl::StatusOr<NodeStats> UnpackStats(const PackedStats& packed) {
  if (packed.size() != IntegersOfNode()) {
    return absl::InvalidArgumentError(fmt::format("a hub with {} counters; this version has {}",
                                                  packed.size(), IntegersOfNode()));
  }
  NodeStats stats;
  int i = 0;
  stats.Visit([&](std::uint64_t& value) { value = packed[i++]; });
  return stats;
}

}  // namespace percs
