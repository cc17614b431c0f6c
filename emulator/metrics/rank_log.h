// What the ranks of one hub do in virtual time: of trace replays and of programs on hosts. It
// changes nothing in the machine and is not in the digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"

namespace percs {

enum class RankState : std::uint8_t {
  kIdle,       // nothing of it is ready, and it has posted no receive
  kComputing,  // an operation of the trace that computes
  kSending,
  kReceiving,  // overhead of the host for a message
  kBusy,       // of a program on a host: its thread computes, copies or handles messages
  kWaiting,    // for a message, or for another task
  kDone,
};
inline constexpr const char* kRankStateNames[] = {"idle", "computing", "sending", "receiving",
                                                  "busy", "waiting",   "done"};
inline constexpr int kRankStates = std::size(kRankStateNames);
inline const char* RankStateName(RankState state) {
  return kRankStateNames[static_cast<std::size_t>(state)];
}

struct RankSlice {
  NodeId node = 0;
  std::uint32_t rank = 0;
  RankState state = RankState::kIdle;
  Time begin = 0, end = 0;
};
inline constexpr std::size_t kRankSlicesMax = 20'000;  // of a hub

struct RankNow {
  std::uint32_t rank = 0;
  RankState state = RankState::kIdle;
  bool operator==(const RankNow&) const = default;
};

class RankLog {
 public:
  void Add(std::uint32_t rank) { ranks_.push_back({{rank, RankState::kIdle}, 0}); }
  // From now on slices are kept, until there are `slices_max`.
  void Keep(std::size_t slices_max) { slices_max_ = slices_max; }

  // Rank number `index` of this hub. Times do not decrease.
  void Enter(std::size_t index, RankState state, Time at) {
    Place& place = ranks_[index];
    if (place.now.state == state) return;
    if (slices_.size() < slices_max_) Close(place, at, &slices_);
    place = {{place.now.rank, state}, at};
  }

  std::vector<RankNow> now() const {
    std::vector<RankNow> states;
    for (const Place& place : ranks_) states.push_back(place.now);
    return states;
  }
  // Those that were kept, and what goes on at `until`. Without `idle` and `done`.
  void AddSlices(NodeId node, Time until, std::vector<RankSlice>* slices) const {
    std::vector<RankSlice> here = slices_;
    if (slices_.size() < slices_max_)
      for (const Place& place : ranks_) Close(place, until, &here);
    for (RankSlice& slice : here) {
      slice.node = node;
      slices->push_back(slice);
    }
  }

 private:
  struct Place {
    RankNow now;
    Time since = 0;
  };
  static void Close(const Place& place, Time at, std::vector<RankSlice>* slices) {
    const RankState state = place.now.state;
    if (at <= place.since || state == RankState::kIdle || state == RankState::kDone) return;
    slices->push_back({0, place.now.rank, state, place.since, at});
  }

  std::vector<Place> ranks_;
  std::vector<RankSlice> slices_;
  std::size_t slices_max_ = 0;
};

}  // namespace percs
