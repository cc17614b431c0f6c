// Commands from outside, between two windows of virtual time.
#include <utility>

#include "client/mpi/job.h"
#include "client/mpi/job_journal.h"

namespace percs::mpi {

absl::Status Job::Manage(const std::function<absl::Status(Fabric& fabric, Time now)>& act,
                         const v1::JournalRecord* journalled) {
  Managed command{act, journalled, {}};
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
  for (Managed* command : commands) command->done.set_value(Run(*command));
}

absl::Status Job::Run(const Managed& command) {
  const Time now = fabric_->now();
  knows_next_ = false;
  absl::Status status = command.act(*fabric_, now);
  if (!status.ok() || command.command == nullptr || options_.journal == nullptr) return status;
  v1::JournalRecord record = *command.command;
  record.set_at(now);
  if (absl::Status kept = options_.journal->Add(record); !kept.ok())
    OnFailure("journal: " + std::string(kept.message()));
  return status;
}

// Those that are due; the next one ends the windows before it.
bool Job::RunReplayed() {
  bool ran = false;
  while (!replay_.commands.empty() && fabric_->now() >= replay_.commands.front().at) {
    const absl::Status status = replay_.commands.front().act(*fabric_, replay_.commands.front().at);
    if (!status.ok()) OnFailure("a command of the journal: " + std::string(status.message()));
    replay_.commands.pop_front();
    knows_next_ = false;
    ran = true;
  }
  command_at_ = replay_.commands.empty() ? kNever : replay_.commands.front().at;
  return ran;
}

void Job::RefuseManaged() {
  const MutexLock lock(manage_mutex_);
  manages_ = false;
  for (Managed* command : std::exchange(managed_, {}))
    command->done.set_value(absl::FailedPreconditionError("the MPI program has ended"));
}

}  // namespace percs::mpi
