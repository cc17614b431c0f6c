// What happened to a fabric, for people: faults, alerts, reroutes, trees. Bounded: the oldest
// events are deleted, and readers get the number of deleted ones.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "emulator/base/time.h"

namespace percs {

struct FabricEvent {
  std::uint64_t sequence = 0;  // from 1, in the order in which network management came to know
  Time at = 0;                 // virtual
  std::string kind;            // "fault_injected"
  std::string subject;         // the fault, link, epoch or tree
  std::string text;
};

class EventLog {
 public:
  static constexpr std::size_t kKept = 4096;

  void Add(Time at, std::string kind, std::string subject, std::string text) {
    events_.push_back({++last_, at, std::move(kind), std::move(subject), std::move(text)});
    if (events_.size() > kKept) events_.pop_front();
  }
  std::uint64_t last() const { return last_; }
  // Those after number `after` that are still kept, at most `limit`. `lost`: how many of them are
  // not.
  std::vector<FabricEvent> After(std::uint64_t after, std::size_t limit,
                                 std::uint64_t* lost) const {
    const std::uint64_t first = last_ - events_.size() + 1;
    *lost = after + 1 < first ? first - after - 1 : 0;
    std::vector<FabricEvent> found;
    const std::uint64_t from = after + 1 < first ? first : after + 1;
    for (std::uint64_t s = from; s <= last_ && found.size() < limit; ++s)
      found.push_back(events_[s - first]);
    return found;
  }

 private:
  std::uint64_t last_ = 0;
  std::deque<FabricEvent> events_;
};

}  // namespace percs
