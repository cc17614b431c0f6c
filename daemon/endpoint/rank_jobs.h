// The MPI programs that have ranks on hubs of this process (docs/mpi.md): the Ranks service, the
// windows of virtual time that ranks take part in, and what holds virtual time for them.
//
//   BeginRanks -> ranks attach, the controller hears that they owe their next call -> all wait: a
//   submission without operations -> the grant says when virtual time begins for them -> windows,
//   each of them reported once all ranks here wait -> EndRanks
//
// A submission like that is also how ranks get a window outside of those that events ask for.
//
// THREAD: guarded by the process's lock, but for the service's own methods, which take it, and a
// thread for each program, which waits for its ranks and takes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/mpi/job.h"
#include "daemon/stream/locked_service.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/ranks.grpc.pb.h"

namespace percs {

class RankJobs {
 public:
  struct Events {
    // Ranks have said something, or there are other ranks than before.
    std::function<void()> rung;
    // Whether a peer, as gRPC names it, may make another request. THREAD: any.
    std::function<absl::Status(const std::string& peer)> admit;
  };
  RankJobs(ProcessLock* lock, Events events);

  v1::Ranks::CallbackService* service() { return &service_; }

  // --- Of the programs at windows.
  // As Programs. REQUIRES: `fabric` outlives this until End.
  void Begin(std::uint64_t run, Fabric* fabric);
  void End(const absl::Status& why);
  // The process ends.
  void Leave();
  // Ranks whose job has not ended, those that virtual time waits for, and how many there ever were
  // in this run.
  std::uint64_t attached() const;
  std::uint64_t owing() const;
  std::uint64_t arrived() const { return arrived_; }
  // Takes in what ranks have said, outside of windows.
  void Hear();
  // They need a window to go on.
  bool WantWindow() const;
  // It begins at `at`.
  void OnWindow(Time at);
  // There will be none.
  void OnRefused(const absl::Status& why);

  // --- Of the host.
  bool empty() const { return jobs_.empty(); }
  // Runs the fabric, and ranks with it, up to `end`. False: ranks run now, and `rung` will tell
  // when they have something to say.
  bool RunWindow(Time end);
  // When something is to happen to ranks; kNever if nothing is known to.
  Time next() const;

 private:
  class Service final : public LockedService<v1::Ranks::CallbackService, RankJobs> {
   public:
    using LockedService::LockedService;
    grpc::ServerUnaryReactor* BeginRanks(grpc::CallbackServerContext* context,
                                         const v1::BeginRanksRequest* request,
                                         v1::BeginRanksReply* reply) override;
    grpc::ServerUnaryReactor* WatchRanks(grpc::CallbackServerContext* context,
                                         const v1::WatchRanksRequest* request,
                                         v1::WatchRanksReply* reply) override;
    grpc::ServerUnaryReactor* EndRanks(grpc::CallbackServerContext* context,
                                       const v1::EndRanksRequest* request,
                                       v1::EndRanksReply* reply) override;
  };
  struct Entry {
    Entry(ProcessLock* lock, std::size_t all_ranks) : calls(all_ranks), forgotten(lock) {}
    mpi::CallLog calls;  // for a journal, if there is to be one
    std::unique_ptr<mpi::Job> job;
    std::uint32_t ranks = 0;  // here
    bool closing = false;     // its windows are to be given back
    bool over = false;        // its thread ends
    Timer forgotten;
  };
  using Jobs = std::map<JobKey, std::shared_ptr<Entry>>;

  absl::Status BeginRanks(const v1::BeginRanksRequest& request, v1::BeginRanksReply* reply);
  absl::StatusOr<mpi::JobOptions> Admit(const v1::BeginRanksRequest& request) const;
  std::string TakenBy(JobKey job, const Entry& entry, const mpi::JobOptions& asked) const;
  absl::Status WatchRanks(const v1::WatchRanksRequest& request, v1::WatchRanksReply* reply);
  absl::Status EndRanks(const v1::EndRanksRequest& request, v1::EndRanksReply* reply);
  void Listen(const std::shared_ptr<Entry>& entry);
  void Expect(JobKey job, Entry& entry);
  // NOT_FOUND if there is none, or it is over.
  absl::StatusOr<Jobs::iterator> Find(std::uint32_t job);
  void Finish(Jobs::iterator found, bool release);
  void Retire(Jobs::iterator found);
  bool AdvanceOne(Time end);

  ProcessLock* const lock_;
  const Events events_;
  Service service_{lock_, events_.admit, this};
  Fabric* fabric_ = nullptr;  // null: no hubs
  std::uint64_t run_ = 0, arrived_ = 0;
  absl::Status ended_;  // why there are no hubs
  Jobs jobs_;
  std::vector<std::shared_ptr<Entry>> over_;  // the fabric may still have something for them
};

}  // namespace percs
