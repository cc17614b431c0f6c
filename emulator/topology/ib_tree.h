// The InfiniBand tree of Roadrunner (paper 004, section Roadrunner): per compute unit (CU) one
// 288-port switch of 24 leaf and 12 spine crossbars, and eight switches of 12 + 12 + 12 crossbars
// between up to 24 CUs.
//
// Every crossbar has 24 ports. Leaf: 0-7 triblades, 8-11 uplinks, 12-23 spines. Spine: the leaves.
// In switch s, crossbar A k (CUs 0-11) or C k - 12 (CUs 12-23) faces CU k: ports 0-11 to its
// leaves, 12-23 to the crossbars B; B: 0-11 to A, 12-23 to C. Leaf l has its uplinks to switches
// 0-3 if l is even, else 4-7: 24 x 4 = 96 uplinks for 180 triblades, the "2:1".
//
// Routing is static and by destination: a crossbar looks at nothing but the destination's number.
// Links are taken in the order leaf-spine, spine-leaf, leaf-A, A-B, B-A, A-leaf, so no cycle of
// links can form.
//
// Not modelled: subnet management packets; tables change as a whole (IbNetwork).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs::roadrunner {

inline constexpr int kTribladesPerCu = 180, kCusMax = 24;
inline constexpr int kLeaves = 24, kSpines = 12, kCrossbarsPerSwitch = 36, kCrossbarPorts = 24;
inline constexpr int kInterSwitches = 8, kUplinksPerLeaf = 4, kTribladesPerLeaf = 8;
inline constexpr int kPlacesPerCu = kLeaves * kTribladesPerLeaf;

// A directed link: what leaves a crossbar by a port (crossbar x 24 + port), or a triblade (behind
// those).
using LinkNumber = int;
inline constexpr LinkNumber kNoLink = -1;

// Links from a triblade to another one, in order. The crossbars passed are one fewer.
struct IbPath {
  std::array<LinkNumber, 8> links;
  int size = 0;
  int crossbars() const { return size - 1; }
};

// WIDE: constant after Create; each method answers one question about the wiring.
class IbTree {
 public:
  // `triblades` by CU. INVALID_ARGUMENT for more than 180 in a CU, or more than 24 CUs.
  static absl::StatusOr<IbTree> Create(const std::vector<int>& triblades);
  // `triblades` triblades, filling CU after CU.
  static absl::StatusOr<IbTree> WithTriblades(int triblades);

  // CUs without triblades, which are attached one by one: to the CU's lowest free place, or to the
  // lowest of a leaf. INVALID_ARGUMENT for the 181st of a CU, the 9th of a leaf.
  static absl::StatusOr<IbTree> WithCus(int cus);
  absl::StatusOr<int> Attach(int cu, int leaf = -1);
  // The last of the 192 - 180 = 12 places of a CU that are for no triblade takes a gateway to
  // another network; it is numbered like a triblade.
  int AttachGateway(int cu);

  int triblades() const { return static_cast<int>(places_.size()); }
  int cus() const { return static_cast<int>(cu_triblades_.size()); }
  int crossbars() const { return crossbars_; }
  LinkNumber links() const { return crossbars_ * kCrossbarPorts + triblades(); }
  int cu_of(int triblade) const {
    return places_[static_cast<std::size_t>(triblade)] / kPlacesPerCu;
  }
  int LeafOf(int triblade) const;  // its crossbar
  int PortOfTriblade(int triblade) const { return IndexInCu(triblade) % kTribladesPerLeaf; }

  // The far end of a port: a crossbar, or -1 - triblade; kNothing.
  static constexpr int kNothing = -1 - (1 << 24);
  int Peer(int crossbar, int port) const;
  // The port at the far end of a port that leads to another crossbar.
  int PeerPort(int crossbar, int port) const {
    return Reverse(Out(crossbar, port)) % kCrossbarPorts;
  }
  bool IsLeaf(int crossbar) const {
    return crossbar / kCrossbarsPerSwitch < cus() && crossbar % kCrossbarsPerSwitch < kLeaves;
  }

  // `cu0-leaf3`, `cu0-spine4`, `sw2-a5`, `sw2-b1`, `sw2-c0`; `cu0-leaf3:p9`, `triblade5`.
  std::string CrossbarName(int crossbar) const;
  std::string LinkName(LinkNumber link) const;
  // NOT_FOUND says what names there are.
  absl::StatusOr<int> ParseCrossbar(const std::string& name) const;
  // A cable, by either end: `cu0-leaf3:p9`; `triblade5` is the one cable of that triblade.
  absl::StatusOr<LinkNumber> ParseCable(const std::string& name) const;

  LinkNumber Out(int crossbar, int port) const { return crossbar * kCrossbarPorts + port; }

  // Faults and repairs; both directions of a cable.
  void SetCable(LinkNumber link, bool up);
  void SetCrossbar(int crossbar, bool up) {
    intact_ = false;
    crossbar_up_[static_cast<std::size_t>(crossbar)] = up;
  }
  bool alive(LinkNumber link) const;

  // A crossbar's forwarding table: the port towards a triblade, -1 if there is none.
  int NextPort(int crossbar, int to) const;
  // Where the tables send a packet. UNAVAILABLE says what is broken when they have no way left.
  absl::StatusOr<IbPath> Route(int from, int to) const;

 private:
  IbTree() = default;
  int Leaf(int cu, int leaf) const { return cu * kCrossbarsPerSwitch + leaf; }
  int Spine(int cu, int spine) const { return Leaf(cu, kLeaves + spine); }
  int InterBase(int s) const { return (cus() + s) * kCrossbarsPerSwitch; }
  int Facing(int s, int cu) const { return InterBase(s) + (cu < 12 ? cu : 12 + cu); }
  int IndexInCu(int triblade) const {
    return places_[static_cast<std::size_t>(triblade)] % kPlacesPerCu;
  }
  int Occupy(int place);
  LinkNumber FromTriblade(int triblade) const { return crossbars_ * kCrossbarPorts + triblade; }
  LinkNumber Reverse(LinkNumber link) const;
  int NextFromLeaf(int crossbar, int to) const;
  int NextInside(int cu, int leaf, int target_leaf, int seed) const;
  int Detour(int spine, int to) const;
  int NextOnInter(int crossbar, int to) const;
  bool Descends(int s, int cu, int leaf) const;  // from the crossbar facing `cu` to that leaf
  bool Crosses(int s, int from_cu, int cu, int b) const;  // over crossbar B b
  bool Reaches(int s, int from_cu, int cu, int leaf) const;
  bool Climbs(int s, int cu, int leaf) const;

  int crossbars_ = 0;
  std::vector<int> places_;        // by triblade: CU x 192 + leaf x 8 + port
  std::vector<int> triblade_at_;   // by place; -1: free
  std::vector<int> cu_triblades_;  // how many, by CU
  std::vector<bool> link_down_, crossbar_up_;
  bool intact_ = true;
};

}  // namespace percs::roadrunner
