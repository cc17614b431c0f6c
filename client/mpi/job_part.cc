// A job that has some of its ranks here, on hubs of a fabric that somebody else drives.
#include <algorithm>
#include <utility>

#include "client/mpi/job.h"
#include "emulator/base/check.h"

namespace percs::mpi {
namespace {

constexpr long kBellMilliseconds = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Join(JobOptions options, Fabric& fabric) {
  std::unique_ptr<Job> job(new Job(std::move(options)));
  job->fabric_ = &fabric;
  const std::vector<NodeId> nodes = fabric.local_nodes();
  for (std::uint32_t r = 0; r < job->ranks_.size(); ++r) {
    if (!std::binary_search(nodes.begin(), nodes.end(), job->options_.places[r].hub))
      job->ranks_[r].state = State::kElsewhere;
  }
  if (absl::Status status = job->Build(); !status.ok()) return status;
  if (absl::Status status = job->Listen(); !status.ok()) return status;
  return job;
}

JobStanding Job::standing() const {
  JobStanding standing;
  for (const Rank& rank : ranks_) {
    standing.absent += rank.state == State::kAbsent || rank.state == State::kAttached;
    standing.running += rank.state == State::kRunning;
    standing.waiting += rank.state == State::kWaiting;
    standing.over += rank.state == State::kAway || rank.state == State::kGone;
  }
  const bool quiet =
      started_ && standing.running == 0 && !any_late() && NextOfRanks() == kNever && !failed_;
  standing.stuck = quiet && standing.waiting > 0;
  standing.idle = standing.absent + standing.running + standing.waiting == 0 &&
                  (failed_ || !started_ || transport_->idle());
  return standing;
}

void Job::StartAt(Time at) {
  PERCS_CHECK(!started_ && base_ == 0);
  started_ = true;
  base_ = at;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    if (rank.state == State::kElsewhere) continue;
    rank.clock += at, rank.earliest += at, rank.until += at;
    for (Call& call : rank.calls) call.at += at;
    for (Call& call : rank.calls_begun) call.at += at;
  }
  Open(at);
}

Time Job::NextOfRanks() const {
  if (!started_ || failed_) return kNever;
  Time next = NextAction();
  for (const Rank& rank : ranks_) next = std::min(next, WakeOf(rank));
  // A wait for ever is no time to come.
  return next >= kForever ? kNever : next;
}

bool Job::Advance(Time others, Time end, bool alone) {
  knows_next_ = false;  // others may have done something
  return !failed_ && Step(others, end, alone);
}

void Job::Close(Time at) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (here(r)) transport_->Close(r, at);
  }
  if (collectives_) collectives_->Close(at);
}

std::uint32_t Job::AwaitBell(std::uint32_t seen) {
  Bell& bell = server_->doorbell().to_fabric;
  bell.Wait(seen, kBellMilliseconds);
  return bell.count.load();
}

}  // namespace percs::mpi
