#include "emulator/management/fault_service.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {

constexpr std::size_t kNamesListed = 8;
// Generations of a link between two times that its cable is swapped: as often it may go down by
// itself. After kDownsPerSwap beginnings of faults, each of which takes a link down twice at most
// (by itself, and by replay), a swap counts for two.
constexpr std::uint32_t kSwapGeneration = 1u << 20;
constexpr std::uint64_t kDownsPerSwap = kSwapGeneration / 2;
static_assert(2ull * FaultService::kSwapsMax * kSwapGeneration < 1ull << 32);

absl::Status NoGeneration() {
  return absl::ResourceExhaustedError(fmt::format(
      "cables were swapped or hubs rejoined {} times, which is the maximum; start a new run",
      FaultService::kSwapsMax));
}

Time OnTime(const FaultSpec& spec) {
  return static_cast<Time>(static_cast<double>(spec.period) * spec.duty);
}

}  // namespace

const char* FaultPhaseName(FaultPhase phase) {
  constexpr const char* kNames[] = {"scheduled", "active", "paused", "recovering", "recovered"};
  return kNames[static_cast<int>(phase)];
}

void FaultService::Note(Time at, const char* kind, const Fault& fault, const std::string& text) {
  if (log_) log_->Add(at, kind, fault.status.spec.id, text);
}

void FaultService::Schedule(Fault& fault, Time at) {
  FaultStatus& status = fault.status;
  if (status.next != kNever) schedule_.erase({status.next, status.number});
  status.next = at;
  if (at != kNever) schedule_.insert({at, status.number});
}

absl::Status FaultService::NotThere(const std::string& id) const {
  std::vector<std::string> names;
  for (const auto& [name, number] : by_id_) {
    if (names.size() < kNamesListed) names.push_back(name);
  }
  return absl::NotFoundError(
      fmt::format("no fault \"{}\" exists, or it is already deleted; faults: {}{}", id,
                  names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")),
                  by_id_.size() > names.size() ? ", ..." : ""));
}

absl::StatusOr<FaultService::Fault*> FaultService::Find(const std::string& id) {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return NotThere(id);
  return &faults_.at(it->second);
}

absl::StatusOr<FaultStatus> FaultService::Get(const std::string& id) const {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return NotThere(id);
  return faults_.at(it->second).status;
}

std::vector<FaultStatus> FaultService::List() const {
  std::vector<FaultStatus> all;
  for (const auto& [number, fault] : faults_) {
    if (!fault.status.deleted) all.push_back(fault.status);
  }
  return all;
}

absl::StatusOr<FaultStatus> FaultService::Create(const FaultSpec& spec, Time now) {
  if (const auto known = Find(spec.id); known.ok()) {
    if ((*known)->status.spec == spec) return (*known)->status;
    return absl::AlreadyExistsError(fmt::format(
        "another fault \"{}\" ({}, {}) exists; update it, delete it, or choose another name",
        spec.id, FaultKindName((*known)->status.spec.kind),
        FaultPhaseName((*known)->status.phase)));
  }
  if (faults_.size() >= kFaultsMax) {
    return absl::ResourceExhaustedError(fmt::format(
        "there are already {} faults; delete some, or run `percsctl fault reset`", faults_.size()));
  }
  return Begin(spec, spec.at.value_or(now), now, 0);
}

// For a fault that is set without a name and has the last number.
std::string FaultService::FreeName(FaultKind kind) const {
  std::string name;
  for (std::uint32_t number = number_; name.empty() || by_id_.contains(name); ++number)
    name = fmt::format("{}-{}", FaultKindName(kind), number);
  return name;
}

absl::StatusOr<FaultStatus> FaultService::Update(const FaultSpec& spec, Time now) {
  const auto known = Find(spec.id);
  if (!known.ok()) return known.status();
  const FaultStatus& before = (*known)->status;
  if (before.spec == spec) return before;
  // One that began in the past continues now.
  const bool began = spec.at && before.begins_at == *spec.at;
  const Time begins_at = began ? std::max(now, *spec.at) : spec.at.value_or(now);
  const std::uint32_t number = before.number;
  auto begun = Begin(spec, begins_at, now, number);
  if (!begun.ok()) return begun.status();
  const std::uint32_t fresh = by_id_[spec.id];
  Remove(faults_.at(number), now);
  by_id_[spec.id] = fresh;
  return begun;
}

absl::Status FaultService::CheckConflicts(const Fault& fault, std::uint32_t replaced) const {
  const bool swaps = fault.status.spec.kind == FaultKind::kMiswired;
  if (swaps && !HasGeneration()) return NoGeneration();
  if (!swaps && miswired_ == 0) return absl::OkStatus();
  const auto cables = [this](const Fault& of) {
    std::set<std::pair<NodeId, PortId>> all;
    for (const FaultAction& action : of.actions) {
      if (action.of_hub() || action.kind == FaultAction::Kind::kAlertsMuted) continue;
      const LinkEnd far = topology_.Peer(action.end.node, action.end.port);
      all.insert(
          std::min(std::pair(action.end.node, action.end.port), std::pair(far.node, far.port)));
    }
    return all;
  };
  const auto wanted = cables(fault);
  for (const auto& [number, other] : faults_) {
    const FaultStatus& status = other.status;
    const bool over = status.phase == FaultPhase::kRecovered || number == replaced;
    if (over || (!swaps && status.spec.kind != FaultKind::kMiswired)) continue;
    for (const auto& [node, port] : cables(other)) {
      if (wanted.count({node, port}) == 0) continue;
      return absl::FailedPreconditionError(
          fmt::format("{} conflicts with fault {} ({}, {}): both act on {}, and a swapped cable "
                      "has no other fault; delete that one first",
                      TitleOf(fault.status.spec), status.spec.id, FaultKindName(status.spec.kind),
                      FaultPhaseName(status.phase), topology_.LinkName({node, port})));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FaultStatus> FaultService::Begin(const FaultSpec& spec, Time begins_at, Time now,
                                                std::uint32_t replaced) {
  if (absl::Status status = CheckFault(spec, topology_, parameters_); !status.ok()) return status;
  if (begins_at < now) {
    return absl::InvalidArgumentError(fmt::format("{}: at {} is in the past: virtual time is {}",
                                                  TitleOf(spec), FormatTime(begins_at),
                                                  FormatTime(now)));
  }
  Fault fault;
  FaultStatus& status = fault.status;
  status.seed = FaultSeed(spec, seed_);
  auto targets = SelectTargets(spec, topology_, status.seed);
  if (!targets.ok()) return targets.status();
  status.spec = spec;
  status.targets = *std::move(targets);
  fault.actions = ActionsOf(spec, status.targets, topology_);
  if (SwapsAtLost(fault)) {
    return absl::FailedPreconditionError(fmt::format(
        "fault {} ({}): one of its cables ends at a lost hub", spec.id, FaultKindName(spec.kind)));
  }
  if (absl::Status conflict = CheckConflicts(fault, replaced); !conflict.ok()) return conflict;
  if (absl::Status rate = CheckRate(fault, replaced); !rate.ok()) return rate;
  if (absl::Status there = CheckTargets(spec, status.targets, topology_, parameters_); !there.ok())
    return there;
  status.number = ++number_;
  status.selected_at = now;
  status.begins_at = begins_at;
  if (spec.kind == FaultKind::kMiswired) AdvanceGeneration(), ++miswired_;
  for (FaultAction& action : fault.actions) {
    action.fault = status.number;
    if (action.kind == FaultAction::Kind::kRewired)
      action.count = (2 * generations_ - 1) * kSwapGeneration;
  }
  if (spec.duration > 0) fault.stops_at = begins_at + spec.duration;
  if (spec.id.empty()) status.spec.id = FreeName(spec.kind);
  status.deleted = status.mends();
  Fault& kept = faults_[status.number] = std::move(fault);
  Schedule(kept, begins_at);
  if (kept.status.mends()) return kept.status;
  by_id_[kept.status.spec.id] = kept.status.number;
  Note(now, "fault_selected", kept,
       fmt::format("{}: {}, seed {}, begins at {}", FaultKindName(spec.kind),
                   DescribeTargets(kept.status.targets, topology_, kNamesListed), kept.status.seed,
                   FormatTime(begins_at)));
  return kept.status;
}

absl::Status FaultService::Delete(const std::string& id, Time now) {
  const auto fault = Find(id);
  if (!fault.ok()) return fault.status();
  Remove(**fault, now);
  return absl::OkStatus();
}

std::size_t FaultService::Reset(Time now) {
  const std::size_t count = by_id_.size();
  while (!by_id_.empty()) Remove(faults_.at(by_id_.begin()->second), now);
  return count;
}

void FaultService::EndRepeating(Time now) {
  std::vector<std::string> endless;
  for (const auto& [id, number] : by_id_) {
    const Fault& fault = faults_.at(number);
    if (fault.status.spec.period > 0 && fault.status.spec.repeats == 0 &&
        fault.stops_at == kNever) {
      endless.push_back(id);
    }
  }
  for (const std::string& id : endless) Remove(faults_.at(by_id_.at(id)), now);
}

// The fault may be gone afterwards.
void FaultService::Remove(Fault& fault, Time now) {
  FaultStatus& status = fault.status;
  by_id_.erase(status.spec.id);
  status.deleted = true;
  Note(now, "fault_deleted", fault, fmt::format("it was {}", FaultPhaseName(status.phase)));
  switch (status.phase) {
    case FaultPhase::kActive:
      return Schedule(fault, now);
    case FaultPhase::kPaused:
    case FaultPhase::kScheduled:
    case FaultPhase::kRecovered:
      return Finish(fault, now);
    case FaultPhase::kRecovering:
      return;
  }
}

void FaultService::Lose(const std::vector<NodeId>& hubs, Time now) {
  lost_.insert(hubs.begin(), hubs.end());
  for (auto& [number, fault] : faults_) {
    if (fault.status.phase == FaultPhase::kRecovered || !SwapsAtLost(fault)) continue;
    fault.stops_at = now;
    if (fault.status.phase == FaultPhase::kActive) {
      Schedule(fault, now);
    } else {
      Schedule(fault, kNever);
      fault.status.phase = FaultPhase::kRecovered;
    }
  }
}

absl::StatusOr<std::uint32_t> FaultService::NewGeneration() {
  if (!HasGeneration()) return NoGeneration();
  AdvanceGeneration();
  return (2 * generations_ - 1) * kSwapGeneration;
}

bool FaultService::HasGeneration() const {
  return generations_ + 1 + injected_ / kDownsPerSwap <= kSwapsMax;
}

void FaultService::AdvanceGeneration() {
  generations_ += static_cast<std::uint32_t>(1 + injected_ / kDownsPerSwap);
  injected_ = 0;
}

double FaultService::ChangesPerWindow(const Fault& fault) const {
  const FaultSpec& spec = fault.status.spec;
  if (spec.period == 0) return 0;
  return 2 * static_cast<double>(window_) * static_cast<double>(fault.actions.size()) /
         static_cast<double>(spec.period);
}

absl::Status FaultService::CheckRate(const Fault& fault, std::uint32_t replaced) const {
  const double own = ChangesPerWindow(fault);
  if (own == 0) return absl::OkStatus();
  double others = 0;
  for (const auto& [number, other] : faults_) {
    if (number != replaced && other.status.phase != FaultPhase::kRecovered)
      others += ChangesPerWindow(other);
  }
  if (own + others <= kChangesPerWindow) return absl::OkStatus();
  const FaultSpec& spec = fault.status.spec;
  const double room = static_cast<double>(kChangesPerWindow) - others;
  const std::string arithmetic = fmt::format(
      "fault {} ({}): it begins and ends once in {}, so in a window of virtual time (the "
      "lookahead, {}) there are 2 x {} / {} x {} places = {:.0f} changes{}; at most {} are carried "
      "out",
      spec.id, FaultKindName(spec.kind), FormatTime(spec.period), FormatTime(window_),
      FormatTime(window_), FormatTime(spec.period), fault.actions.size(), own,
      others > 0 ? fmt::format(", beside {:.0f} of other faults", others) : "", kChangesPerWindow);
  if (own > kChangesPerWindow || room >= 1) {
    const double shortest = 2 * static_cast<double>(window_) *
                            static_cast<double>(fault.actions.size()) /
                            (room >= 1 ? room : static_cast<double>(kChangesPerWindow));
    return absl::InvalidArgumentError(
        fmt::format("{}. Write a period of at least {}, or select fewer places", arithmetic,
                    FormatTime(static_cast<Time>(std::ceil(shortest)))));
  }
  return absl::ResourceExhaustedError(arithmetic + "; delete one of the others");
}

std::vector<FaultAction> FaultService::ActingOn(const std::vector<NodeId>& hubs, Time at) const {
  const auto is_new = [&](NodeId node) {
    return std::find(hubs.begin(), hubs.end(), node) != hubs.end();
  };
  std::vector<FaultAction> acting;
  for (const auto& [number, fault] : faults_) {
    if (fault.status.phase != FaultPhase::kActive) continue;
    for (FaultAction action : fault.actions) {
      const bool over = action.kind == FaultAction::Kind::kCorruptNext ||
                        action.kind == FaultAction::Kind::kTableDamaged ||
                        action.kind == FaultAction::Kind::kRewired;
      const bool concerns =
          is_new(action.end.node) ||
          (action.at_both_ends() && is_new(topology_.Peer(action.end.node, action.end.port).node));
      if (over || !concerns) continue;
      action.at = at;
      acting.push_back(action);
    }
  }
  return acting;
}

bool FaultService::SwapsAtLost(const Fault& fault) const {
  return std::any_of(fault.actions.begin(), fault.actions.end(), [this](const FaultAction& action) {
    return action.kind == FaultAction::Kind::kRewired && lost_.contains(action.end.node);
  });
}

void FaultService::ResetArbiters(Time now) {
  reset_at_ = now;
  if (log_) log_->Add(now, "arbiters_reset", "fabric", "all round-robin arbiters are reset");
}

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
       fmt::format("{} on {}, time {}", FaultKindName(status.spec.kind),
                   DescribeTargets(status.targets, topology_, kNamesListed), status.injections));
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
       fmt::format("{}, time {}", FaultKindName(status.spec.kind), status.recoveries));
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

// Ends what is set at the places of this one, and retrains their links if that may have taken them
// down, as the end of any fault does; at once and again when no replay can still do so.
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

// What is set at the place of the action is this fault from now on. Returns the one before, 0 if
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
       fmt::format("{}, time {}", FaultKindName(fault.status.spec.kind), fault.status.recoveries));
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

// A flit that is being replayed when its link is healthy again may still give the link up, so much
// later at most: `replay_limit` rounds of B.8 on the slowest link there can be, and a picosecond.
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
