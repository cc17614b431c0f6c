// The ranks of one MPI program on hubs of this process: a window for each, and the rule by which
// virtual time passes while ranks run in wall time. Either the whole machine is in this process,
// and the job has a thread that drives it, or a percsd has some of its hubs, gives their ranks the
// windows of virtual time that the controller opens, and reports a window when all of them wait.
//
// Every rank has a clock. It runs (its next call is not before a known time), or waits (until
// something comes, or until a time), or is away (starting, ending). What is to happen next in
// virtual time happens once no running rank can do anything before it; so the order of all things
// follows from virtual times and ranks' numbers, and not from how fast processes are.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/mpi/call_log.h"
#include "client/mpi/collectives.h"
#include "client/mpi/rank_server.h"
#include "client/mpi/transport.h"
#include "emulator/sim/run.h"
#include "proto/process/mutex.h"

namespace percs::v1 {
class JournalRecord;
}  // namespace percs::v1

namespace percs::mpi {

class JobJournal;

inline constexpr double kComputeScaleMax = 1000;

struct JobOptions {
  Scenario machine;  // without workload
  std::vector<RankPlace> places;
  JobKey job = 1;
  double compute_scale = 0;  // virtual per CPU time, at most kComputeScaleMax
  // Of a collective on trees of CAUs, at most kPayloadMax; 0: all of them are messages.
  std::uint64_t collective_bytes = 0;
  CauTreeId world_tree = 0;  // Join: WorldTree of the places, which the fabric has
  TransportParameters transport;
  // All ranks wait for messages that no rank has sent, for so long of wall time: a deadlock.
  std::chrono::milliseconds deadlock_after{10'000};
  // Null, or outlive the job: what ranks call, of a job with a thread and of one without.
  JobJournal* journal = nullptr;
  CallLog* calls = nullptr;
};

// A run as its journal has it.
struct JobReplay {
  struct Command {
    Time at = 0;  // the end of a window
    std::function<absl::Status(Fabric& fabric, Time at)> act;
  };
  std::vector<std::deque<LoggedCall>> calls;  // by rank
  std::deque<Command> commands;               // in the order of their times
};

struct RankSummary {
  Time total = 0, computing = 0, waiting = 0;  // the rest is communicating
  bool attached = false, ended = false;        // ended: by MPI_Finalize
  TrafficCounts traffic;
  Digest times;  // of its calls and completions
};

struct LinkUse {
  std::string name;
  std::uint64_t flits = 0;
};

struct JobResult {
  RunResult run;
  std::vector<LinkUse> links;  // those with the most flits
  Digest digest;               // of the run and of the ranks' clocks
  Digest times;                // of calls and completions, their order and times, without bytes
  std::vector<RankSummary> ranks;
  CollectiveCounts collectives;
  Time virtual_time = 0;  // of the rank that ended last
  std::string failure;    // "": none
  // Ranks that had said to wait and called all the same: from here on times depend on how fast
  // processes are.
  std::uint64_t late_calls = 0;

  // Sets digest, times and virtual_time, of `run` and `ranks`.
  void Combine();
};

// How things stand with the ranks of this process.
struct JobStanding {
  std::uint32_t absent = 0;   // not attached yet, or they do not communicate yet
  std::uint32_t running = 0;  // virtual time waits for their next calls
  std::uint32_t waiting = 0;
  std::uint32_t over = 0;  // ended, or gone
  bool stuck = false;      // some wait, and nothing that is known will happen to any of them
  bool idle = false;       // all are over, and no packet waits to be sent or acknowledged
};

// WIDE: 30 members; the last ones are the machine and what the MPI programs in it share.
class Job final : public TransportUser {
 public:
  // INVALID_ARGUMENT for a machine that cannot be built, or that has not these windows.
  static absl::StatusOr<std::unique_ptr<Job>> Start(JobOptions options);
  ~Job() override;
  // All of a run, in this thread, without ranks. INVALID_ARGUMENT as Start.
  static absl::StatusOr<JobResult> Replay(JobOptions options, JobReplay replay);

  // For hubs of `fabric` that live here, without a thread: whoever gives the fabric windows calls
  // the methods below, one at a time. Virtual time begins for the ranks with StartAt.
  // INVALID_ARGUMENT as Start. REQUIRES: the fabric is gone before the job.
  static absl::StatusOr<std::unique_ptr<Job>> Join(JobOptions options, Fabric& fabric);
  // Takes in what ranks have said. True if there was something.
  bool Hear();
  JobStanding standing() const;
  bool started() const { return started_; }
  // `at` of the fabric is 0 for the ranks. REQUIRES: no rank is absent or runs.
  void StartAt(Time at);
  // Ranks that said to wait and want to call all the same; they are resumed at `at`.
  bool any_late() const;
  void ResumeLate(Time at);
  // When something is to happen at its ranks, apart from events of the fabric; kNever if nothing is
  // known to.
  Time NextOfRanks() const;
  // Does what is next, at a time before `end` and not after `others`, the next time at which other
  // jobs act; unless it is alone, these have to be asked again after each window. False: nothing is
  // to be done before, or a rank has to say something first. Hears nothing: of several jobs each
  // must see the others as they were when it was found to have nothing to do.
  bool Advance(Time others, Time end, bool alone);
  // The ranks' windows are given back at `at`. REQUIRES: standing().idle.
  void Close(Time at);
  // Waits until ranks have something to say. THREAD: any, unlike the rest; `seen` from the call
  // before, 0 at first.
  std::uint32_t AwaitBell(std::uint32_t seen);
  void RingBell() { server_->doorbell().to_fabric.Ring(); }
  // Of all ranks; of those elsewhere nothing is known.
  std::vector<RankSummary> Summaries();
  const std::string& failure() const { return failure_; }
  std::uint64_t late_calls() const { return late_calls_; }
  // Of groups whose first hub or rank is here.
  CollectiveCounts collectives() const {
    return collectives_ ? collectives_->counts() : CollectiveCounts();
  }
  Time began() const { return base_; }
  const JobOptions& options() const { return options_; }
  // Calls and completions so far: while it is the same, nothing happened.
  std::uint64_t changes() const { return changes_; }
  // For people: the ranks that wait, and for what.
  std::string WhoWaits() const;
  bool here(std::uint32_t rank) const { return ranks_[rank].state != State::kElsewhere; }

  // The socket at which ranks attach.
  const std::string& socket() const { return server_->path(); }
  Time now() const { return now_.load(); }
  std::uint64_t messages() const { return messages_.load(); }
  bool failed() const { return failed_.load(); }
  std::uint32_t attached() const { return attached_.load(); }
  const Topology& topology() const { return fabric_->topology(); }
  // From any thread: carries this out between two windows, at the time that the first ended, and
  // waits for it. FAILED_PRECONDITION once the program has ended. `command` is what the journal
  // gets if it succeeds; null for what changes nothing.
  absl::Status Manage(const std::function<absl::Status(Fabric& fabric, Time now)>& act,
                      const v1::JournalRecord* command = nullptr);
  // The program has ended, or is to: what is under way is delivered, and the fabric ends.
  JobResult Finish();

  void OnCompletion(std::uint32_t rank, Completion&& completion) override;
  void OnFailure(const std::string& reason) override;

 private:
  // kElsewhere: on a hub of another process.
  enum class State : std::uint8_t {
    kAbsent,
    kAttached,
    kRunning,
    kWaiting,
    kAway,
    kGone,
    kElsewhere
  };
  struct Cancelling {
    std::uint64_t id = 0;
  };
  struct Leaving {
    std::uint64_t group = 0;
  };
  struct Call {
    Time at = 0;
    std::variant<SendCall, ReceiveCall, Cancelling, JoinCall, CollectiveCall, Leaving> what;
  };
  struct Line {  // to the rank, when its ring is full
    Record record;
    Bytes bytes;
  };
  struct Rank {
    State state = State::kAbsent;
    bool has_channel = false;
    Time clock = 0;     // of its last record
    Time earliest = 0;  // kRunning: it does nothing before
    Time until = 0;     // kWaiting
    Time waited = 0, computed = 0;
    bool ended = false;
    bool late = false;  // wants to be resumed
    DigestStream times;
    std::deque<Call> calls;
    std::vector<Call> calls_begun;  // one, of which bytes are missing
    std::uint64_t missing = 0;
    std::multimap<Time, Completion> completions;
    std::deque<Line> lines;
  };

  explicit Job(JobOptions options) : options_(std::move(options)), ranks_(options_.places.size()) {}
  absl::Status Build();
  absl::Status MakeFabric();
  void Open(Time at);
  absl::Status Listen();
  void Serve();
  void End();

  // --- job_manage.cc
  struct Managed {
    const std::function<absl::Status(Fabric&, Time)>& act;
    const v1::JournalRecord* command = nullptr;
    std::promise<absl::Status> done;
  };
  void RunManaged();
  void RefuseManaged();
  absl::Status Run(const Managed& command);
  bool RunReplayed();

  // --- job.cc: virtual time.
  // False: a rank has to say something first, or nothing is to happen before `end` or until
  // `others`.
  bool Step(Time others = kNever, Time end = kNever, bool alone = true);
  static Time WakeOf(const Rank& rank);
  // The fabric's next event, which is looked for at every hub, once until something may change it.
  Time NextInFabric();
  Time NextTime();
  // Of ranks and transport.
  Time NextAction() const;
  void RunWindow(Time end);
  bool ResumeUntil(Time horizon);
  void RunAt(Time now, Time until = kNever);
  void RunWindows(Time earliest, Time until);
  void IssueCalls(Time now);
  void IssueCall(std::uint32_t rank, Time now, Call&& call);
  void Note(std::uint32_t rank, Time at, std::uint64_t peer, std::uint64_t bytes);
  void CheckDeadlock();
  void Drain();
  std::vector<LinkUse> BusiestLinks() const;
  JobResult Collect();

  // --- job_ranks.cc: rings.
  // In a replay: what ranks that run call next.
  bool HearReplayed();
  void Wake(std::uint32_t rank);
  void OnEvent(const RankEvent& event);
  void Read(std::uint32_t rank);
  void Log(std::uint32_t rank, Record record, const Bytes& bytes);
  // False: the rank broke the protocol.
  bool OnRecord(std::uint32_t rank, const Record& record, Bytes&& bytes);
  bool OnCall(std::uint32_t rank, const Record& record, Bytes&& bytes);
  bool OnMessageCall(const Record& record, Bytes& bytes, std::uint64_t* missing, Call* call) const;
  bool OnCollectiveCall(const Record& record, Bytes& bytes, Call* call) const;
  void Resume(std::uint32_t rank, Time at);
  void Deliver(std::uint32_t rank, Completion&& completion);
  void Write(std::uint32_t rank, const Record& record, const std::uint8_t* bytes);
  void Flush(std::uint32_t rank);

  const JobOptions options_;
  std::unique_ptr<Fabric> own_fabric_;  // null: another's
  Fabric* fabric_ = nullptr;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Collectives> collectives_;  // null: all are messages
  std::unique_ptr<RankServer> server_;
  std::map<std::uint64_t, std::uint32_t> rank_of_peer_;
  std::vector<Rank> ranks_;
  Time cost_min_ = 0;  // of a call
  Time window_ = 0;    // no longer than that, so that who hears in a window calls after it
  Time base_ = 0;      // of the fabric, is 0 for the ranks
  Time next_in_fabric_ = 0;
  bool knows_next_ = false;
  std::uint64_t windows_ = 0, late_calls_ = 0, changes_ = 0;
  bool started_ = false;
  bool completed_ = false;  // something, since it was last looked at
  bool lines_wait_ = false;
  std::uint32_t rung_ = 0;  // the doorbell, when it was heard last
  std::chrono::steady_clock::time_point idle_since_{};
  std::string failure_;
  JobReplay replay_;
  Time command_at_ = kNever;  // of the replay's next
  std::atomic<bool> failed_{false}, finish_{false};
  std::atomic<Time> now_{0};
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint32_t> attached_{0};
  Mutex manage_mutex_;
  std::vector<Managed*> managed_ ABSL_GUARDED_BY(manage_mutex_);
  bool manages_ ABSL_GUARDED_BY(manage_mutex_) = true;
  std::atomic<bool> managed_waits_{false};
  std::thread thread_;
};

}  // namespace percs::mpi
