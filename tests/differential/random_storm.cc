#include "tests/differential/random_storm.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "emulator/base/payload.h"
#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/topology/topology.h"

namespace percs::reference {
namespace {

// A hub on the way of a packet: the link it comes in by and the one it leaves by, as this hub's
// ports.
struct Transit {
  NodeId hub;
  PortId in, out;
};

std::optional<Transit> TransitOf(const Topology& topology, const ScriptedPacket& packet) {
  const NodeId from = packet.source, to = packet.destination;
  if (from == to || topology.is_group(to) || topology.is_blade(from) || topology.is_blade(to))
    return std::nullopt;
  const auto tables = Planner(topology).Plan({});
  const auto next = [&](NodeId hub, const std::shared_ptr<const RouteTable>& table) {
    const bool intra = topology.supernode_of(hub) == topology.supernode_of(to);
    const PortMask ports =
        intra ? table->intra[static_cast<std::size_t>(topology.hub_in_supernode(to))]
              : table->inter[static_cast<std::size_t>(topology.supernode_of(to))];
    return topology.Peer(hub, static_cast<PortId>(std::countr_zero(ports)));
  };
  const LinkEnd first = next(from, tables[from]->source_direct);
  if (first.node == to) return std::nullopt;
  const LinkEnd second = next(first.node, tables[first.node]->port_direct[first.port]);
  return Transit{first.node, first.port, topology.Peer(second.node, second.port).port};
}

class Storm {
 public:
  Storm(Scenario* scenario, const Topology& topology)
      : scenario_(*scenario), topology_(topology), random_(scenario->seed, "storm") {}

  void Add() {
    std::vector<ScriptedPacket>& packets = std::get<ScriptedWorkload>(scenario_.workload).packets;
    if (random_.Below(2) != 0 || packets.empty()) return;
    std::optional<Transit> transit;
    ScriptedPacket packet;
    for (int tries = 0; tries < 8 && !transit; ++tries) {
      packet = packets[random_.Below(static_cast<std::uint32_t>(packets.size()))];
      transit = TransitOf(topology_, packet);
    }
    if (!transit) return;
    in_ = {transit->hub, transit->in};
    out_ = {transit->hub, transit->out};
    MakeLanes();
    const Time flit = std::max(Parameters(in_).flit_time, Parameters(out_).flit_time);
    begin_ = packet.at;
    packet_time_ = kPacketFlitsMax * flit;
    const std::uint32_t train = 6 + random_.Below(12);
    length_ = packet_time_ * train;
    packet.bytes = kPacketBytesMax;
    packet.route.reset();
    for (std::uint32_t i = 0; i < train; ++i) packets.push_back(packet);
    switch (random_.Below(3)) {
      case 0:
        return ChangeRateOfWaiting();
      case 1:
        return ChangeRateUnderCommitments();
      default:
        return GiveUp();
    }
  }

 private:
  const LinkParameters& Parameters(LinkEnd end) const {
    return scenario_.parameters.link(ClassOf(end.port));
  }
  Time Below(Time limit) {
    return static_cast<Time>(random_.Below(static_cast<std::uint32_t>(limit)));
  }
  Time At() { return begin_ + Below(length_ + 1); }

  void MakeLanes() {
    for (const FaultSpec& fault : scenario_.faults) {
      if (fault.kind != FaultKind::kLinkDown) return;  // it fits the lanes there are
    }
    for (LinkParameters* link :
         {&scenario_.parameters.ll, &scenario_.parameters.lr, &scenario_.parameters.d}) {
      link->lanes = 2 + static_cast<int>(random_.Below(5));
      link->spare_lanes = static_cast<int>(random_.Below(2));
      link->lanes_min = 1;
    }
    MakeLinksAlike(&scenario_);
    scenario_.parameters.replay_limit = 2 + static_cast<int>(random_.Below(7));
  }

  // Lanes that a direction can lose without going down.
  std::uint32_t Spare(LinkEnd sender) const {
    const LinkParameters& link = Parameters(sender);
    return static_cast<std::uint32_t>(link.lanes + link.spare_lanes - link.lanes_min);
  }
  void LoseLanes(LinkEnd sender, Time at, std::uint32_t lost) {
    scenario_.faults.push_back(SetLanesLost(at, sender, lost));
  }

  void Flap(LinkEnd link, Time down, Time pause) {
    scenario_.faults.push_back(SetLinkDown(down, link));
    scenario_.faults.push_back(SetLinkUp(down + pause, link));
  }

  // Packets come in slowly and wait until they can leave without an underrun, at a rate that
  // changes meanwhile.
  void ChangeRateOfWaiting() {
    const LinkEnd before = topology_.Peer(in_.node, in_.port);
    LoseLanes(before, begin_, Spare(before));
    length_ *= 4;
    for (std::uint32_t k = 10 + random_.Below(40); k > 0; --k) {
      LoseLanes(out_, At(), random_.Below(Spare(out_) + 1));
    }
  }

  // While flits leave slowly, the rate changes, and the link they came by dies and comes back.
  void ChangeRateUnderCommitments() {
    LoseLanes(out_, begin_, Spare(out_));
    length_ *= 2;
    for (std::uint32_t k = 2 + random_.Below(8); k > 0; --k) {
      const Time at = At();
      LoseLanes(out_, at, random_.Below(Spare(out_) + 1));
      Flap(in_, at + 1 + Below(packet_time_ / 8), 1 + Below(packet_time_ / 8));
      LoseLanes(out_, at + packet_time_, Spare(out_));
    }
  }

  // A link that cannot send goes down and comes up while it still tries.
  void GiveUp() {
    const LinkEnd link = random_.Below(2) == 0 ? topology_.Peer(in_.node, in_.port) : out_;
    const int limit = scenario_.parameters.replay_limit;
    const Time round = Parameters(link).flit_time + 2 * Parameters(link).wire +
                       scenario_.parameters.credit_processing;
    for (std::uint32_t k = 1 + random_.Below(4); k > 0; --k) {
      const Time at = At();
      scenario_.faults.push_back(
          SetCorruptNext(at, link, static_cast<std::uint32_t>(limit) + random_.Below(3)));
      Flap(link, at + Below(limit * round), 1 + Below(2 * round));
    }
  }

  Scenario& scenario_;
  const Topology& topology_;
  RandomStream random_;
  LinkEnd in_, out_;
  Time begin_ = 0, length_ = 0, packet_time_ = 0;
};

}  // namespace

void AddStorm(Scenario* scenario) {
  const Topology topology = Topology::Create(scenario->topology).value();
  Storm(scenario, topology).Add();
}

void MakeLinksAlike(Scenario* scenario) {
  const std::optional<GraphSpec>& graph = scenario->topology.graph;
  if (graph && graph->kind != GraphSpec::Kind::kListed)
    scenario->parameters.lr = scenario->parameters.ll;
}

}  // namespace percs::reference
