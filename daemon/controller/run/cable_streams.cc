#include "daemon/controller/run/cable_streams.h"

namespace percs {

std::optional<std::uint32_t> CableStreams::Joins(std::uint32_t process,
                                                 const FaultAction& action) const {
  if (action.kind != FaultAction::Kind::kRewired || !action.begins ||
      placement_.process_of_node[action.end.node] != process)
    return std::nullopt;
  const std::uint32_t peer = placement_.process_of_node[action.peer.node];
  if (peer == process || SharedChannels(topology_, placement_, process).contains(peer))
    return std::nullopt;
  return peer;
}

void CableStreams::Note(const std::vector<FaultAction>& actions) {
  for (const FaultAction& action : actions) {
    const std::uint32_t process = placement_.process_of_node[action.end.node];
    if (const auto peer = Joins(process, action)) joined_.emplace(process, *peer);
  }
}

void CableStreams::Forget(std::uint32_t process) {
  std::erase_if(joined_, [process](const auto& pair) {
    return pair.first == process || pair.second == process;
  });
}

std::set<std::uint32_t> CableStreams::PeersOf(std::uint32_t process) const {
  std::set<std::uint32_t> peers;
  for (const auto& [from, to] : joined_) {
    if (from == process) peers.insert(to);
  }
  return peers;
}

}  // namespace percs
