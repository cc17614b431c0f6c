// Commands from outside, between two windows of virtual time.
#include <utility>

#include "client/mpi/job.h"

namespace percs::mpi {

absl::Status Job::Manage(const std::function<absl::Status(Fabric& fabric, Time now)>& act) {
  Managed command{act, {}};
  std::future<absl::Status> done = command.done.get_future();
  {
    const MutexLock lock(manage_mutex_);
    if (!manages_) return absl::FailedPreconditionError("the MPI program has ended");
    managed_.push_back(&command);
    managed_waits_ = true;
  }
  server_->doorbell().to_fabric.Ring();
  return done.get();
}

void Job::RunManaged() {
  if (!managed_waits_.load(std::memory_order_relaxed)) return;
  std::vector<Managed*> commands;
  {
    const MutexLock lock(manage_mutex_);
    commands = std::exchange(managed_, {});
    managed_waits_ = false;
  }
  for (Managed* command : commands) command->done.set_value(command->act(*fabric_, fabric_->now()));
}

void Job::RefuseManaged() {
  const MutexLock lock(manage_mutex_);
  manages_ = false;
  for (Managed* command : std::exchange(managed_, {}))
    command->done.set_value(absl::FailedPreconditionError("the MPI program has ended"));
}

}  // namespace percs::mpi
