// Serialised form, all integers little-endian base-128 unless noted:
//   "PRT3", hubs, supernodes, number of tables,
//   each table: runs (length, mask as 8 bytes) over intra then inter,
//   then one table index per use: source direct, striped and indirect, 47 direct, 47 indirect,
//   then the number of closed middles and the distance of each from the one before,
//   then the number of multicast groups and runs (length, mask) over their entries, and the clock's
//   mask; of nodes of the InfiniBand tree then 'F', the number of endpoints and a byte for each:
//   its port; of switches with detours then 'D', their number and the distance of each from the one
//   before.
#include "emulator/routing/route_tables.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "emulator/base/digest.h"
#include "emulator/topology/switch_graph.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr char kMagic[] = {'P', 'R', 'T', '3'};
constexpr std::uint64_t kTableHubsMax = SwitchGraph::kSwitchesMax, kTableSupernodesMax = 513,
                        kGroupsMax = 4096, kUses = 3 + 2 * kLinkPorts;
constexpr char kForwardingMark = 'F', kDetoursMark = 'D';
constexpr std::uint64_t kEndpointsMax = 4321;  // 24 CUs of 180 triblades, and a gateway

// Every place of a hub that has a table, in the order they are written.
template <typename Tables, typename Visit>
void ForEachUse(Tables& tables, Visit visit) {
  visit(tables.source_direct);
  visit(tables.source_striped);
  visit(tables.source_indirect);
  for (auto& table : tables.port_direct) visit(table);
  for (auto& table : tables.port_indirect) visit(table);
}

void PutNumber(std::string* out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}

void PutMasks(std::string* out, const std::vector<PortMask>& masks) {
  for (std::size_t i = 0; i < masks.size();) {
    std::size_t end = i + 1;
    while (end < masks.size() && masks[end] == masks[i]) ++end;
    PutNumber(out, end - i);
    for (int byte = 0; byte < 8; ++byte) out->push_back(static_cast<char>(masks[i] >> (8 * byte)));
    i = end;
  }
}

class Reader {
 public:
  explicit Reader(absl::Span<const std::uint8_t> bytes) : bytes_(bytes) {}

  absl::Status Error(const char* what) const {
    return absl::InvalidArgumentError(
        fmt::format("route tables, byte {} of {}: {}", at_, bytes_.size(), what));
  }
  bool Number(std::uint64_t low, std::uint64_t high, std::uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 63 && at_ < bytes_.size(); shift += 7) {
      const std::uint8_t byte = bytes_[at_++];
      *value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return *value >= low && *value <= high;
    }
    return false;
  }
  bool Magic() {
    if (bytes_.size() < sizeof kMagic || std::memcmp(bytes_.data(), kMagic, sizeof kMagic) != 0)
      return false;
    at_ = sizeof kMagic;
    return true;
  }
  bool Multicast(std::vector<PortMask>* masks) {
    std::uint64_t count = 0;
    return Number(0, kGroupsMax, &count) && Masks(count, masks, HubTables::kDeliverHere);
  }
  bool Masks(std::size_t count, std::vector<PortMask>* masks, PortMask also = 0) {
    masks->reserve(count);
    while (masks->size() < count) {
      std::uint64_t run = 0;
      if (!Number(1, count - masks->size(), &run) || bytes_.size() - at_ < 8) return false;
      PortMask mask = 0;
      for (int byte = 0; byte < 8; ++byte)
        mask |= static_cast<PortMask>(bytes_[at_++]) << (8 * byte);
      if ((mask & ~also) >> kLinkPorts) return false;
      masks->insert(masks->end(), run, mask);
    }
    return true;
  }
  bool Closed(std::uint64_t supernodes, std::vector<std::uint32_t>* closed) {
    std::uint64_t count = 0, step = 0, value = 0;
    if (!Number(0, supernodes * supernodes, &count) || count > bytes_.size() - at_) return false;
    closed->reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!Number(i == 0 ? 0 : 1, supernodes << 16, &step)) return false;
      value += step;
      if (value >> 16 >= supernodes || (value & 0xffff) >= supernodes) return false;
      closed->push_back(static_cast<std::uint32_t>(value));
    }
    return true;
  }
  // There only if it is marked.
  bool Forwarding(std::vector<PortId>* ports) {
    if (done() || bytes_[at_] != static_cast<std::uint8_t>(kForwardingMark)) return true;
    ++at_;
    std::uint64_t count = 0;
    if (!Number(1, kEndpointsMax, &count) || count > bytes_.size() - at_) return false;
    ports->assign(bytes_.begin() + static_cast<std::ptrdiff_t>(at_),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(at_ + count));
    at_ += count;
    return std::all_of(ports->begin(), ports->end(),
                       [](PortId p) { return p < kLinkPorts || p == kNoPort; });
  }
  // There only if it is marked.
  bool Detours(std::uint64_t destinations, std::vector<NodeId>* detours) {
    if (done() || bytes_[at_] != static_cast<std::uint8_t>(kDetoursMark)) return true;
    ++at_;
    std::uint64_t count = 0, step = 0, value = 0;
    if (!Number(1, destinations, &count) || count > bytes_.size() - at_) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!Number(i == 0 ? 0 : 1, destinations - 1, &step)) return false;
      value += step;
      if (value >= destinations) return false;
      detours->push_back(static_cast<NodeId>(value));
    }
    return true;
  }
  bool done() const { return at_ == bytes_.size(); }

 private:
  absl::Span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// The distinct tables in order of first use, and each use's index.
void Distinct(const HubTables& hub, std::vector<const RouteTable*>* tables,
              std::vector<std::size_t>* uses) {
  static const RouteTable kEmpty;
  ForEachUse(hub, [&](const std::shared_ptr<const RouteTable>& pointer) {
    const RouteTable* table = pointer ? pointer.get() : &kEmpty;
    const auto same = [&](const RouteTable* other) { return other == table || *other == *table; };
    const auto found = std::find_if(tables->begin(), tables->end(), same);
    uses->push_back(static_cast<std::size_t>(found - tables->begin()));
    if (found == tables->end()) tables->push_back(table);
  });
}

}  // namespace

std::uint64_t HubTables::Hash() const {
  const std::string bytes = Serialize();
  return HashBytes(bytes.data(), bytes.size());
}

std::string HubTables::Serialize() const {
  std::vector<const RouteTable*> tables;
  std::vector<std::size_t> uses;
  Distinct(*this, &tables, &uses);
  std::string out(kMagic, sizeof kMagic);
  PutNumber(&out, tables[0]->intra.size());
  PutNumber(&out, tables[0]->inter.size());
  PutNumber(&out, tables.size());
  for (const RouteTable* table : tables) {
    PutMasks(&out, table->intra);
    PutMasks(&out, table->inter);
  }
  for (std::size_t use : uses) PutNumber(&out, use);
  PutNumber(&out, closed_middles.size());
  std::uint32_t last = 0;
  for (const std::uint32_t closed : closed_middles) {
    PutNumber(&out, closed - last);
    last = closed;
  }
  PutNumber(&out, multicast.size());
  PutMasks(&out, multicast);
  PutNumber(&out, clock);
  if (!forwarding.empty()) {
    out += kForwardingMark;
    PutNumber(&out, forwarding.size());
    for (const PortId port : forwarding) out += static_cast<char>(port);
  }
  if (!detours.empty()) {
    out += kDetoursMark;
    PutNumber(&out, detours.size());
    NodeId before = 0;
    for (const NodeId destination : detours) {
      PutNumber(&out, destination - before);
      before = destination;
    }
  }
  return out;
}

absl::StatusOr<HubTables> HubTables::Parse(absl::Span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  if (!reader.Magic()) return reader.Error("does not start with PRT3");
  std::uint64_t hubs = 0, supernodes = 0, count = 0, use = 0;
  if (!reader.Number(1, kTableHubsMax, &hubs))
    return reader.Error("hubs per supernode must be 1..4096");
  if (!reader.Number(1, kTableSupernodesMax, &supernodes))
    return reader.Error("supernodes must be 1..513");
  if (!reader.Number(1, kUses, &count)) return reader.Error("number of tables must be 1..97");
  std::vector<std::shared_ptr<const RouteTable>> tables;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto table = std::make_shared<RouteTable>();
    if (!reader.Masks(hubs, &table->intra) || !reader.Masks(supernodes, &table->inter)) {
      return reader.Error(
          "a run of port masks is truncated, too long or names a port that is not a link");
    }
    tables.push_back(std::move(table));
  }
  HubTables hub;
  bool good = true;
  ForEachUse(hub, [&](std::shared_ptr<const RouteTable>& pointer) {
    good = good && reader.Number(0, count - 1, &use);
    if (good) pointer = tables[use];
  });
  if (!good) return reader.Error("a table index is truncated or beyond the last table");
  if (!reader.Closed(supernodes, &hub.closed_middles)) {
    return reader.Error("closed middles are truncated, out of order or beyond the last supernode");
  }
  if (!reader.Multicast(&hub.multicast)) {
    return reader.Error(
        "the multicast table is truncated, has more than 4096 groups or names a port that is not a "
        "link");
  }
  constexpr PortMask kClockPorts = (HubTables::kDeliverHere << 1) - 1;
  if (!reader.Number(0, kClockPorts, &hub.clock)) {
    return reader.Error(
        "the ports of the clock's tree are truncated or include one that is not a link");
  }
  if (!reader.Forwarding(&hub.forwarding)) {
    return reader.Error(
        "the forwarding table is truncated, has more than 4321 endpoints or names a port that is "
        "not a link");
  }
  if (!reader.Detours(hubs + hub.multicast.size(), &hub.detours))
    return reader.Error(
        "destinations of detours are truncated, out of order or beyond the last hub and group");
  if (!reader.done()) return reader.Error("bytes after the end");
  return hub;
}

absl::Status CheckTableSize(int hubs_per_supernode, int supernodes, int budget) {
  const int needed = hubs_per_supernode + supernodes;
  if (needed <= budget) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a route table has an entry for each of {} hubs of a supernode and each of {} supernodes, {} "
      "+ {} "
      "= {}, but route_table_entries is {}; write at least {}",
      hubs_per_supernode, supernodes, hubs_per_supernode, supernodes, needed, budget, needed));
}

absl::Status CheckMulticastTableSize(std::size_t groups, int budget) {
  if (groups <= static_cast<std::size_t>(budget)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a multicast table has an entry for each of {} groups, but "
                  "multicast_table_entries is {}; write at "
                  "least {}",
                  groups, budget, groups));
}

}  // namespace percs
