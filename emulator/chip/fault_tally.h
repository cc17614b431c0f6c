// What faults cost at the places they act on, counted by the hubs there: packets that died at a
// place while the fault was on it, and replay rounds of its links. What two faults on one place
// cost counts for both.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "emulator/base/ids.h"

namespace percs {

struct Losses {
  // Packets that died here: routed to or under way on a dead link, at a damaged table, for or from
  // what is down.
  std::uint64_t lost = 0;
  std::uint64_t resent = 0;    // those of them that their source sends again: data of messages
  std::uint64_t replayed = 0;  // replay rounds

  Losses& operator+=(const Losses& other) {
    lost += other.lost, resent += other.resent, replayed += other.replayed;
    return *this;
  }
  Losses operator-(const Losses& before) const {
    return {lost - before.lost, resent - before.resent, replayed - before.replayed};
  }
  bool operator==(const Losses&) const = default;
};

// Where packets die: a link, by the port here, or one of these.
inline constexpr int kTablesPlace = kLinkPorts, kWindowsPlace = kLinkPorts + 1,
                     kCauPlace = kLinkPorts + 2;
inline constexpr int kLossPlaces = kLinkPorts + 3;
using LossesByPlace = std::array<Losses, kLossPlaces>;

struct FaultTally {
  std::uint32_t fault = 0;  // number
  Losses losses;
};

// Of one hub.
class FaultTallies {
 public:
  // The fault begins or ends at a place that has counted `so_far`; more than once if it does
  // several things there.
  void Begin(std::uint32_t fault, int place, const Losses& so_far) {
    const auto it = Find(fault, place);
    if (it == open_.end()) {
      open_.push_back({fault, place, 1, so_far});
    } else {
      ++it->times;
    }
  }
  void End(std::uint32_t fault, int place, const Losses& so_far) {
    const auto it = Find(fault, place);
    if (it == open_.end() || --it->times > 0) return;
    Of(&done_, fault) += so_far - it->before;
    open_.erase(it);
  }
  // By fault, up to now; `so_far` by place.
  template <typename SoFar>
  std::vector<FaultTally> All(SoFar&& so_far) const {
    std::vector<FaultTally> all = done_;
    for (const Open& open : open_) Of(&all, open.fault) += so_far(open.place) - open.before;
    return all;
  }
  static Losses& Of(std::vector<FaultTally>* tallies, std::uint32_t fault) {
    for (FaultTally& tally : *tallies) {
      if (tally.fault == fault) return tally.losses;
    }
    return tallies->emplace_back(FaultTally{fault, {}}).losses;
  }

 private:
  struct Open {
    std::uint32_t fault = 0;
    int place = 0;
    int times = 0;
    Losses before;
  };
  std::vector<Open>::iterator Find(std::uint32_t fault, int place) {
    return std::find_if(open_.begin(), open_.end(), [&](const Open& open) {
      return open.fault == fault && open.place == place;
    });
  }
  std::vector<Open> open_;
  std::vector<FaultTally> done_;
};

}  // namespace percs
