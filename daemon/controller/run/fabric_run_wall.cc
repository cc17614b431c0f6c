// The part of FabricRun that depends on the wall clock: pauses, and leases of faults.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kEndAgain(1'000);

}  // namespace

Time FabricRun::Pause() {
  Hurry();
  const Time at = virtual_time();
  time_.PauseAt(at);
  recovery_.touched = true;
  return at;
}

void FabricRun::LeavePause() {
  time_.LeavePause(TimePhase(), clock_.Now());
  if (phase_ == Phase::kPaused) phase_ = Phase::kRunning;
}

// Nothing is left but faults that begin or end later, and the scenario wants no time to pass for
// those alone.
bool FabricRun::OnlyFaultsWait() const {
  if (!time_.pace().pacing().idle_holds || programs_.stopped() || time_.pause_at() ||
      CommandsUndelivered() || !commands_.replay_ended() || commands_.any_retaken())
    return false;
  WorkLeft left = master_.left();
  left.unfinished -= manager_->faults()->unfinished();
  return left.done();
}

Time FabricRun::StepBy(Time by) {
  Hurry();
  const Time from = virtual_time();
  recovery_.touched = true;
  LeavePause();
  // Before the next window opens, which may begin after it.
  const Time until = by < kNever - from ? from + by : kNever;
  time_.PauseAt(until);
  Step();
  return until;
}

Time FabricRun::Resume() {
  const Time from = virtual_time();
  recovery_.touched = true;
  LeavePause();
  time_.PauseAt(std::nullopt);
  Step();
  return from;
}

absl::StatusOr<Time> FabricRun::SetPace(Time pace) {
  if (pace < 0) {
    return absl::InvalidArgumentError(
        fmt::format("a pace of {}ps/s; write one of at least 0, where 0 is without limit", pace));
  }
  if (!time_.pace().pacing().live) {
    return absl::FailedPreconditionError(
        "run.clock is batch, which has no pace; apply the scenario with run.clock: live");
  }
  Hurry();
  const Time at = time_.SetPace(pace, TimePhase(), clock_.Now());
  recovery_.touched = true;
  Step();
  return at;
}

void FabricRun::Lease(const std::string& id, std::uint32_t number, std::chrono::milliseconds span) {
  leases_.Set(id, number, span, clock_.Now() + span);
  recovery_.touched = true;
  EndLeases();
}

absl::StatusOr<std::chrono::milliseconds> FabricRun::Hold(const std::string& id) {
  if (absl::Status status = Retaking(); !status.ok()) return status;
  const auto fault = faults().Get(id);
  if (!fault.ok()) return fault.status();
  return leases_.Renew(id, fault->number, clock_.Now());
}

// Deletes faults whose leases are over, by a command like any other, and waits for the next one. A
// deletion that cannot be journalled is tried again.
void FabricRun::EndLeases() {
  const Clock::time_point now = clock_.Now();
  const auto expired =
      leases_.TakeExpired(now, [this](const std::string& id, std::uint32_t number) {
        const auto fault = faults().Get(id);
        return fault.ok() && fault->number == number;
      });
  if (const Clock::time_point next = leases_.next(); next != Clock::time_point::max())
    timers_.lease.Set(next - now, [this] { EndLeases(); });
  for (const auto& [id, lease] : expired) {
    v1::JournalRecord record;
    record.set_delete_fault(id);
    Act(std::move(record), nullptr, [this, id = id, lease = lease](absl::StatusOr<Time> at) {
      if (at.ok()) {
        spdlog::info("run {}: the lease of fault {} expired; the fault is deleted at {}",
                     setup_.number, id, FormatTime(*at));
      } else if (absl::IsResourceExhausted(at.status()) || absl::IsUnavailable(at.status())) {
        leases_.Set(id, lease.number, lease.span, clock_.Now() + kEndAgain);
        timers_.lease.Set(kEndAgain, [this] { EndLeases(); });
      }
    });
  }
}

}  // namespace percs
