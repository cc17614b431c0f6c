#include "emulator/topology/ib_tree.h"

#include "absl/strings/numbers.h"
#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

constexpr int kUplinkFirst = 8, kSpineFirst = 12, kInnerFirst = 12;
constexpr int kFaceB = 12;  // first crossbar B of an inter-CU switch

absl::Status TooMany(int cu, int triblades) {
  return absl::InvalidArgumentError(
      fmt::format("CU {}: {} triblades; its switch of 288 ports has 24 leaves x {} uplinks = 96 "
                  "ports to other CUs "
                  "and takes 1 to {} triblades",
                  cu, triblades, kUplinksPerLeaf, kTribladesPerCu));
}

// Port of a leaf to switch s, or -1.
int UplinkPort(int leaf, int s) {
  return s / kUplinksPerLeaf == leaf % 2 ? kUplinkFirst + s % kUplinksPerLeaf : -1;
}

}  // namespace

absl::StatusOr<IbTree> IbTree::WithCus(int cus) {
  if (cus < 1 || cus > kCusMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} CUs; the eight inter-CU switches join 1 to {}", cus, kCusMax));
  }
  IbTree tree;
  tree.cu_triblades_.resize(static_cast<std::size_t>(cus));
  tree.triblade_at_.assign(static_cast<std::size_t>(cus * kPlacesPerCu), -1);
  tree.crossbars_ = (cus + (cus > 1 ? kInterSwitches : 0)) * kCrossbarsPerSwitch;
  tree.crossbar_up_.assign(static_cast<std::size_t>(tree.crossbars_), true);
  tree.link_down_.assign(static_cast<std::size_t>(tree.links()), false);
  return tree;
}

absl::StatusOr<IbTree> IbTree::Create(const std::vector<int>& triblades) {
  auto tree = WithCus(static_cast<int>(triblades.size()));
  for (std::size_t cu = 0; tree.ok() && cu < triblades.size(); ++cu) {
    if (triblades[cu] < 1 || triblades[cu] > kTribladesPerCu)
      return TooMany(static_cast<int>(cu), triblades[cu]);
    for (int i = 0; i < triblades[cu]; ++i) PERCS_CHECK(tree->Attach(static_cast<int>(cu)).ok());
  }
  return tree;
}

int IbTree::Occupy(int place) {
  const int triblade = triblades();
  places_.push_back(place);
  triblade_at_[static_cast<std::size_t>(place)] = triblade;
  link_down_.push_back(false);
  return triblade;
}

absl::StatusOr<int> IbTree::Attach(int cu, int leaf) {
  if (cu < 0 || cu >= cus() || leaf < -1 || leaf >= kLeaves) {
    return absl::InvalidArgumentError(
        fmt::format("cu{}{} does not exist; write CUs 0 to {} with leaves 0 to {}", cu,
                    leaf < 0 ? "" : fmt::format("-leaf{}", leaf), cus() - 1, kLeaves - 1));
  }
  int& triblades = cu_triblades_[static_cast<std::size_t>(cu)];
  if (triblades == kTribladesPerCu) return TooMany(cu, triblades + 1);
  const int first = cu * kPlacesPerCu + (leaf < 0 ? 0 : leaf * kTribladesPerLeaf);
  const int end = leaf < 0 ? (cu + 1) * kPlacesPerCu : first + kTribladesPerLeaf;
  for (int place = first; place < end; ++place) {
    if (triblade_at_[static_cast<std::size_t>(place)] >= 0) continue;
    ++triblades;
    return Occupy(place);
  }
  return absl::InvalidArgumentError(
      fmt::format("cu{0}-leaf{1} has {2} ports: {3} for triblades, {4} to other CUs, {5} to "
                  "spines; all {3} are taken",
                  cu, leaf, kCrossbarPorts, kTribladesPerLeaf, kUplinksPerLeaf, kSpines));
}

int IbTree::AttachGateway(int cu) { return Occupy((cu + 1) * kPlacesPerCu - 1); }

absl::StatusOr<IbTree> IbTree::WithTriblades(int triblades) {
  std::vector<int> cus;
  for (int left = triblades; left > 0; left -= kTribladesPerCu) {
    cus.push_back(left < kTribladesPerCu ? left : kTribladesPerCu);
  }
  return Create(cus);
}

int IbTree::LeafOf(int triblade) const {
  return Leaf(cu_of(triblade), IndexInCu(triblade) / kTribladesPerLeaf);
}

int IbTree::Peer(int crossbar, int port) const {
  const int sw = crossbar / kCrossbarsPerSwitch, x = crossbar % kCrossbarsPerSwitch;
  if (sw < cus()) {
    if (x >= kLeaves) return Leaf(sw, port);
    if (port >= kSpineFirst) return Spine(sw, port - kSpineFirst);
    if (port < kTribladesPerLeaf) {
      const int at =
          triblade_at_[static_cast<std::size_t>(sw * kPlacesPerCu + x * kTribladesPerLeaf + port)];
      return at >= 0 ? -1 - at : kNothing;
    }
    if (cus() == 1) return kNothing;
    return Facing(x % 2 * kUplinksPerLeaf + port - kUplinkFirst, sw);
  }
  const int s = sw - cus();
  if (x >= kFaceB && x < 24) return InterBase(s) + (port < 12 ? port : 12 + port);
  if (port >= kInnerFirst) return InterBase(s) + kFaceB + port - kInnerFirst;
  const int cu = x < 12 ? x : x - 12;
  return cu < cus() ? Leaf(cu, 2 * port + s / kUplinksPerLeaf) : kNothing;
}

LinkNumber IbTree::Reverse(LinkNumber link) const {
  if (link >= crossbars_ * kCrossbarPorts) {
    const int triblade = link - crossbars_ * kCrossbarPorts;
    return Out(LeafOf(triblade), PortOfTriblade(triblade));
  }
  const int crossbar = link / kCrossbarPorts;
  const int peer = Peer(crossbar, link % kCrossbarPorts);
  if (peer == kNothing) return kNoLink;
  if (peer < 0) return FromTriblade(-1 - peer);
  for (int port = 0; port < kCrossbarPorts; ++port) {
    if (Peer(peer, port) == crossbar) return Out(peer, port);
  }
  PERCS_CHECK(false);
  return kNoLink;
}

bool IbTree::alive(LinkNumber link) const {
  if (intact_) return true;
  if (link_down_[static_cast<std::size_t>(link)]) return false;
  if (link >= crossbars_ * kCrossbarPorts) {
    return crossbar_up_[static_cast<std::size_t>(LeafOf(link - crossbars_ * kCrossbarPorts))];
  }
  const int crossbar = link / kCrossbarPorts, peer = Peer(crossbar, link % kCrossbarPorts);
  return crossbar_up_[static_cast<std::size_t>(crossbar)] &&
         (peer < 0 || crossbar_up_[static_cast<std::size_t>(peer)]);
}

void IbTree::SetCable(LinkNumber link, bool up) {
  intact_ = false;
  link_down_[static_cast<std::size_t>(link)] = !up;
  link_down_[static_cast<std::size_t>(Reverse(link))] = !up;
}

// --- Forwarding ----------------------------------------------------------------------------------

bool IbTree::Descends(int s, int cu, int leaf) const {
  return UplinkPort(leaf, s) >= 0 && alive(Out(Facing(s, cu), leaf / 2));
}

bool IbTree::Crosses(int s, int from_cu, int cu, int b) const {
  return alive(Out(Facing(s, from_cu), kInnerFirst + b)) &&
         alive(Out(InterBase(s) + kFaceB + b, cu));
}

bool IbTree::Reaches(int s, int from_cu, int cu, int leaf) const {
  if (!Descends(s, cu, leaf)) return false;
  for (int b = 0; b < kSpines; ++b) {
    if (Crosses(s, from_cu, cu, b)) return true;
  }
  return false;
}

bool IbTree::Climbs(int s, int cu, int leaf) const {
  const int port = UplinkPort(leaf, s);
  return port >= 0 && alive(Out(Leaf(cu, leaf), port));
}

// Over the first spine, from the destination's own on, that leads to the leaf.
int IbTree::NextInside(int cu, int leaf, int target_leaf, int seed) const {
  for (int i = 0; i < kSpines; ++i) {
    const int spine = (seed + i) % kSpines;
    if (alive(Out(Leaf(cu, leaf), kSpineFirst + spine)) &&
        alive(Out(Spine(cu, spine), target_leaf))) {
      return kSpineFirst + spine;
    }
  }
  return -1;
}

int IbTree::NextFromLeaf(int crossbar, int to) const {
  const int cu = crossbar / kCrossbarsPerSwitch, leaf = crossbar % kCrossbarsPerSwitch;
  const int target = LeafOf(to), target_cu = cu_of(to);
  const int target_leaf = target % kCrossbarsPerSwitch, index = IndexInCu(to);
  if (crossbar == target) return alive(Out(crossbar, PortOfTriblade(to))) ? PortOfTriblade(to) : -1;
  if (cu == target_cu) return NextInside(cu, leaf, target_leaf, index);
  // A switch that has a cable to the destination's leaf, from the destination's own on.
  for (int i = 0; i < kUplinksPerLeaf; ++i) {
    const int s = target_leaf % 2 * kUplinksPerLeaf + (index + i) % kUplinksPerLeaf;
    if (Climbs(s, cu, leaf) && Reaches(s, cu, target_cu, target_leaf)) return UplinkPort(leaf, s);
  }
  // Not from here: over a spine to a leaf from which it can be reached.
  for (int i = 0; i < kSpines; ++i) {
    const int spine = (index + i) % kSpines;
    if (alive(Out(crossbar, kSpineFirst + spine)) && Detour(Spine(cu, spine), to) >= 0) {
      return kSpineFirst + spine;
    }
  }
  return -1;
}

// Port of a spine to a leaf that has a way into the destination's CU.
int IbTree::Detour(int spine, int to) const {
  const int cu = spine / kCrossbarsPerSwitch, target_cu = cu_of(to);
  const int target_leaf = LeafOf(to) % kCrossbarsPerSwitch, index = IndexInCu(to);
  for (int i = 0; i < kUplinksPerLeaf; ++i) {
    const int s = target_leaf % 2 * kUplinksPerLeaf + (index + i) % kUplinksPerLeaf;
    if (!Reaches(s, cu, target_cu, target_leaf)) continue;
    for (int j = 0; j < kLeaves / 2; ++j) {
      const int leaf = (index / kUplinksPerLeaf + j) % (kLeaves / 2) * 2 + target_leaf % 2;
      if (Climbs(s, cu, leaf) && alive(Out(spine, leaf))) return leaf;
    }
  }
  return -1;
}

int IbTree::NextOnInter(int crossbar, int to) const {
  const int s = crossbar / kCrossbarsPerSwitch - cus(), x = crossbar % kCrossbarsPerSwitch;
  const int cu = cu_of(to), leaf = LeafOf(to) % kCrossbarsPerSwitch;
  if (x >= kFaceB && x < 24) return cu;
  const int own = x < 12 ? x : x - 12;
  if (own == cu) return leaf / 2;
  for (int i = 0; i < kSpines; ++i) {
    const int b = (IndexInCu(to) / kUplinksPerLeaf + i) % kSpines;
    if (Crosses(s, own, cu, b)) return kInnerFirst + b;
  }
  return -1;
}

int IbTree::NextPort(int crossbar, int to) const {
  const int x = crossbar % kCrossbarsPerSwitch;
  if (crossbar / kCrossbarsPerSwitch >= cus()) return NextOnInter(crossbar, to);
  if (x < kLeaves) return NextFromLeaf(crossbar, to);
  if (crossbar / kCrossbarsPerSwitch == cu_of(to)) return LeafOf(to) % kCrossbarsPerSwitch;
  return Detour(crossbar, to);
}

absl::StatusOr<IbPath> IbTree::Route(int from, int to) const {
  IbPath path;
  const auto dead = [&](int crossbar) {
    return absl::UnavailableError(
        fmt::format("no route from triblade {} to triblade {}: {} has no live link towards it",
                    from, to, CrossbarName(crossbar)));
  };
  path.links[static_cast<std::size_t>(path.size++)] = FromTriblade(from);
  int crossbar = LeafOf(from);
  if (!alive(FromTriblade(from))) {
    return absl::UnavailableError(fmt::format(
        "no route from triblade {} to triblade {}: the cable of triblade {} or {} is down", from,
        to, from, CrossbarName(crossbar)));
  }
  while (true) {
    const int port = NextPort(crossbar, to);
    if (port < 0) return dead(crossbar);
    const LinkNumber link = Out(crossbar, port);
    if (!alive(link) || path.size == static_cast<int>(path.links.size())) return dead(crossbar);
    path.links[static_cast<std::size_t>(path.size++)] = link;
    const int peer = Peer(crossbar, port);
    if (peer == -1 - to) return path;
    PERCS_CHECK(peer >= 0);
    crossbar = peer;
  }
}

// --- Names ---------------------------------------------------------------------------------------

std::string IbTree::CrossbarName(int crossbar) const {
  const int sw = crossbar / kCrossbarsPerSwitch, x = crossbar % kCrossbarsPerSwitch;
  if (sw < cus()) {
    return x < kLeaves ? fmt::format("cu{}-leaf{}", sw, x)
                       : fmt::format("cu{}-spine{}", sw, x - kLeaves);
  }
  return fmt::format("sw{}-{}{}", sw - cus(), "abc"[x / 12], x % 12);
}

std::string IbTree::LinkName(LinkNumber link) const {
  const int first = crossbars_ * kCrossbarPorts;
  if (link >= first) return fmt::format("triblade{}", link - first);
  return fmt::format("{}:p{}", CrossbarName(link / kCrossbarPorts), link % kCrossbarPorts);
}

absl::StatusOr<int> IbTree::ParseCrossbar(const std::string& name) const {
  for (int crossbar = 0; crossbar < crossbars_; ++crossbar) {
    if (CrossbarName(crossbar) == name) return crossbar;
  }
  return absl::NotFoundError(
      fmt::format("no crossbar \"{}\"; crossbars are cu0-leaf0 to cu{}-spine11{}", name, cus() - 1,
                  cus() > 1 ? " and sw0-a0 to sw7-c11" : ""));
}

absl::StatusOr<LinkNumber> IbTree::ParseCable(const std::string& name) const {
  int number = 0;
  if (name.rfind("triblade", 0) == 0 && absl::SimpleAtoi(name.substr(8), &number) && number >= 0 &&
      number < triblades()) {
    return FromTriblade(number);
  }
  const std::size_t colon = name.find(":p");
  if (colon == std::string::npos) {
    return absl::NotFoundError(
        fmt::format("no cable \"{}\"; cables are named like triblade0 or cu0-leaf3:p9", name));
  }
  const auto crossbar = ParseCrossbar(name.substr(0, colon));
  if (!crossbar.ok()) return crossbar.status();
  if (!absl::SimpleAtoi(name.substr(colon + 2), &number) || number < 0 ||
      number >= kCrossbarPorts || Peer(*crossbar, number) == kNothing) {
    return absl::NotFoundError(
        fmt::format("nothing is plugged into {}; ports are p0 to p23", name));
  }
  return Out(*crossbar, number);
}

}  // namespace percs::roadrunner
