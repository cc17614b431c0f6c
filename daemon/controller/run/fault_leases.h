// Leases of faults: a fault that has one is deleted when its lease expires without a renewal
// (docs/faults.md, "Leases"). Times are wall times.
//
// Pure: the caller says what time it is. THREAD: calls do not overlap.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "percs/v1/state.pb.h"

namespace percs {

class FaultLeases {
 public:
  using Clock = std::chrono::steady_clock;
  using Span = std::chrono::milliseconds;
  struct Lease {
    std::uint32_t number = 0;  // of the fault: another one of this name has no lease
    Span span{0};
    Clock::time_point ends = {};
  };

  // Fault `number` of this name has a lease that each renewal extends by `span`.
  void Set(const std::string& fault, std::uint32_t number, Span span, Clock::time_point ends) {
    leases_[fault] = {number, span, ends};
  }
  // An update gave fault `before` of this name another number. Whether it has a lease.
  bool Renumber(const std::string& fault, std::uint32_t before, std::uint32_t number);
  // Returns its span. NOT_FOUND if fault `number` of this name has no lease.
  absl::StatusOr<Span> Renew(const std::string& fault, std::uint32_t number, Clock::time_point now);
  // Takes out the leases that are over, by name, and forgets those whose fault is not there.
  std::map<std::string, Lease> TakeExpired(
      Clock::time_point now,
      absl::FunctionRef<bool(const std::string& fault, std::uint32_t number)> is_there);
  // When the next one is over; the end of time if there is none.
  Clock::time_point next() const;

  void Save(v1::SavedRun* saved) const;
  // Each has its whole span from `now` on.
  void Restore(const v1::SavedRun& saved, Clock::time_point now);

 private:
  std::map<std::string, Lease> leases_;  // by fault
};

}  // namespace percs
