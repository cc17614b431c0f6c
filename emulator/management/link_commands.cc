#include "emulator/management/link_commands.h"

#include <algorithm>

namespace percs {
namespace {

// Adds one behind those that act before it, and forgets those that another one has replaced.
template <typename Command, typename Before>
void Keep(std::vector<Command>* all, const Command& command, Time now, Before before) {
  all->insert(std::upper_bound(all->begin(), all->end(), command, before), command);
  while (all->size() > 1 && (*all)[1].at < now) all->erase(all->begin());
}

}  // namespace

LinkCommands::Link LinkCommands::LinkOf(LinkEnd end) const {
  const LinkEnd far = topology_.Peer(end.node, end.port);
  return std::min(Link(end.node, end.port), Link(far.node, far.port));
}

void LinkCommands::Note(const LinkFault& fault, Time now) {
  // At one instant a link goes down first, then up (docs/semantics.md rule 2).
  Keep(&faults_[LinkOf(fault.link)], fault, now, [](const LinkFault& a, const LinkFault& b) {
    return a.at < b.at || (a.at == b.at && !a.up && b.up);
  });
}

void LinkCommands::Note(const LinkImpairment& impairment, Time now) {
  Keep(&impairments_[{impairment.sender.node, impairment.sender.port, impairment.kind}], impairment,
       now, [](const LinkImpairment& a, const LinkImpairment& b) { return a.at < b.at; });
}

void LinkCommands::TellAgain(RejoinedHubs* rejoined) const {
  const auto concerns = [&](LinkEnd end) {
    const auto has = [&](NodeId node) {
      return std::find(rejoined->nodes.begin(), rejoined->nodes.end(), node) !=
             rejoined->nodes.end();
    };
    return has(end.node) || has(topology_.Peer(end.node, end.port).node);
  };
  const Time now = rejoined->at;
  for (const auto& [link, all] : faults_) {
    if (!concerns({link.first, link.second})) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      LinkFault fault = all[i];
      const bool replaced = i + 1 < all.size() && all[i + 1].at < now;
      if (fault.at < now && (replaced || fault.up)) continue;
      fault.at = std::max(fault.at, now);
      rejoined->link_faults.push_back(fault);
    }
  }
  for (const auto& [direction, all] : impairments_) {
    if (!concerns({std::get<0>(direction), std::get<1>(direction)})) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      LinkImpairment impairment = all[i];
      const bool replaced = i + 1 < all.size() && all[i + 1].at < now;
      // Nobody knows how many of the next transmissions were still to be corrupted.
      const bool over = replaced || impairment.kind == LinkImpairment::Kind::kCorruptNext;
      if (impairment.at < now && over) continue;
      impairment.at = std::max(impairment.at, now);
      rejoined->impairments.push_back(impairment);
    }
  }
}

}  // namespace percs
