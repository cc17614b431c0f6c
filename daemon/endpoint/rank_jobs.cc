#include "daemon/endpoint/rank_jobs.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "client/mpi/summary.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::seconds kForgottenAfter(60);
constexpr std::size_t kRanksMax = 4096;

bool Owes(const mpi::JobStanding& standing) { return standing.absent + standing.running > 0; }

}  // namespace

RankJobs::RankJobs(ProcessLock* lock, Events events)
    : lock_(lock),
      events_(std::move(events)),
      ended_(absl::FailedPreconditionError("no scenario is applied")) {}

void RankJobs::Begin(std::uint64_t run, Fabric* fabric) {
  over_.clear();
  run_ = run;
  fabric_ = fabric;
  arrived_ = 0;
}

// Who watches them hears why, later; they hear it now.
void RankJobs::End(const absl::Status& why) {
  fabric_ = nullptr;
  ended_ = why;
  for (const auto& [key, entry] : jobs_) entry->job->OnFailure(std::string(why.message()));
}

void RankJobs::Leave() {
  End(absl::UnavailableError("the percsd is shutting down"));
  while (!jobs_.empty()) Retire(jobs_.begin());
}

std::uint64_t RankJobs::attached() const {
  std::uint64_t ranks = 0;
  for (const auto& [key, entry] : jobs_) ranks += entry->ranks;
  return ranks;
}

std::uint64_t RankJobs::owing() const {
  std::uint64_t ranks = 0;
  for (const auto& [key, entry] : jobs_) {
    const mpi::JobStanding standing = entry->job->standing();
    if (entry->job->failure().empty() && !entry->closing)
      ranks += standing.absent + standing.running;
  }
  return ranks;
}

void RankJobs::Hear() {
  for (const auto& [key, entry] : jobs_) entry->job->Hear();
}

bool RankJobs::WantWindow() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    const Entry& entry = *job.second;
    if (entry.closing) return true;
    if (!entry.job->failure().empty()) return false;
    return entry.job->started() ? entry.job->any_late() : !Owes(entry.job->standing());
  });
}

void RankJobs::OnWindow(Time at) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto found = it++;
    Entry& entry = *found->second;
    if (entry.closing) {
      entry.job->Close(at);
      Retire(found);
    } else if (entry.job->started()) {
      entry.job->ResumeLate(at);
    } else if (!Owes(entry.job->standing())) {
      entry.job->StartAt(at);
    }
  }
}

void RankJobs::OnRefused(const absl::Status& why) {
  for (const auto& [key, entry] : jobs_) entry->job->OnFailure(std::string(why.message()));
}

// The first that can do something does it. What others do next bounds it.
bool RankJobs::AdvanceOne(Time end) {
  Hear();
  for (const auto& [key, entry] : jobs_) {
    Time others = kNever;
    for (const auto& [other_key, other] : jobs_) {
      if (other == entry) continue;
      others = std::min(others, other->job->NextOfRanks());
      if (other->job->started() && other->job->failure().empty() &&
          other->job->standing().running > 0)
        others = std::min(others, fabric_->now());
    }
    if (entry->job->Advance(others, end, jobs_.size() == 1)) return true;
  }
  return false;
}

bool RankJobs::RunWindow(Time end) {
  while (AdvanceOne(end)) {
  }
  for (const auto& [key, entry] : jobs_) {
    if (entry->job->started() && entry->job->failure().empty() &&
        entry->job->standing().running > 0)
      return false;
  }
  if (fabric_->now() < end) fabric_->RunWindow(end);
  return true;
}

Time RankJobs::next() const {
  Time next = kNever;
  for (const auto& [key, entry] : jobs_) next = std::min(next, entry->job->NextOfRanks());
  return next;
}

// Programs that begin and end

absl::StatusOr<mpi::JobOptions> RankJobs::Admit(const v1::BeginRanksRequest& request) const {
  if (fabric_ == nullptr) return ended_;
  if (request.job() < 1 || request.job() > 0xffff)
    return absl::InvalidArgumentError(fmt::format("job is {}; write 1 to 65535", request.job()));
  const auto ranks = static_cast<std::size_t>(request.hubs_size());
  if (ranks == 0 || ranks > kRanksMax || request.windows_size() != request.hubs_size()) {
    return absl::InvalidArgumentError(fmt::format(
        "a program of {} ranks at {} windows; write one window for each of 1 to {} ranks", ranks,
        request.windows_size(), kRanksMax));
  }
  if (!(request.compute_scale() >= 0 && request.compute_scale() <= mpi::kComputeScaleMax)) {
    return absl::InvalidArgumentError(fmt::format("compute_scale is {}; write 0 to {}",
                                                  request.compute_scale(), mpi::kComputeScaleMax));
  }
  if (request.collective_bytes() > mpi::kPayloadMax || request.world_tree() > 0xffff) {
    return absl::InvalidArgumentError(
        fmt::format("collectives of {} bytes on tree {}; write 0 to {} bytes, and a tree's number",
                    request.collective_bytes(), request.world_tree(), mpi::kPayloadMax));
  }
  mpi::JobOptions options;
  options.job = static_cast<JobKey>(request.job());
  options.world_tree = static_cast<CauTreeId>(request.world_tree());
  options.compute_scale = request.compute_scale();
  options.collective_bytes = request.collective_bytes();
  std::set<std::pair<std::uint32_t, std::uint32_t>> places;
  for (int r = 0; r < request.hubs_size(); ++r) {
    if (request.hubs(r) >= fabric_->topology().leaves() || request.windows(r) >= kAnyWindow) {
      return absl::InvalidArgumentError(fmt::format("rank {} is at window {} of hub {} of {}", r,
                                                    request.windows(r), request.hubs(r),
                                                    fabric_->topology().leaves()));
    }
    options.places.push_back({request.hubs(r), static_cast<WindowId>(request.windows(r))});
    if (!places.insert({request.hubs(r), request.windows(r)}).second) {
      return absl::InvalidArgumentError(fmt::format("rank {} is at window {} of {}, as another one",
                                                    r, request.windows(r),
                                                    fabric_->topology().NodeName(request.hubs(r))));
    }
  }
  for (const auto& [key, entry] : jobs_) {
    const std::string taken = TakenBy(key, *entry, options);
    if (taken.empty()) continue;
    if (!entry->closing) return absl::AlreadyExistsError(taken);
    return absl::AbortedError(taken +
                              ", and ends in the next window of virtual time; try again after it");
  }
  return options;
}

// What a program has that another one asks for; "": nothing.
std::string RankJobs::TakenBy(JobKey job, const Entry& entry, const mpi::JobOptions& asked) const {
  if (job == asked.job) return fmt::format("job {} has ranks here already", job);
  for (const mpi::RankPlace& taken : entry.job->options().places) {
    for (const mpi::RankPlace& place : asked.places) {
      if (taken.hub != place.hub || taken.window != place.window) continue;
      return fmt::format("job {} has window {} of {}", job, place.window,
                         fabric_->topology().NodeName(place.hub));
    }
  }
  return "";
}

absl::Status RankJobs::BeginRanks(const v1::BeginRanksRequest& request,
                                  v1::BeginRanksReply* reply) {
  auto options = Admit(request);
  if (!options.ok()) return options.status();
  const JobKey key = options->job;
  const auto entry = std::make_shared<Entry>(lock_, options->places.size());
  if (request.journal()) options->calls = &entry->calls;
  auto job = mpi::Job::Join(*std::move(options), *fabric_);
  if (!job.ok()) return job.status();
  entry->job = *std::move(job);
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(request.hubs_size()); ++r) {
    if (!entry->job->here(r)) continue;
    ++entry->ranks;
    reply->add_ranks(r);
  }
  arrived_ += entry->ranks;
  jobs_[key] = entry;
  reply->set_run(run_);
  reply->set_socket(entry->job->socket());
  spdlog::info("job {}: {} ranks attach at {}", key, entry->ranks, entry->job->socket());
  Expect(key, *entry);
  Listen(entry);
  events_.rung();
  return absl::OkStatus();
}

absl::StatusOr<RankJobs::Jobs::iterator> RankJobs::Find(std::uint32_t job) {
  const auto found = job > 0xffff ? jobs_.end() : jobs_.find(static_cast<JobKey>(job));
  if (found == jobs_.end() || found->second->closing)
    return absl::NotFoundError(fmt::format("job {} has no ranks here", job));
  return found;
}

void RankJobs::Expect(JobKey job, Entry& entry) {
  entry.forgotten.Set(kForgottenAfter, [this, job] {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) return;
    spdlog::warn("job {}: no request for {} s", job, kForgottenAfter.count());
    found->second->job->OnFailure("percsctl mpirun does not ask for the program any more");
    Finish(found, /*release=*/true);
    events_.rung();
  });
}

void RankJobs::Listen(const std::shared_ptr<Entry>& entry) {
  lock_->Add();
  std::thread([this, entry = std::shared_ptr<Entry>(entry), lock = lock_]() mutable {
    for (std::uint32_t seen = 0;;) {
      const std::uint32_t rung = entry->job->AwaitBell(seen);
      const LockGuard guard(lock->mutex());
      if (entry->over) break;
      if (std::exchange(seen, rung) != rung) events_.rung();
    }
    const LockGuard guard(lock->mutex());
    entry.reset();
    lock->Remove();
  }).detach();
}

absl::Status RankJobs::WatchRanks(const v1::WatchRanksRequest& request,
                                  v1::WatchRanksReply* reply) {
  const auto sought = Find(request.job());
  if (!sought.ok()) return sought.status();
  const auto found = *sought;
  Expect(found->first, *found->second);
  const mpi::Job& job = *found->second->job;
  const mpi::JobStanding standing = job.standing();
  reply->set_absent(standing.absent);
  reply->set_running(standing.running);
  reply->set_waiting(standing.waiting);
  reply->set_over(standing.over);
  reply->set_stuck(standing.stuck);
  reply->set_idle(standing.idle);
  reply->set_changes(job.changes());
  reply->set_messages(job.messages());
  if (fabric_ != nullptr) reply->set_virtual_time(fabric_->now());
  reply->set_failure(job.failure());
  if (standing.stuck) reply->set_waits(job.WhoWaits());
  reply->set_calls(found->second->calls.Take());
  return absl::OkStatus();
}

absl::Status RankJobs::EndRanks(const v1::EndRanksRequest& request, v1::EndRanksReply* reply) {
  const auto sought = Find(request.job());
  if (!sought.ok()) return sought.status();
  const auto found = *sought;
  mpi::Job& job = *found->second->job;
  job.Hear();
  reply->set_failure(job.failure());
  reply->set_late_calls(job.late_calls());
  reply->set_calls(found->second->calls.Take());
  reply->set_began(job.began());
  mpi::CollectivesToProto(job.collectives(), reply);
  const std::vector<mpi::RankSummary> summaries = job.Summaries();
  for (std::uint32_t r = 0; r < summaries.size(); ++r) {
    if (!job.here(r)) continue;
    mpi::SummaryToProto(summaries[r], reply->add_ranks());
    reply->mutable_ranks()->rbegin()->set_rank(r);
  }
  Finish(found, request.release());
  events_.rung();
  return absl::OkStatus();
}

void RankJobs::Finish(Jobs::iterator found, bool release) {
  found->second->forgotten.Cancel();
  if (release && fabric_ != nullptr && found->second->job->started()) {
    found->second->closing = true;
  } else {
    Retire(found);
  }
}

void RankJobs::Retire(Jobs::iterator found) {
  const std::shared_ptr<Entry> entry = found->second;
  jobs_.erase(found);
  entry->forgotten.Cancel();
  entry->over = true;
  entry->job->RingBell();
  if (fabric_ != nullptr) over_.push_back(entry);
}

// The service

grpc::ServerUnaryReactor* RankJobs::Service::BeginRanks(grpc::CallbackServerContext* context,
                                                        const v1::BeginRanksRequest* request,
                                                        v1::BeginRanksReply* reply) {
  return Answer(context, [=, this]() PERCS_LOCKED { return owner_->BeginRanks(*request, reply); });
}

grpc::ServerUnaryReactor* RankJobs::Service::WatchRanks(grpc::CallbackServerContext* context,
                                                        const v1::WatchRanksRequest* request,
                                                        v1::WatchRanksReply* reply) {
  return Answer(context, [=, this]() PERCS_LOCKED { return owner_->WatchRanks(*request, reply); });
}

grpc::ServerUnaryReactor* RankJobs::Service::EndRanks(grpc::CallbackServerContext* context,
                                                      const v1::EndRanksRequest* request,
                                                      v1::EndRanksReply* reply) {
  return Answer(context, [=, this]() PERCS_LOCKED { return owner_->EndRanks(*request, reply); });
}

}  // namespace percs
