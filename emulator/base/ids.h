// Names of places in the fabric: nodes, ports, link classes, positions and virtual channels.
#pragma once

#include <cstdint>

namespace percs {

using NodeId = std::uint32_t;    // supernode x hubs per supernode + drawer x hubs per drawer + hub;
                                 // then the blades, the crossbars of InfiniBand, and the
                                 // multicast groups (as destinations)
using PortId = std::uint8_t;     // port of an ISR, 0..55
using VcId = std::uint8_t;       // virtual channel of a link, 0..2 on L, 0..1 on D
using WindowId = std::uint16_t;  // HFI window of a hub: HFI = id / windows_per_hfi
using Epoch = std::uint32_t;     // generation of route tables; 1 is the first

inline constexpr NodeId kNoNode = 0xffffffffu;
inline constexpr PortId kNoPort = 0xff;

// Ports of an ISR (paper 000 section IV-C): 7 LL + 24 LR + 16 D + 8 HFI + 1 service = 56.
inline constexpr int kLlPorts = 7, kLrPorts = 24, kDPorts = 16, kHfiPorts = 8;
inline constexpr int kLlFirst = 0;
inline constexpr int kLrFirst = kLlFirst + kLlPorts;        // 7
inline constexpr int kDFirst = kLrFirst + kLrPorts;         // 31
inline constexpr int kHfiFirst = kDFirst + kDPorts;         // 47
inline constexpr int kServicePort = kHfiFirst + kHfiPorts;  // 55
inline constexpr int kPorts = kServicePort + 1;             // 56
inline constexpr int kLinkPorts = kHfiFirst;                // 47 ports that lead to other hubs
// Where multicast packets wait until they are whole: beside the outputs, and none of them.
inline constexpr PortId kReplication = kPorts;
inline constexpr int kQueueOutputs = kPorts + 1;  // what a packet can queue for
// N0, the one network port of a Cell blade: a D port, because D links are what hubs have for the
// world outside their supernode.
inline constexpr PortId kBladePort = kDFirst;
// A crossbar of InfiniBand has 24 ports, as many as a hub has LR ports, and they are these. A
// gateway to hubs is plugged into kBladePort, like the node it is for the hub at its other end.
inline constexpr PortId kIbFirst = kLrFirst;
inline constexpr int kIbPorts = 24;
static_assert(kIbPorts <= kLrPorts);
inline constexpr int kHfisPerHub = 2;
inline constexpr int kMaxVcs = 3;
inline constexpr VcId kServiceVc =
    kMaxVcs;  // of every link, beside those of data: management packets

enum class LinkClass : std::uint8_t { kLl, kLr, kD, kHfi, kService, kIb };
inline constexpr int kLinkClasses = 6;

// Of a hub's port; Topology::ClassOfLink knows the others.
constexpr LinkClass ClassOf(PortId port) {
  return port < kLrFirst       ? LinkClass::kLl
         : port < kDFirst      ? LinkClass::kLr
         : port < kHfiFirst    ? LinkClass::kD
         : port < kServicePort ? LinkClass::kHfi
                               : LinkClass::kService;
}
constexpr const char* ClassName(LinkClass c) {
  constexpr const char* kNames[] = {"LL", "LR", "D", "HFI", "service", "IB"};
  return kNames[static_cast<int>(c)];
}
constexpr bool IsL(PortId port) { return port < kDFirst; }
constexpr bool IsD(PortId port) { return port >= kDFirst && port < kHfiFirst; }
constexpr bool IsHfi(PortId port) { return port >= kHfiFirst && port < kServicePort; }
// VCs a link of this port has (paper 000 section VI): three on L, two on D, one to the HFI.
constexpr int VcsOf(PortId port) { return IsL(port) ? 3 : IsD(port) ? 2 : 1; }

// Position of a hop in the canonical route L0 D0 L1 D1 L2; injection comes before L0.
using Position = std::int8_t;
inline constexpr Position kInjected = -1, kL0 = 0, kD0 = 1, kL1 = 2, kD1 = 3, kL2 = 4;
inline constexpr Position kNoPosition = 127;
inline constexpr int kRouteHopsMax = kL2 + 1;

constexpr Position PositionOf(PortId port, VcId vc) {
  return IsHfi(port) ? kInjected : static_cast<Position>(IsL(port) ? 2 * vc : 2 * vc + 1);
}

// Which VC a packet takes on its next link (docs/semantics.md rule 10).
enum class VcPolicy : std::uint8_t {
  kPosition,  // lowest position of the link class strictly above the one the packet came in on
  kSingle,    // always VC 0; exists so that tests can see the fabric deadlock
};

// Position of the next hop on a link of `port`'s class, or kNoPosition when none is left.
constexpr Position NextPosition(Position came_in_on, PortId port) {
  if (IsL(port)) {
    const int next = came_in_on < kL0 ? kL0 : came_in_on < kL1 ? kL1 : kL2;
    return came_in_on >= kL2 ? kNoPosition : static_cast<Position>(next);
  }
  return came_in_on < kD0 ? kD0 : came_in_on < kD1 ? kD1 : kNoPosition;
}
constexpr VcId VcOfPosition(Position position) { return static_cast<VcId>(position / 2); }

using PortMask = std::uint64_t;  // bit p = port p
constexpr PortMask PortBit(PortId port) { return PortMask{1} << port; }

}  // namespace percs
