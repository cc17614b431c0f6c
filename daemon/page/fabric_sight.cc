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
