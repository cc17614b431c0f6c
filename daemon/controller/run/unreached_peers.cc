#include "daemon/controller/run/unreached_peers.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs {
namespace {

constexpr std::size_t kListed = 4;

}  // namespace

void UnreachedPeers::OnLinkState(std::uint32_t process, const v1::LinkState& state) {
  if (state.unreachable().empty()) {
    by_process_.erase(process);
  } else {
    by_process_[process] = state;
  }
}

std::string UnreachedPeers::Text(Describe describe) const {
  std::string text;
  std::size_t count = 0;
  for (const auto& [process, state] : by_process_) {
    const v1::Peer near = describe(process);
    if (near.name().empty()) continue;
    for (const v1::UnreachablePeer& peer : state.unreachable()) {
      const v1::Peer far = describe(peer.process());
      if (far.name().empty() || ++count > kListed) continue;
      text += fmt::format("{}{} does not reach {} at {} ({})", text.empty() ? "" : "; ",
                          near.name(), far.name(), far.link_address(), peer.why());
    }
  }
  if (count > kListed) text += fmt::format("; and {} more", count - kListed);
  return text;
}

std::set<std::uint32_t> UnreachedPeers::processes() const {
  std::set<std::uint32_t> all;
  for (const auto& [process, state] : by_process_) {
    for (const v1::UnreachablePeer& peer : state.unreachable()) all.insert(peer.process());
  }
  return all;
}

double UnreachedPeers::longest_seconds() const {
  double seconds = 0;
  for (const auto& [process, state] : by_process_) {
    for (const v1::UnreachablePeer& peer : state.unreachable())
      seconds = std::max(seconds, peer.wall_seconds());
  }
  return seconds;
}

}  // namespace percs
