// What one partition sends to others during a window. Between threads of a process it is handed
// over as it is, at the end of the window; between processes the Link stream carries it
// (daemon/link/codec).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/packet/packet.h"
#include "emulator/routing/route_tables.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/routing/tree_problem.h"
#include "emulator/scenario/fault_action.h"

namespace percs {

// Network management is a partition of its own (docs/semantics.md rule 19).
inline constexpr NodeId kManagerNode = 0xfffffffeu;

// Out-of-band messages between hubs and network management, and commands from outside.
struct ControlItem {
  enum class Kind : std::uint8_t {
    kAlert,       // hub -> manager: `port` went down or came up at `raised`
    kPrepare,     // manager -> hub: tables of `epoch` (null: as before), with their hash
    kPrepared,    // hub -> manager: verified
    kCommit,      // manager -> hub: `epoch` takes effect at `arrival`
    kTableAlert,  // hub -> manager: a packet needed a damaged entry of its tables at `raised`
    kLinkLost,    // hub -> both ends: `port`'s link, of generation `epoch`, is down at `arrival`
    kClock,  // hub -> next hub: a sync symbol over the link of `port`, of generation `epoch`; its
             // source emitted it at `raised` by its own clock, `hash` is what the sender's clock
             // showed, `hops` the links from the source (emulator/clock/hub_clock.h)
    kCongestion,   // hub -> hub of its supernode: its D port `hops`, from 0, has `hash` flits
                   // waiting, or is congested (1) or not (0), as seen at `raised`; over the link of
                   // `port`, of generation `epoch` (emulator/isr/congestion.h)
    kWiringAlert,  // hub -> manager: over `port` a probe found node and port `hash` (node << 8 |
                   // port), at `raised`; `up`: as the wiring has it, again
    kFault,    // command: `action` begins or ends at this hub; `port` is its end of the link, if it
               // is of one
    kTreeSet,  // manager -> hub: index its vertices of `plan`; the generation before failed of
               // `problem`
    kTreeAnswer,  // hub -> manager: done, or `problem`; `epoch` is the generation
    kTreeReady,   // manager -> hub: every hub has done so; use it
    kTreeDown,    // manager -> hub: forget the tree, because of `problem`
    kTreeAlert,   // hub -> manager: the tree failed here, at `raised`
  };
  Kind kind = Kind::kAlert;
  NodeId target = kNoNode, source = kNoNode;
  PortId port = kNoPort;
  bool up = false;
  Epoch epoch = 0;
  std::uint16_t hops = 0;
  Time arrival = 0, raised = 0;
  std::uint64_t hash = 0;
  std::shared_ptr<const HubTables> tables;
  FaultAction action;  // kFault only, which never leaves its process
  // Of trees.
  CauTreeId tree = 0;
  TreeProblem problem;
  std::shared_ptr<const TreePlan> plan;

  bool of_tree() const { return kind >= Kind::kTreeSet; }
  bool for_manager() const {
    return kind == Kind::kAlert || kind == Kind::kPrepared || kind == Kind::kTableAlert ||
           kind == Kind::kWiringAlert || kind == Kind::kTreeAnswer || kind == Kind::kTreeAlert;
  }
  // From outside, for nodes of this process only.
  bool command() const { return kind == Kind::kFault; }
  bool for_hub() const { return !for_manager() && !command(); }
};
inline constexpr int kControlKinds = 15;

struct Packet;

// A run of flits that crosses as the object it will be at its receiver.
struct PacketRun {
  Time arrival = 0;
  Packet* packet = nullptr;
  NodeId node = 0;  // receiver
  PortId port = 0;  // receiver's port
  VcId vc = 0;
};

struct Outbox {
  // Between threads of a process: runs of flits cross as packets, each from the pool of the sender
  // to that of the receiver, and `spare` ones go back, so that neither pool runs dry.
  bool takes_packets = false;
  std::vector<PacketRun> packets;
  std::vector<Packet*> spare;

  std::vector<FlitRun> flits;
  std::vector<CreditRun> credits;
  std::vector<PoisonMark> marks;
  std::vector<ControlItem> control;

  bool empty() const {
    return packets.empty() && spare.empty() && flits.empty() && credits.empty() && marks.empty() &&
           control.empty();
  }
  // Capacity stays, so a steady state allocates nothing.
  void Clear() {
    packets.clear();
    spare.clear();
    flits.clear();
    credits.clear();
    marks.clear();
    control.clear();
  }
  Time EarliestArrival() const { return std::min(EarliestCredit(), EarliestEvent()); }
  // Of credits that are no event at a receiver none of whose outputs waits for credits.
  Time EarliestCredit() const {
    Time t = kNever;
    for (const auto& x : credits) {
      if (x.vc != kServiceVc) t = std::min(t, x.arrival);
    }
    return t;
  }
  // Of everything else, which is an event where it arrives.
  Time EarliestEvent() const {
    Time t = kNever;
    for (const auto& x : flits) t = std::min(t, x.arrival);
    for (const auto& x : credits) {
      if (x.vc == kServiceVc) t = std::min(t, x.arrival);
    }
    for (const auto& x : marks) t = std::min(t, x.arrival);
    for (const auto& x : control) t = std::min(t, x.arrival);
    return t;
  }
};

}  // namespace percs
