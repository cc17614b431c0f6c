// What the hubs of a supernode tell each other about their D links, so that a source can see
// congestion that is not its own (docs/semantics.md B.12): at every multiple of a period a hub
// looks at the queues of its D outputs and tells the others what has changed. Reports travel beside
// the flits, like credits, and take no bandwidth; the literature piggybacks them on packets (Jiang,
// Kim, Dally, ISCA 2009). All of this is background (rule 6). Not in the real machine.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <vector>

#include "emulator/isr/isr.h"
#include "emulator/packet/route_mode.h"
#include "emulator/wire/outbox.h"

namespace percs {

class CongestionReports {
 public:
  // REQUIRES: `node` is a hub; `reports` is not kNone. The others outlive this.
  CongestionReports(NodeId node, const Topology& topology, const P7ihParameters& parameters,
                    const Isr& isr, CongestionReport reports,
                    std::function<void(ControlItem&&)> send);

  struct Known {
    std::uint32_t flits = 0;  // 0 unless reports have numbers
    bool congested = false;
  };
  // What this hub was told of the D links over which the hub behind `port`, or this one if that is
  // a D port, reaches `supernode`: the most flits that wait for one, and whether any is congested.
  Known Behind(PortId port, int supernode) const;

  void Receive(const ControlItem& report);
  // Of the next report that arrives, or the next look.
  Time next_time() const {
    return under_way_.empty() ? next_look_ : std::min(next_look_, under_way_.begin()->arrival);
  }
  // The hub's next event, at `at`, may fill a queue. Looks that would find nothing are left out.
  void Expect(Time at);
  // All there is at next_time(), which is `now`.
  void Run(Time now);
  // The link of this L port went down: what was told over it is forgotten.
  void OnLinkDown(PortId port);
  // It came up: the far end learns how things stand.
  void OnLinkUp(PortId port, Time now);
  // All hubs forget at the same time what they told and were told, and what is still on its way.
  void Forget(Time now);
  // The workload begins again at `at`, which is not before now, and looks are reckoned from then.
  void BeginAgain(Time at);

 private:
  using ByDPort = QueuedForD;
  struct Report {
    Time arrival = 0;
    PortId port = kNoPort;
    int d_port = 0;  // from 0
    Time sent = 0;
    std::uint32_t generation = 0, value = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is clang's own
    auto operator<=>(const Report&) const = default;
  };
  struct Told {
    ByDPort value{};
    std::array<Time, kDPorts> sent{};
  };
  void Look(Time now);
  // Of these flits that wait: twice their number, if reports have it, plus 1 where that is at least
  // `congestion_threshold` plus twice the mean of the hub's other D links. (A threshold alone marks
  // every link of a loaded machine; twice the mean is FOGSim's.)
  ByDPort Values(const ByDPort& waiting) const;
  void Tell(PortId port, int d_port, Time now) const;

  const NodeId node_;
  const Topology& topology_;
  const P7ihParameters& parameters_;
  const Isr& isr_;
  const CongestionReport reports_;
  std::function<void(ControlItem&&)> send_;
  bool has_d_ = false;
  ByDPort own_{};               // as of the last look, and as the others were told
  std::vector<Told> told_;      // by L port
  std::set<Report> under_way_;  // in order of arrival
  Time forgotten_ = -1;         // what was sent by then
  Time origin_ = 0;             // looks are at multiples of the period after it
  Time next_look_ = kNever;
};

}  // namespace percs
