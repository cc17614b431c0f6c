#include "daemon/sync/placement.h"

#include <numeric>

#include "fmt/format.h"

namespace percs {

std::vector<std::uint64_t> EvenBlocks(std::uint64_t nodes, std::uint64_t processes) {
  std::vector<std::uint64_t> blocks(processes);
  for (std::uint64_t p = 0; p < processes; ++p) {
    blocks[p] = nodes * (p + 1) / processes - nodes * p / processes;
  }
  return blocks;
}

absl::StatusOr<Placement> MakePlacement(NodeId nodes,
                                        absl::Span<const std::uint64_t> nodes_per_process,
                                        int self) {
  const std::uint64_t sum =
      std::accumulate(nodes_per_process.begin(), nodes_per_process.end(), std::uint64_t{0});
  if (sum != nodes) {
    return absl::InvalidArgumentError(
        fmt::format("nodes_per_process assigns {} hubs, but the topology has {}", sum, nodes));
  }
  Placement placement;
  placement.processes = static_cast<int>(nodes_per_process.size()) + 1;
  placement.manager_process = placement.processes - 1;
  placement.self = self;
  placement.process_of_node.reserve(nodes);
  for (std::size_t p = 0; p < nodes_per_process.size(); ++p) {
    placement.process_of_node.insert(placement.process_of_node.end(), nodes_per_process[p],
                                     static_cast<std::uint16_t>(p));
  }
  return placement;
}

std::map<std::uint32_t, std::size_t> SharedChannels(const Topology& topology,
                                                    const Placement& placement,
                                                    std::uint32_t self) {
  std::map<std::uint32_t, std::size_t> channels;
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    if (placement.process_of_node[node] != self) continue;
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const LinkEnd peer = topology.Peer(node, port);
      if (peer.node == kNoNode || placement.process_of_node[peer.node] == self) continue;
      channels[placement.process_of_node[peer.node]] += static_cast<std::size_t>(VcsOf(port));
    }
  }
  return channels;
}

std::size_t SwappableChannels(const Topology& topology, const Placement& placement,
                              std::uint32_t self) {
  std::size_t channels = 0;
  for (NodeId hub = 0; hub < topology.hubs(); ++hub) {
    if (placement.process_of_node[hub] != self) continue;
    for (PortId port = 0; port < kLinkPorts; ++port) {
      if (ClassOf(port) == LinkClass::kD && topology.connected(hub, port))
        channels += static_cast<std::size_t>(VcsOf(port));
    }
  }
  return channels;
}

}  // namespace percs
