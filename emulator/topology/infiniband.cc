// The InfiniBand tree as part of a topology: where blades and the gateway are plugged in, and what
// is at the other end of a crossbar's port. Endpoint 0 is the gateway, if there is one.
#include <charconv>

#include "absl/status/status.h"
#include "emulator/base/check.h"
#include "emulator/topology/topology.h"
#include "fmt/format.h"

namespace percs {

absl::Status Topology::AddTree() {
  const InfinibandSpec& spec = *spec_.infiniband;
  auto tree = roadrunner::IbTree::WithCus(spec.cus);
  if (!tree.ok())
    return absl::InvalidArgumentError(
        fmt::format("topology.infiniband.cus: {}", std::string(tree.status().message())));
  if (!spec.gateway.empty()) {
    const auto hub = ParseNode(spec.gateway);
    if (!hub.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("topology.infiniband.gateway: {}", std::string(hub.status().message())));
    }
    const auto socket = FreeDPort(*hub, "the gateway");
    if (!socket.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("topology.infiniband.gateway: {}", std::string(socket.status().message())));
    }
    gateway_ = *socket;
    blades_at_hub_ports_[Key(gateway_)] = kNoNode;
    tree->AttachGateway(0);
    endpoint_blades_.push_back(kNoNode);
  }
  tree_ = *std::move(tree);
  return absl::OkStatus();
}

// `cu0`, `cu0-leaf3`.
absl::StatusOr<int> Topology::AttachToTree(const std::string& place) {
  int cu = -1, leaf = -1;
  const char* const end = place.data() + place.size();
  auto read = std::from_chars(place.data() + 2, end, cu);
  constexpr std::size_t kLeafWord = 5;
  if (read.ec == std::errc() &&
      place.compare(static_cast<std::size_t>(read.ptr - place.data()), kLeafWord, "-leaf") == 0) {
    read = std::from_chars(read.ptr + kLeafWord, end, leaf);
    if (leaf < 0) read.ec = std::errc::invalid_argument;
  }
  if (read.ec != std::errc() || read.ptr != end) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a place in the InfiniBand tree; write a CU or one of its leaf "
                    "crossbars, cu0 or cu0-leaf0",
                    place));
  }
  return tree_->Attach(cu, leaf);
}

LinkEnd Topology::BladePeer(NodeId blade) const {
  const int endpoint = EndpointOf(blade);
  if (endpoint < 0) return blade_peers_[blade - hubs_];
  return {crossbar_node(tree_->LeafOf(endpoint)),
          static_cast<PortId>(kIbFirst + tree_->PortOfTriblade(endpoint))};
}

LinkEnd Topology::CrossbarPeer(NodeId node, PortId port) const {
  const int crossbar = crossbar_of(node);
  if (port == kBladePort) {
    return gateway_.node != kNoNode && tree_->LeafOf(0) == crossbar ? gateway_ : LinkEnd{};
  }
  if (port < kIbFirst || port >= kIbFirst + kIbPorts) return {};
  const int own = port - kIbFirst, peer = tree_->Peer(crossbar, own);
  if (peer == roadrunner::IbTree::kNothing) return {};
  if (peer < 0) {
    const NodeId blade = BladeAtEndpoint(-1 - peer);
    return blade == kNoNode ? LinkEnd{}
                            : LinkEnd{blade, kBladePort};  // the gateway's link is at kBladePort
  }
  return {crossbar_node(peer), static_cast<PortId>(kIbFirst + tree_->PeerPort(crossbar, own))};
}

LinkClass Topology::ClassOfLink(LinkEnd end) const {
  if (end.node < hubs_ || !tree_ || !in_tree(end.node)) return ClassOf(end.port);
  const bool ib = is_crossbar(end.node) ? end.port < kBladePort : end.port == kBladePort;
  return ib ? LinkClass::kIb : ClassOf(end.port);
}

}  // namespace percs
