// The faults that act on one hub at this moment. Several may act on one link: it is down while any
// of them holds it, error rates combine as independent causes, lost lanes add up.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/scenario/fault_action.h"

namespace percs {

class ActiveFaults {
 public:
  // `port` is this hub's end of the link that the action names by either end. One that begins
  // takes the place of the one that it replaces.
  void Apply(const FaultAction& action, PortId port);
  // A hub came back at `at` for the loss of this fault number: losses hold the link of this port
  // down no longer, but for one that follows at the same instant.
  void EndLosses(PortId port, std::uint32_t fault, Time at);

  bool HoldsDown(PortId port) const { return Any(FaultAction::Kind::kLinkDown, port); }
  bool Mutes(PortId port) const { return Any(FaultAction::Kind::kAlertsMuted, port); }
  double ErrorRate(LinkEnd sender) const;
  // At most `lanes_max`.
  std::uint32_t LanesLost(LinkEnd sender, int lanes_max) const;
  Time Latency(LinkEnd sender) const;
  bool CauDown() const { return Any(FaultAction::Kind::kCauDown, kNoPort); }
  // By window; empty if none is down.
  std::vector<bool> WindowsDown(int windows_per_hfi) const;
  std::int64_t ClockDrift() const;  // parts per billion
  unsigned PcieUnplugged() const;   // bit p: what is in PCI Express port p

 private:
  struct Held {
    FaultAction action;
    PortId port;
  };
  bool Any(FaultAction::Kind kind, PortId port) const;

  std::vector<Held> held_;
};

}  // namespace percs
