#include "daemon/controller/run/fault_leases.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs {

bool FaultLeases::Renumber(const std::string& fault, std::uint32_t before, std::uint32_t number) {
  const auto lease = leases_.find(fault);
  if (lease == leases_.end() || lease->second.number != before) return false;
  lease->second.number = number;
  return true;
}

absl::StatusOr<FaultLeases::Span> FaultLeases::Renew(const std::string& fault, std::uint32_t number,
                                                     Clock::time_point now) {
  const auto lease = leases_.find(fault);
  if (lease == leases_.end() || lease->second.number != number) {
    return absl::NotFoundError(
        fmt::format("fault {} has no lease; it lasts until it ends or is deleted", fault));
  }
  lease->second.ends = now + lease->second.span;
  return lease->second.span;
}

std::map<std::string, FaultLeases::Lease> FaultLeases::TakeExpired(
    Clock::time_point now,
    absl::FunctionRef<bool(const std::string& fault, std::uint32_t number)> is_there) {
  std::map<std::string, Lease> expired;
  for (auto it = leases_.begin(); it != leases_.end();) {
    const auto& [fault, lease] = *it;
    const bool there = is_there(fault, lease.number);
    if (there && lease.ends > now) {
      ++it;
      continue;
    }
    if (there) expired.emplace(fault, lease);
    it = leases_.erase(it);
  }
  return expired;
}

FaultLeases::Clock::time_point FaultLeases::next() const {
  Clock::time_point next = Clock::time_point::max();
  for (const auto& [fault, lease] : leases_) next = std::min(next, lease.ends);
  return next;
}

void FaultLeases::Save(v1::SavedRun* saved) const {
  for (const auto& [fault, lease] : leases_) {
    v1::SavedLease* kept = saved->add_leases();
    kept->set_fault(fault);
    kept->set_number(lease.number);
    kept->set_wall_ms(static_cast<std::uint64_t>(lease.span.count()));
  }
}

void FaultLeases::Restore(const v1::SavedRun& saved, Clock::time_point now) {
  for (const v1::SavedLease& lease : saved.leases()) {
    const Span span(lease.wall_ms());
    Set(lease.fault(), lease.number(), span, now + span);
  }
}

}  // namespace percs
