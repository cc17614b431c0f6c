#include "emulator/management/fault_service.h"

#include <algorithm>
#include <cmath>

#include "emulator/management/stall_limit.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace percs {
namespace {

// After this many beginnings of faults, each of which takes a link down twice at most (by itself,
// and by replay), a swap counts for two.
constexpr std::uint64_t kDownsPerSwap = FaultService::kSwapGeneration / 2;
static_assert(2ull * FaultService::kSwapsMax * FaultService::kSwapGeneration < 1ull << 32);

absl::Status NoGeneration() {
  return absl::ResourceExhaustedError(fmt::format(
      "cables were swapped or hubs rejoined {} times, which is the maximum; start a new run",
      FaultService::kSwapsMax));
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
  Remove(faults_.at(number), now);
  if (!begun->mends()) by_id_[spec.id] = begun->number;  // one that mends is no fault to keep
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
  if (absl::Status stall = CheckStall(spec, replaced); !stall.ok()) return stall;
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

absl::Status FaultService::CheckRate(const Fault& fault, std::uint32_t replaced) const {
  const auto changes = [this](const Fault& of) {
    const Time period = of.status.spec.period;
    if (period == 0) return 0.0;
    return 2 * static_cast<double>(window_) * static_cast<double>(of.actions.size()) /
           static_cast<double>(period);
  };
  const double own = changes(fault);
  if (own == 0) return absl::OkStatus();
  double others = 0;
  for (const auto& [number, other] : faults_) {
    if (number != replaced && other.status.phase != FaultPhase::kRecovered)
      others += changes(other);
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

absl::Status FaultService::CheckStall(const FaultSpec& spec, std::uint32_t replaced) const {
  std::vector<FaultSpec> acting{spec};
  for (const auto& [number, other] : faults_) {
    if (number != replaced && other.status.phase != FaultPhase::kRecovered)
      acting.push_back(other.status.spec);
  }
  const absl::Status status =
      CheckStallLimit(parameters_, topology_.has_tree(), longest_wire_, acting);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format(
      "with fault {} ({}): {}", spec.id, FaultKindName(spec.kind), std::string(status.message())));
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

}  // namespace percs
