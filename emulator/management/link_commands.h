// What commands and the scenario have set for links, as far as it still matters: the state that
// each was set to last, and changes to come. A hub that rejoins gets them again (docs/semantics.md
// rule 21). Faults that are resources have FaultService for that.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/management/loss.h"

namespace percs {

class LinkCommands {
 public:
  explicit LinkCommands(const Topology& topology) : topology_(topology) {}

  // `now`: everything before has happened.
  void Note(const LinkFault& fault, Time now);
  void Note(const LinkImpairment& impairment, Time now);
  // Adds to `rejoined` what concerns links of its hubs; what is past at its time.
  void TellAgain(RejoinedHubs* rejoined) const;

 private:
  using Link = std::pair<NodeId, PortId>;  // by its lower end
  Link LinkOf(LinkEnd end) const;

  const Topology& topology_;
  // In the order in which they act. At most one of each is past.
  std::map<Link, std::vector<LinkFault>> faults_;
  std::map<std::tuple<NodeId, PortId, LinkImpairment::Kind>, std::vector<LinkImpairment>>
      impairments_;
};

}  // namespace percs
