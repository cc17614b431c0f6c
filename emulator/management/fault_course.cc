// The part of FaultService that runs: faults begin, end, repeat, and give up their places.
#include <algorithm>
#include <string>
#include <utility>

#include "emulator/management/fault_service.h"
#include "fmt/format.h"

namespace percs {
namespace {

Time OnTime(const FaultSpec& spec) {
  return static_cast<Time>(static_cast<double>(spec.period) * spec.duty);
}

// For the text of an event, of a fault that begins more than once.
std::string WhichTime(const FaultSpec& spec, std::uint64_t count) {
  return spec.period > 0 || count > 1 ? fmt::format(", occurrence {}", count) : "";
}

}  // namespace

void FaultService::Run(Time end, std::vector<FaultAction>* actions) {
  while (next_time() < end) {
    if (reset_at_ < next_transition()) {
      FaultAction reset;
      reset.kind = FaultAction::Kind::kResetArbiters;
      reset.at = reset_at_;
      for (NodeId node = 0; node < topology_.nodes(); ++node) {
        reset.end = {node, 0};
        actions->push_back(reset);
      }
      reset_at_ = kNever;
      continue;
    }
    const auto [at, number] = *schedule_.begin();
    Advance(faults_.at(number), at, actions);
  }
}

void FaultService::Advance(Fault& fault, Time now, std::vector<FaultAction>* actions) {
  switch (fault.status.phase) {
    case FaultPhase::kScheduled:
    case FaultPhase::kPaused:
      return Inject(fault, now, actions);
    case FaultPhase::kActive:
      return Recover(fault, now, actions);
    case FaultPhase::kRecovering:
      Retrain(fault, now, actions);
      return Finish(fault, now);
    case FaultPhase::kRecovered:
      return Schedule(fault, kNever);
  }
}

void FaultService::Inject(Fault& fault, Time now, std::vector<FaultAction>* actions) {
  FaultStatus& status = fault.status;
  if (status.mends()) return Mend(fault, now, actions);
  for (FaultAction action : fault.actions) {
    action.at = now;
    if (status.spec.sets != FaultSets::kNo) action.replaces = TakePlace(action, status.number, now);
    actions->push_back(action);
  }
  status.phase = FaultPhase::kActive;
  status.injected_at = now;
  ++status.injections;
  ++injected_;
  Note(now, "fault_injected", fault,
       fmt::format("{} on {}{}", FaultKindName(status.spec.kind),
                   DescribeTargets(status.targets, topology_, kNamesListed),
                   WhichTime(status.spec, status.injections)));
  const Time off = status.spec.period > 0 ? now + OnTime(status.spec) : kNever;
  Schedule(fault, std::min(off, fault.stops_at));
}

void FaultService::Recover(Fault& fault, Time now, std::vector<FaultAction>* actions) {
  FaultStatus& status = fault.status;
  for (auto action = fault.actions.rbegin(); action != fault.actions.rend(); ++action) {
    FaultAction ends = *action;
    ends.at = now;
    ends.begins = false;
    if (ends.kind == FaultAction::Kind::kRewired) ends.count += kSwapGeneration;
    actions->push_back(ends);
  }
  std::erase_if(set_, [&status](const auto& place) { return place.second == status.number; });
  status.recovered_at = now;
  ++status.recoveries;
  Note(now, "fault_recovered", fault,
       fmt::format("{}{}", FaultKindName(status.spec.kind),
                   WhichTime(status.spec, status.recoveries)));
  if (CorruptsFlits(fault.status.spec.kind)) Retrain(fault, now, actions);
  const FaultSpec& spec = status.spec;
  const Time again = spec.period > 0 ? status.injected_at + spec.period : kNever;
  const bool more = !status.deleted && again < fault.stops_at &&
                    (spec.repeats == 0 || status.injections < spec.repeats);
  if (more) {
    status.phase = FaultPhase::kPaused;
    return Schedule(fault, again);
  }
  if (!CorruptsFlits(fault.status.spec.kind)) return Finish(fault, now);
  status.phase = FaultPhase::kRecovering;
  Schedule(fault, now + ReplayMax());
}

// Ends the faults that are set at the places of this one, and retrains their links if they may be
// down because of them, as the end of any fault does: at once, and again when no replay can take
// them down any more.
void FaultService::Mend(Fault& mending, Time now, std::vector<FaultAction>* actions) {
  bool ended = false;
  for (const FaultAction& place : mending.actions) {
    const auto held = set_.find(PlaceOf(place));
    if (held == set_.end()) continue;
    const std::uint32_t number = held->second;
    set_.erase(held);
    FaultAction ends = place;
    ends.at = now;
    ends.begins = false;
    ends.fault = number;
    actions->push_back(ends);
    GiveUpPlace(number, place, now);
    ended = true;
  }
  const bool corrupted = CorruptsFlits(mending.status.spec.kind) && ended;
  if (corrupted || mending.status.spec.kind == FaultKind::kLinkDown) Retrain(mending, now, actions);
  if (!corrupted) return Finish(mending, now);
  mending.status.phase = FaultPhase::kRecovering;
  Schedule(mending, now + ReplayMax());
}

// From now on this fault is the one set at the place of the action. Returns the previous one, 0 if
// there was none.
std::uint32_t FaultService::TakePlace(const FaultAction& action, std::uint32_t by, Time now) {
  const auto [place, fresh] = set_.try_emplace(PlaceOf(action), by);
  if (fresh) return 0;
  const std::uint32_t before = std::exchange(place->second, by);
  GiveUpPlace(before, action, now);
  return before;
}

// The fault is over when it has no place left, and gone if it was deleted.
void FaultService::GiveUpPlace(std::uint32_t number, const FaultAction& action, Time now) {
  Fault& fault = faults_.at(number);
  std::erase_if(fault.actions,
                [&](const FaultAction& own) { return PlaceOf(own) == PlaceOf(action); });
  if (!fault.actions.empty()) return;
  fault.status.recovered_at = now;
  ++fault.status.recoveries;
  Note(now, "fault_recovered", fault,
       fmt::format("{}{}", FaultKindName(fault.status.spec.kind),
                   WhichTime(fault.status.spec, fault.status.recoveries)));
  Finish(fault, now);
}

// Links that were given up under the fault come up again, unless something else keeps them down.
void FaultService::Retrain(const Fault& fault, Time now, std::vector<FaultAction>* actions) {
  for (const LinkEnd& link : fault.status.targets.links) {
    FaultAction retrain;
    retrain.at = now;
    retrain.fault = fault.status.number;
    retrain.kind = FaultAction::Kind::kRetrain;
    retrain.end = link;
    actions->push_back(retrain);
  }
}

// The fault is gone afterwards if it was deleted.
void FaultService::Finish(Fault& fault, Time now) {
  Schedule(fault, kNever);
  fault.status.phase = FaultPhase::kRecovered;
  if (!fault.status.deleted) return;
  if (fault.status.spec.kind == FaultKind::kMiswired) --miswired_;
  faults_.erase(fault.status.number);
}

// A flit that is being replayed when its link is healthy again may still give the link up, at most
// this much later: `replay_limit` rounds of B.8 on the slowest link there can be, and a picosecond.
Time FaultService::ReplayMax() const {
  Time longest = 0;
  for (const LinkClass link_class :
       {LinkClass::kLl, LinkClass::kLr, LinkClass::kD, LinkClass::kIb}) {
    if (link_class == LinkClass::kIb && !topology_.has_tree()) continue;
    const LinkParameters& link = parameters_.link(link_class);
    const Time slowest =
        (link.flit_time * link.lanes + link.lanes_min - 1) / std::max(link.lanes_min, 1);
    const Time wire = std::max(link.wire, longest_wire_);
    longest = std::max(longest, 2 * slowest + 2 * wire + parameters_.credit_processing);
  }
  for (const auto& [number, fault] : faults_) longest += 2 * fault.status.spec.latency;
  return parameters_.replay_limit * longest + 1;
}

}  // namespace percs
