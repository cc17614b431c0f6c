#include "daemon/controller/rpc/link_names.h"

#include <utility>

#include "fmt/format.h"

namespace percs {

LinkEnd LowerEnd(const Topology& topology, LinkEnd link) {
  const LinkEnd far = topology.Peer(link.node, link.port);
  return std::pair(far.node, far.port) < std::pair(link.node, link.port) ? far : link;
}

std::string EndsOf(const Topology& topology, LinkEnd link) {
  const LinkEnd lower = LowerEnd(topology, link);
  return fmt::format("{}/{}", topology.NodeName(lower.node),
                     topology.NodeName(topology.Peer(lower.node, lower.port).node));
}

}  // namespace percs
