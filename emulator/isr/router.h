// Looks a packet's next port up in the installed tables, and at the source decides between direct
// and indirect (docs/semantics.md B.2).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "emulator/base/check.h"
#include "emulator/base/prefetch.h"
#include "emulator/base/random.h"
#include "emulator/chip/node_context.h"
#include "emulator/packet/packet_state.h"
#include "emulator/routing/route_tables.h"

namespace percs {

// What Router::Route returns for an entry whose parity is wrong.
inline constexpr PortId kDamagedEntry = kNoPort - 1;

// Flits in the send queues of a hub, by output.
using QueuedFlits = std::array<std::uint32_t, kQueueOutputs>;
// Flits in the ISR of a hub that wait for a D port.
using QueuedForD = std::array<std::uint32_t, kDPorts>;

class CongestionReports;

// Port of an entry whose turn it is: the first one from `pointer` on, cyclically. REQUIRES: there
// is one.
inline PortId Candidate(PortMask mask, std::uint8_t pointer) {
  const PortMask above = mask & (~PortMask{0} << pointer);
  return static_cast<PortId>(std::countr_zero(above != 0 ? above : mask));
}

class Router {
 public:
  explicit Router(NodeContext& context)
      : context_(context),
        supernode_first_(FirstHub(*context.topology, context.node)),
        forwards_from_(context.topology->in_tree(context.node) ? 0 : context.topology->hubs()) {}

  // What adaptive routes other than ugal_l are chosen by.
  void SetReports(const CongestionReports* reports) { reports_ = reports; }
  // Random choices follow from this seed. `on_damage` is called once for every damaged entry that a
  // packet needed.
  void Prepare(std::uint64_t seed, std::function<void()> on_damage) {
    seed_ = seed;
    on_damage_ = std::move(on_damage);
  }
  void Install(std::shared_ptr<const HubTables> tables, Epoch epoch);
  // Writes every entry again, which repairs the damaged ones.
  void Rewrite() {
    damaged_.clear();
    watching_ = previous_ != nullptr;
  }
  // Flips a bit of an entry until the tables are rewritten: parity over the entry is then wrong.
  void Damage(const TablePlace& place);
  // Flips it back, if the tables have not been rewritten since.
  void Repair(const TablePlace& place);

  void ResetArbiters() {
    pointers_ = {};
    middle_choice_ = nullptr;
  }

  // By epoch: when a packet was first routed by an entry that the epoch changed.
  const std::vector<std::pair<Epoch, Time>>& first_rerouted() const { return first_rerouted_; }
  const std::shared_ptr<const HubTables>& tables() const { return tables_; }
  Epoch epoch() const { return epoch_; }

  // Output port of a packet that came in on `in`; kNoPort if the tables have none, kDamagedEntry if
  // the entry cannot be trusted.
  PortId Route(const PacketHeader& header, PortId in) {
    if (header.destination == context_.node) return WindowPort(header.destination_window);
    if (header.destination >= forwards_from_) return RouteElsewhere(header, in);
    return RouteToHub(header, header.destination, in);
  }
  // What Route will say of a packet on a direct route to a hub, unless others come before it: a
  // guess, which moves no pointer. kNoPort if there is no telling.
  PortId Guess(NodeId destination, PortId in) const;
  // Has what such a guess reads fetched into the cache.
  void FetchGuess(NodeId destination, PortId in) const;
  // Has what that looks at first fetched into the cache.
  void FetchPointers(PortId in) const {
    const auto& all = pointers_[static_cast<std::size_t>(TableKind::kDirect)];
    if (all) FetchLine(&(*all)[in]);
  }
  // The same at the source, after choosing the packet's mode and middle supernode.
  PortId RouteFromSource(PacketHeader& header, PortId in, const RouteSetting& setting,
                         const QueuedFlits& queued) {
    header.mode = RouteMode::kHwDirect;
    return setting.mode == RouteMode::kHwDirect ? Route(header, in)
                                                : RouteByMode(header, in, setting, queued);
  }
  // The same at the next hub, for a packet whose source left its mode open. `up`: D ports whose
  // links are. `count` is asked only for a packet that is to leave by a D port.
  PortId RouteInTransit(PacketHeader& header, PortId in, PortMask up,
                        absl::FunctionRef<QueuedForD()> count);
  // Ports that a multicast packet leaves by, including kDeliverHere for the own HFIs; none: why.
  PortMask Branches(const PacketHeader& header, DropReason* reason);
  // HFI port that a window is pinned to (rule 15).
  PortId WindowPort(WindowId window) const {
    const int per_hfi = context_.parameters->windows_per_hfi;
    PERCS_CHECK(window < kHfisPerHub * per_hfi);
    return static_cast<PortId>(window < per_hfi ? kHfiFirst + window % 4
                                                : kHfiFirst + 4 + (window - per_hfi) % 4);
  }

 private:
  struct DamagedEntry {
    TablePlace place;
    bool reported = false;
  };
  // Round robin: what was chosen last + 1, by input and supernode; those of an input are made when
  // first needed.
  using Pointers = std::array<std::unique_ptr<std::uint8_t[]>, kPorts>;
  struct MiddleChoice {
    explicit MiddleChoice(RandomStream random) : random(random) {}
    RandomStream random;
    std::array<std::vector<std::uint16_t>, kHfiPorts> pointers;  // by destination supernode
  };

  // First hub of the supernode that a node's packets start in.
  static NodeId FirstHub(const Topology& topology, NodeId node) {
    const NodeId hub = topology.ExitHub(node);
    return hub == kNoNode ? 0 : topology.node(topology.supernode_of(hub), 0);
  }
  int own_supernode() const { return context_.topology->supernode_of(supernode_first_); }
  // Of a node of the InfiniBand tree: by destination alone.
  PortId Forward(NodeId destination);
  // To what is no hub, and from a node of the tree to whatever it is. Multicast packets are looked
  // up when they are replicated.
  PortId RouteElsewhere(const PacketHeader& header, PortId in);
  // Routes lead to hubs; a blade is one hop behind its own.
  PortId RouteToBlade(const PacketHeader& header, PortId in);
  PortId RouteToHub(const PacketHeader& header, NodeId hub, PortId in);
  TablePlace DirectPlace(NodeId hub, PortId in) const {
    const Topology& topology = *context_.topology;
    // Wraps far above any hub count for a lower node of another supernode.
    const NodeId inside = hub - supernode_first_;
    const bool intra = inside < static_cast<NodeId>(topology.hubs_per_supernode());
    const int index = intra ? static_cast<int>(inside) : topology.supernode_of(hub);
    return {TableKind::kDirect, in, intra, static_cast<std::uint16_t>(index)};
  }
  TablePlace PlaceByMode(const PacketHeader& header, NodeId hub, PortId in) const;
  PortMask Entry(const HubTables& tables, const TablePlace& place) const {
    const RouteTable* table = tables.Table(place.kind, place.port).get();
    return table ? table->Entry(place) : 0;
  }
  // Entries of the direct tables, without the way through HubTables: each packet needs one.
  struct DirectTable {
    absl::Span<const PortMask> intra, inter;
  };
  const PortMask& Direct(const TablePlace& place) const {
    static constexpr PortMask kNoRoute = 0;
    const DirectTable& table =
        direct_tables_[direct_table_of_[std::min<std::size_t>(place.port, kLinkPorts)]];
    const absl::Span<const PortMask> entries = place.intra ? table.intra : table.inter;
    return place.index < entries.size() ? entries[place.index] : kNoRoute;
  }
  // False if the entry is damaged.
  bool Watch(const TablePlace& place, PortMask mask);
  std::uint8_t& Pointer(const TablePlace& place);
  // Null if it has not been needed yet.
  std::uint8_t* PointerIfMade(const TablePlace& place) const;

  // source_route.cc
  PortId RouteByMode(PacketHeader& header, PortId in, const RouteSetting& setting,
                     const QueuedFlits& queued);
  bool Open(int middle, int destination) const;
  int FirstOpen(int from, int destination) const;
  int NthOther(std::uint32_t n, int destination) const;
  int NamedMiddle(NodeId hub, const RouteSetting& setting) const;
  int PickedMiddle(PortId in, int destination, MiddleSelection selection);
  bool IndirectIsBetter(int destination, PortId in, int middle, const RouteSetting& setting,
                        const QueuedFlits& queued);
  MiddleChoice& middle_choice();

  NodeContext& context_;
  const CongestionReports* reports_ = nullptr;
  const NodeId supernode_first_;  // node of the own supernode's first hub
  const NodeId forwards_from_;    // RouteElsewhere from this destination on
  std::shared_ptr<const HubTables> tables_;
  // By link port; the last is the source table. Ports mostly share a table.
  std::array<std::uint8_t, kLinkPorts + 1> direct_table_of_{};
  std::vector<DirectTable> direct_tables_{DirectTable{}};
  Epoch epoch_ = 0;
  bool watching_ = false;                      // the next two are not both empty
  std::shared_ptr<const HubTables> previous_;  // until a packet has used a changed entry
  std::vector<DamagedEntry> damaged_;
  std::function<void()> on_damage_;
  std::vector<std::pair<Epoch, Time>> first_rerouted_;
  std::array<std::unique_ptr<Pointers>, kTableKinds> pointers_;  // made when first needed
  std::uint64_t seed_ = 0;
  std::unique_ptr<MiddleChoice> middle_choice_;  // made with the first indirect packet
};

}  // namespace percs
