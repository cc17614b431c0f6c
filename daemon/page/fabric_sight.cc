#include "daemon/page/fabric_sight.h"

#include <utility>

#include "fmt/format.h"

namespace percs {
namespace {

WaySight SightOf(const PortStats& stats, Time flit_time) {
  const VcStats sum = stats.sum();
  return {sum.flits,
          sum.packets,
          stats.credit_stall_ps,
          stats.crc_errors,
          stats.replays,
          stats.lanes_lost,
          static_cast<double>(sum.flits) * static_cast<double>(flit_time)};
}

std::string WayRow(const WaySight& way) {
  return fmt::format("{},{},{},{},{},{}", way.flits, way.packets, way.credit_stall_ps,
                     way.crc_errors, way.replays, way.lanes_lost);
}

}  // namespace

SeenLinks::SeenLinks(const Topology& topology) {
  if (topology.nodes() <= kSeenNodesMax) links_ = topology.Links();
  std::vector<LinkPlace> places;
  places.reserve(links_.size());
  for (const LinkEnd& link : links_) {
    places.push_back({topology.LinkName(link),
                      fmt::format("{}/{}", topology.NodeName(link.node),
                                  topology.NodeName(topology.Peer(link.node, link.port).node)),
                      ClassName(topology.ClassOfLink(link))});
  }
  places_ = std::make_shared<const std::vector<LinkPlace>>(std::move(places));
  std::vector<std::string> hubs;
  for (NodeId hub = 0; topology.nodes() <= kSeenNodesMax && hub < topology.hubs(); ++hub)
    hubs.push_back(topology.NodeName(hub));
  hubs_ = std::make_shared<const std::vector<std::string>>(std::move(hubs));
}

std::vector<HubSight> SeenLinks::LookAtHubs(SeenStats stats, SeenReroutes reroutes) const {
  std::vector<HubSight> hubs(hubs_->size());
  for (std::size_t i = 0; i < hubs.size(); ++i) {
    const NodeStats* const of = stats(static_cast<NodeId>(i));
    if (of == nullptr) continue;
    for (const std::uint64_t packets : of->packets_dropped) hubs[i].packets_dropped += packets;
    hubs[i].reroutes = reroutes(static_cast<NodeId>(i));
  }
  return hubs;
}

std::vector<LinkSight> SeenLinks::Look(const Topology& topology, const P7ihParameters& parameters,
                                       SeenStats stats, SeenUp up) const {
  std::vector<LinkSight> sights;
  sights.reserve(links_.size());
  for (const LinkEnd& link : links_) {
    const Time flit_time = parameters.link(topology.ClassOfLink(link)).flit_time;
    const LinkEnd far = topology.Peer(link.node, link.port);
    LinkSight& sight = sights.emplace_back();
    sight.up = up(link) && up(far);
    if (const NodeStats* of = stats(link.node))
      sight.forward = SightOf(of->ports[link.port], flit_time);
    if (const NodeStats* of = stats(far.node))
      sight.backward = SightOf(of->ports[far.port], flit_time);
  }
  return sights;
}

SeenRows::SeenRows(const Topology& topology) {
  if (topology.nodes() <= kSeenNodesMax) return;
  supernodes_ = topology.supernodes();
  const auto size = static_cast<std::size_t>(supernodes_);
  std::vector<int> outputs(size * size);
  behind_.reserve(std::size_t{topology.hubs()} * kLinkPorts);
  for (NodeId hub = 0; hub < topology.hubs(); ++hub) {
    const auto row = static_cast<std::size_t>(topology.supernode_of(hub));
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const NodeId peer =
          topology.connected(hub, port) ? topology.Peer(hub, port).node : topology.nodes();
      const int behind = peer < topology.hubs() ? topology.supernode_of(peer) : -1;
      behind_.push_back(static_cast<std::int16_t>(behind));
      if (behind >= 0) ++outputs[row * size + static_cast<std::size_t>(behind)];
    }
  }
  outputs_ = std::make_shared<const std::vector<int>>(std::move(outputs));
}

RowSight SeenRows::Look(const Topology& topology, const P7ihParameters& parameters, int supernode,
                        SeenLinks::SeenStats stats, SeenLinks::SeenUp up) const {
  RowSight row;
  row.supernode = supernode;
  row.busy_ps.resize(static_cast<std::size_t>(supernodes_));
  row.down.resize(row.busy_ps.size());
  for (int h = 0; h < topology.hubs_per_supernode(); ++h) {
    const NodeId hub = topology.node(supernode, h);
    const NodeStats* const of = stats(hub);
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const int behind = behind_[std::size_t{hub} * kLinkPorts + port];
      if (behind < 0) continue;
      const auto column = static_cast<std::size_t>(behind);
      const LinkEnd end{hub, port};
      if (!up(end)) ++row.down[column];
      if (of == nullptr) continue;
      const Time flit_time = parameters.link(topology.ClassOfLink(end)).flit_time;
      row.busy_ps[column] += static_cast<double>(of->ports[port].sum(&VcStats::flits)) *
                             static_cast<double>(flit_time);
    }
  }
  return row;
}

void AddLinkRow(const LinkPlace& place, const LinkSight& link, double used_forward,
                double used_backward, std::string* rows) {
  *rows += fmt::format(R"({}"{}":["{}","{}",{},{:.4f},{:.4f},{},{}])", rows->empty() ? "" : ",",
                       place.name, place.ends, place.link_class, link.up ? 1 : 0, used_forward,
                       used_backward, WayRow(link.forward), WayRow(link.backward));
}

std::string LinksJson(Time at, const std::string& rows) {
  return fmt::format(R"({{"virtual_time":{},"rows":{{{}}}}})", at, rows);
}

}  // namespace percs
