#include "daemon/page/link_status.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "proto/convert/counters.h"

namespace percs {
namespace {

// Share of virtual time that an output was busy.
double Utilisation(const P7ihParameters& parameters, LinkClass link_class, Time now,
                   const PortStats& stats) {
  if (now <= 0) return 0;
  return static_cast<double>(stats.sum(&VcStats::flits)) *
         static_cast<double>(parameters.link(link_class).flit_time) / static_cast<double>(now);
}

// The number of `sn3`; -1: this is no such name.
int SupernodeOf(const std::string& name) {
  int number = -1;
  if (!name.starts_with("sn")) return -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + 2, end, number);
  return read.ec == std::errc() && read.ptr == end ? number : -1;
}

void AddLinksOf(const Topology& topology, NodeId node, std::vector<LinkEnd>* links) {
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (topology.connected(node, port)) links->push_back(LowerEnd(topology, {node, port}));
  }
}

}  // namespace

LinkEnd LowerEnd(const Topology& topology, LinkEnd link) {
  const LinkEnd far = topology.Peer(link.node, link.port);
  return std::pair(far.node, far.port) < std::pair(link.node, link.port) ? far : link;
}

std::string EndsOf(const Topology& topology, LinkEnd link) {
  const LinkEnd lower = LowerEnd(topology, link);
  return fmt::format("{}/{}", topology.NodeName(lower.node),
                     topology.NodeName(topology.Peer(lower.node, lower.port).node));
}

absl::StatusOr<std::vector<LinkEnd>> LinksAt(const Topology& topology, const std::string& where) {
  if (where.empty()) return topology.Links();
  std::vector<LinkEnd> links;
  const int supernode = SupernodeOf(where);
  if (supernode < 0) {
    const auto node = topology.ParseNode(where);
    if (!node.ok()) return node.status();
    AddLinksOf(topology, *node, &links);
    return links;
  }
  if (supernode >= topology.supernodes()) {
    return absl::NotFoundError(fmt::format("{}: the machine has the supernodes sn0 to sn{}", where,
                                           topology.supernodes() - 1));
  }
  for (int h = 0; h < topology.hubs_per_supernode(); ++h)
    AddLinksOf(topology, topology.node(supernode, h), &links);
  // Those within are of two of its hubs.
  const auto key = [](LinkEnd end) { return std::pair(end.node, end.port); };
  std::sort(links.begin(), links.end(), [&](LinkEnd a, LinkEnd b) { return key(a) < key(b); });
  links.erase(std::unique(links.begin(), links.end(),
                          [&](LinkEnd a, LinkEnd b) { return key(a) == key(b); }),
              links.end());
  return links;
}

std::vector<NodeId> EndsOfAll(const Topology& topology, const std::vector<LinkEnd>& links) {
  std::vector<NodeId> nodes;
  for (const LinkEnd& link : links) {
    nodes.push_back(link.node);
    nodes.push_back(topology.Peer(link.node, link.port).node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void ListLinks(const Topology& topology, const P7ihParameters& parameters, Time now,
               const std::vector<LinkEnd>& links, StateOfNode state_of, v1::ListLinksReply* reply) {
  reply->set_virtual_time(now);
  for (const LinkEnd& lower : links) {
    v1::LinkStatus* const message = reply->add_links();
    const LinkEnd far = topology.Peer(lower.node, lower.port);
    const LinkClass link_class = topology.ClassOfLink(lower);
    message->set_name(topology.LinkName(lower));
    message->set_ends(EndsOf(topology, lower));
    message->set_link_class(ClassName(link_class));
    bool up = true;
    if (const NodeState* const state = state_of(lower.node)) {
      const PortStats& stats = state->stats.ports[lower.port];
      up = up && (state->links_up & PortBit(lower.port)) != 0;
      PortToProto(lower.port, stats, message->mutable_forward());
      message->set_utilisation_forward(Utilisation(parameters, link_class, now, stats));
    }
    if (const NodeState* const state = state_of(far.node)) {
      const PortStats& stats = state->stats.ports[far.port];
      up = up && (state->links_up & PortBit(far.port)) != 0;
      PortToProto(far.port, stats, message->mutable_backward());
      message->set_utilisation_backward(
          Utilisation(parameters, topology.ClassOfLink(far), now, stats));
    }
    message->set_up(up);
  }
}

const NodeState* FindState(const std::vector<NodeState>& states, NodeId node) {
  const auto it = std::lower_bound(states.begin(), states.end(), node,
                                   [](const NodeState& s, NodeId n) { return s.node < n; });
  return it != states.end() && it->node == node ? &*it : nullptr;
}

}  // namespace percs
