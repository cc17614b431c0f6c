// The faults of a fabric as resources: created, listed, updated, deleted by their names. Decides
// the virtual times at which each begins and ends and hands out what then happens to which place;
// the hubs do it. A fault stays until it is deleted or its duration is over. Deterministic, and
// only in the process of network management; which in turn never looks here, but waits for alerts
// (docs/semantics.md rule 19).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/management/event_log.h"
#include "emulator/scenario/fault_spec.h"

namespace percs {

enum class FaultPhase : std::uint8_t {
  kScheduled,  // its targets are selected, its time is to come
  kActive,
  kPaused,      // a repeating one, between two times
  kRecovering,  // over, but a link may still be given up by a replay that began under it
  kRecovered,   // over by itself
};
const char* FaultPhaseName(FaultPhase phase);

// Its conditions: Selected with its creation, Injected, Recovered, each with its virtual time and
// count.
struct FaultStatus {
  FaultSpec spec;
  std::uint32_t number = 0;
  std::uint64_t seed = 0;
  FaultTargets targets;
  FaultPhase phase = FaultPhase::kScheduled;
  bool deleted = false;  // and only recovering
  Time selected_at = 0;
  Time begins_at = 0;         // first time
  Time injected_at = kNever;  // last time
  Time recovered_at = kNever;
  std::uint64_t injections = 0, recoveries = 0;
  Time next = kNever;  // its next transition
  bool mends() const { return spec.sets == FaultSets::kMended; }
};

class FaultService {
 public:
  // More faults than this are refused.
  static constexpr std::size_t kFaultsMax = 65'536;
  // Cables are swapped and repaired, and hubs rejoin, at most this many times in a run: the
  // generations of links are numbers.
  static constexpr std::uint32_t kSwapsMax = 2'000;
  // Generations of a link between two swaps of its cable: how often a link may fail on its own
  // meanwhile.
  static constexpr std::uint32_t kSwapGeneration = 1u << 20;
  static constexpr std::size_t kNamesListed = 8;  // in errors and events
  // Faults that repeat change their places, all in all, no more often than this in a window of
  // virtual time: the changes of a window are decided before it begins.
  static constexpr std::int64_t kChangesPerWindow = 10'000;

  // `longest_wire` is that of all cables, `window` the lookahead. `log` may be null.
  FaultService(const Topology& topology, const P7ihParameters& parameters, std::uint64_t seed,
               Time longest_wire, Time window, EventLog* log)
      : topology_(topology),
        parameters_(parameters),
        seed_(seed),
        longest_wire_(longest_wire),
        window_(window),
        log_(log) {}

  // All of these REQUIRE now >= everything that was handed out.
  // The same fault twice is one. One that is set and has no name gets one from its kind and number;
  // one that mends is not listed. ALREADY_EXISTS for another one of that name, INVALID_ARGUMENT
  // also for a time that has passed and for a period too short for kChangesPerWindow, NOT_FOUND if
  // its selector fits nothing, FAILED_PRECONDITION for one on a cable that is swapped, or for
  // swapping a cable with another fault on it, RESOURCE_EXHAUSTED.
  absl::StatusOr<FaultStatus> Create(const FaultSpec& spec, Time now);
  // Replaces the settings of the fault of this name: ends it and starts it again. NOT_FOUND.
  absl::StatusOr<FaultStatus> Update(const FaultSpec& spec, Time now);
  // NOT_FOUND names those there are.
  absl::Status Delete(const std::string& id, Time now);
  // Deletes all; returns how many.
  std::size_t Reset(Time now);
  // Those that repeat without end are deleted, so that a fabric can drain.
  void EndRepeating(Time now);

  // These hubs are gone. A swapped cable with an end there goes back to where it belongs, and none
  // is swapped there any more: what is left of it would lead nowhere, and its other end would wait
  // for credits.
  void Lose(const std::vector<NodeId>& hubs, Time now);
  // They are there again: their cables may be swapped from now on.
  void Rejoin(const std::vector<NodeId>& hubs) {
    for (const NodeId hub : hubs) lost_.erase(hub);
  }
  // What faults do at these hubs and to their links at `at`, for hubs that are new. Not what is
  // used up, or undone with the tables that they had.
  std::vector<FaultAction> ActingOn(const std::vector<NodeId>& hubs, Time at) const;
  // A generation above all that links have had, if no link fails on its own more often than
  // there is room for. RESOURCE_EXHAUSTED.
  absl::StatusOr<std::uint32_t> NewGeneration();
  // Resets the round-robin arbiters of all hubs at `now`, after the faults of that time.
  void ResetArbiters(Time now);

  // Whether there ever was a fault, or one is to come.
  bool used() const { return number_ > 0 || reset_at_ != kNever; }
  Time next_time() const { return std::min(reset_at_, next_transition()); }
  // Everything before `end`, in order.
  void Run(Time end, std::vector<FaultAction>* actions);
  // Transitions to come: a run continues until they are over.
  std::int64_t unfinished() const {
    return static_cast<std::int64_t>(schedule_.size()) + (reset_at_ == kNever ? 0 : 1);
  }

  // In the order of creation, without deleted ones.
  std::vector<FaultStatus> List() const;
  absl::StatusOr<FaultStatus> Get(const std::string& id) const;

 private:
  struct Fault {
    FaultStatus status;
    std::vector<FaultAction> actions;
    Time stops_at = kNever;  // by its duration
  };
  // `replaced`: number of the fault that this one takes the place of, 0 if none.
  absl::StatusOr<FaultStatus> Begin(const FaultSpec& spec, Time begins_at, Time now,
                                    std::uint32_t replaced);
  absl::Status CheckConflicts(const Fault& fault, std::uint32_t replaced) const;
  absl::Status CheckRate(const Fault& fault, std::uint32_t replaced) const;
  // That nothing is taken for a deadlock that this fault and the others only slow down.
  absl::Status CheckStall(const FaultSpec& spec, std::uint32_t replaced) const;
  bool HasGeneration() const;
  void AdvanceGeneration();
  Time next_transition() const { return schedule_.empty() ? kNever : schedule_.begin()->first; }
  absl::StatusOr<Fault*> Find(const std::string& id);
  absl::Status NotThere(const std::string& id) const;
  void Remove(Fault& fault, Time now);
  void Schedule(Fault& fault, Time at);
  void Advance(Fault& fault, Time now, std::vector<FaultAction>* actions);
  void Inject(Fault& fault, Time now, std::vector<FaultAction>* actions);
  void Recover(Fault& fault, Time now, std::vector<FaultAction>* actions);
  void Retrain(const Fault& fault, Time now, std::vector<FaultAction>* actions);
  void Mend(Fault& mending, Time now, std::vector<FaultAction>* actions);
  std::uint32_t TakePlace(const FaultAction& action, std::uint32_t by, Time now);
  void GiveUpPlace(std::uint32_t number, const FaultAction& action, Time now);
  std::string FreeName(FaultKind kind) const;
  void Finish(Fault& fault, Time now);
  bool SwapsAtLost(const Fault& fault) const;
  Time ReplayMax() const;
  void Note(Time at, const char* kind, const Fault& fault, const std::string& text);

  const Topology& topology_;
  const P7ihParameters& parameters_;
  const std::uint64_t seed_;
  const Time longest_wire_;
  const Time window_;
  EventLog* log_;
  std::set<NodeId> lost_;
  std::uint32_t number_ = 0;
  Time reset_at_ = kNever;
  std::uint32_t generations_ =
      0;                        // given out: to faults of kind miswired, and to hubs that came back
  std::uint64_t injected_ = 0;  // times that faults began, since the last of them was given out
  std::size_t miswired_ = 0;    // of them, those in faults_
  std::map<std::uint32_t, Fault> faults_;       // by number; deleted ones until they have recovered
  std::map<std::string, std::uint32_t> by_id_;  // those not deleted
  std::set<std::pair<Time, std::uint32_t>> schedule_;
  // What is set now, by place: the number of the fault.
  using Place = std::tuple<FaultAction::Kind, NodeId, PortId>;
  static Place PlaceOf(const FaultAction& action) {
    return {action.kind, action.end.node, action.end.port};
  }
  std::map<Place, std::uint32_t> set_;
};

}  // namespace percs
