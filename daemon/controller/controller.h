// percs-controller: its server, the daemons that joined, the run they are on and the results of
// earlier ones.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/address.h"
#include "daemon/config/random_number.h"
#include "daemon/controller/members/loss_watch.h"
#include "daemon/controller/members/membership.h"
#include "daemon/controller/run/fabric_run.h"
#include "daemon/controller/run/finished_runs.h"
#include "daemon/controller/store/state_store.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/page/fabric_sight.h"
#include "daemon/page/page_server.h"
#include "daemon/stream/rate_limit.h"
#include "proto/scenario/journal_file.h"

namespace percs {

class Controller;

// The service through which others call a controller. The controller owns it.
class ControlFront {
 public:
  virtual ~ControlFront() = default;
  virtual grpc::Service* service() = 0;
  // Watchers of run `number` get its result.
  virtual void OnRunEnded(std::uint64_t number) PERCS_LOCKED = 0;
  // Watchers are notified that the controller ends.
  virtual void Leave() PERCS_LOCKED = 0;
};
using MakeControlFront = std::unique_ptr<ControlFront> (*)(Controller* controller);

// For tests: the process kills itself when it gets to a point of this name for the count'th time.
// Points: a command is `journalled`; what was decided is `saved`, or it was and network management
// made a `step`; it was `granted`, that is sent off.
struct KillPoint {
  std::string name;  // "": nowhere
  std::uint64_t count = 0;
  void Reached(const char* point);
};

struct ControllerOptions {
  std::string listen;  // "": no server; code of the same process calls it
  std::uint32_t daemons = 1;
  SecurityOptions security = {};
  std::string metrics;      // HOST:PORT for Prometheus; "": none
  std::string metrics_tls;  // file of MetricsServer::Start; "": plain
  std::string page;         // HOST:PORT of the page for browsers; "": none
  std::string state_dir;    // "": nothing is kept
  std::uint64_t journal_limit = std::uint64_t{1}
                                << 30;  // bytes; then commands are accepted no longer
  std::chrono::milliseconds lost_after{
      5'000};  // while nothing runs: a daemon without a connection for so long is lost
  // During a run: a daemon that is silent for so long is lost. None: a live run has kLiveDeadline,
  // any other none.
  std::optional<std::chrono::milliseconds> loss_deadline;
  KillPoint kill_at;
  // Its environment, which lives as long as the controller.
  WallClock* clock = &WallClock::Real();
  Disk* disk = &Disk::Real();
  NumberSource fabrics = RandomNumber;
};

// WIDE: this is where the rooms of the controller meet: most methods are one event of one room,
// passed on to another, and most members are the rooms.
class Controller final : private DaemonPort, private LossWatch::Port {
 public:
  static absl::StatusOr<std::unique_ptr<Controller>> Start(ControllerOptions options,
                                                           MakeControlFront make_front);
  ~Controller() override;

  const std::string& address() const { return address_; }
  // Null if it serves none.
  const MetricsServer* metrics() const { return metrics_.get(); }
  // Null if it serves none.
  const PageServer* page() const { return page_.get(); }
  // Blocks until Shutdown was asked for or Stop was called.
  void Wait();
  // With a state directory the fabric waits for the next controller; else it ends with this one.
  void Stop();

  // For the Control service.
  ProcessLock& lock() { return lock_; }
  RateLimit& limit() { return limit_; }
  using ApplyDone = std::function<void(absl::StatusOr<v1::ApplyReply>)>;
  void Apply(const v1::ApplyRequest& request, ApplyDone done) PERCS_LOCKED;
  v1::FabricState state() const PERCS_LOCKED;
  const Membership& membership() const PERCS_LOCKED { return membership_; }
  Membership& membership() PERCS_LOCKED { return membership_; }
  const LossWatch& loss_watch() const PERCS_LOCKED { return loss_watch_; }
  // Streams of the daemon that broke and were replaced. REQUIRES: a daemon has the place.
  std::uint64_t ReconnectsOf(std::uint32_t place) const PERCS_LOCKED;
  // Of the last run that failed; "" if none did.
  const std::string& last_error() const PERCS_LOCKED { return last_error_; }
  // FAILED_PRECONDITION unless a scenario is applied and its hubs are there.
  absl::StatusOr<FabricRun*> ActiveRun() PERCS_LOCKED;
  FabricRun* run() PERCS_LOCKED { return run_.get(); }
  const FabricRun* run() const PERCS_LOCKED { return run_.get(); }
  // OK, or why virtual time is held: decisions cannot be saved.
  const absl::Status& storage() const PERCS_LOCKED { return storage_trouble_; }
  // By number; 0: the last one that ended. UNAVAILABLE while it is not saved: the next controller
  // may decide otherwise.
  absl::StatusOr<v1::GetResultReply> Result(std::uint64_t number) const PERCS_LOCKED;
  // It has ended, and that is not saved yet: no client is to hear of it.
  bool EndIsUnsaved(std::uint64_t number) const PERCS_LOCKED;
  absl::Status Reset() PERCS_LOCKED;
  // Where programs attach to this hub. NOT_FOUND, FAILED_PRECONDITION if its daemon is lost, as
  // ActiveRun.
  absl::StatusOr<v1::FindHubReply> FindHub(const std::string& name) PERCS_LOCKED;
  // For the page: one snapshot of all hubs. Takes the lock.
  void Look(const SightDone& done);
  // NOT_FOUND unless a daemon of this name has joined.
  absl::Status BreakStreams(const std::string& name, v1::BreakStreamsReply* reply) PERCS_LOCKED;
  // INVALID_ARGUMENT and NOT_FOUND say which word it does not know.
  absl::Status Observe(const v1::ObserveRequest& request) PERCS_LOCKED;
  // The fabric ends, with its daemons.
  void Shutdown() PERCS_LOCKED;
  // Keeps a table set that is to be loaded, so that the journal can name it.
  absl::Status KeepRoutes(const v1::LoadRoutesRequest& request,
                          v1::JournalRecord* record) PERCS_LOCKED;

 private:
  Controller(ControllerOptions options, MakeControlFront make_front);
  absl::Status Listen();
  absl::Status ServeMetrics();
  absl::Status ServePage();
  FabricSight SightOfRun(const FabricRun& run, const std::vector<NodeState>& states) PERCS_LOCKED;
  absl::Status CheckIdle() const PERCS_LOCKED;
  struct EndedRun {
    std::uint64_t number;
    Time at;  // virtual
    absl::StatusOr<v1::GetResultReply> result;
  };
  void OnRunEnded() PERCS_LOCKED;
  void JournalEnd(const EndedRun& run) PERCS_LOCKED;
  // REQUIRES: the run has ended.
  absl::StatusOr<v1::GetResultReply> ResultOfRun() const PERCS_LOCKED;
  // Limits of what is kept and restored.
  absl::Status OpenState();
  absl::Status OpenJournal() PERCS_LOCKED;
  // Leaves the saved state as it is: another controller continues from it.
  void Abandon();
  void HandOver();
  void SayGoodbye();
  absl::Status CheckNotEnding() const PERCS_LOCKED;
  void End() PERCS_LOCKED;
  absl::Status TakeUp(const KeptState& state) PERCS_LOCKED;
  absl::Status Repeat(const v1::SavedSteps& windows) PERCS_LOCKED;
  bool HasNews() const PERCS_LOCKED;
  // Some of which clients and daemons were or will be notified; the progress of a run is known to
  // daemons.
  bool HasToldNews() const PERCS_LOCKED;
  // Whether since the last commit nothing has happened but what is in the run's record.
  bool OnlyWindows() const PERCS_LOCKED;
  void Keep() PERCS_LOCKED;  // each time before the lock is let go
  void PutNews() PERCS_LOCKED;
  void PutMembers() PERCS_LOCKED;
  FabricRun::Events RunEvents() PERCS_LOCKED;
  Membership::Events MembershipEvents();
  void WatchForLosses() PERCS_LOCKED;
  LossWatch::Rules LossRules() const PERCS_LOCKED;
  LossWatch::Place See(std::uint32_t place) const PERCS_LOCKED override;
  void Ask(std::uint32_t place) PERCS_LOCKED override;
  void Lose(std::uint32_t place, const std::string& why) PERCS_LOCKED override;
  void OnConfigured(const absl::Status& status) PERCS_LOCKED;
  absl::Status RecordApply(const v1::ApplyRequest& request) PERCS_LOCKED;
  absl::Status AppendCommands(const std::vector<v1::JournalRecord>& records) PERCS_LOCKED;
  std::string Transport() const PERCS_LOCKED;

  std::unique_ptr<v1::ControllerMessage> Prepare(std::uint32_t process) PERCS_LOCKED override;
  void Send(std::uint32_t process,
            std::unique_ptr<v1::ControllerMessage> message) PERCS_LOCKED override;
  void SendMetricsDetail(std::uint32_t process) PERCS_LOCKED;
  v1::Peer Describe(std::uint32_t process) const PERCS_LOCKED override;
  bool Present(std::uint32_t process) const PERCS_LOCKED override;
  bool Connected(std::uint32_t process) const PERCS_LOCKED override;
  std::optional<std::string> Missing(std::uint32_t process) const PERCS_LOCKED override;

  ControllerOptions options_;
  std::string address_;
  TransportSecurity security_;
  RateLimit limit_;
  ProcessLock lock_{options_.clock};
  std::condition_variable_any ended_;
  bool has_ended_ PERCS_GUARDED = false;
  bool shut_down_ PERCS_GUARDED = false;
  JournalFile journal_ PERCS_GUARDED{options_.disk};
  StateStore store_ PERCS_GUARDED{options_.disk};
  absl::Status storage_trouble_ PERCS_GUARDED;
  Timer keep_timer_ PERCS_GUARDED{&lock_};
  bool keeping_again_ PERCS_GUARDED = false;
  bool fabric_kept_ PERCS_GUARDED = true;
  std::set<std::uint32_t> places_changed_ PERCS_GUARDED;
  std::optional<v1::ApplyRequest> begun_ PERCS_GUARDED;  // of a run that is not kept yet
  std::vector<EndedRun> ended_runs_ PERCS_GUARDED;       // since what was kept last
  Membership membership_ PERCS_GUARDED;
  LossWatch loss_watch_ PERCS_GUARDED;
  Timer loss_timer_ PERCS_GUARDED{&lock_};
  std::unique_ptr<ControlFront> front_;
  std::unique_ptr<FabricRun> run_ PERCS_GUARDED;
  ApplyDone apply_done_ PERCS_GUARDED;
  WallClock::Point applied_at_ PERCS_GUARDED;
  std::uint64_t runs_ PERCS_GUARDED = 0;
  std::string last_error_ PERCS_GUARDED;
  std::map<std::string, std::string> metrics_detail_
      PERCS_GUARDED;  // by hub: names last, numbers do not
  FinishedRuns finished_ PERCS_GUARDED;
  std::unique_ptr<SeenLinks> seen_links_ PERCS_GUARDED;  // by the page
  std::unique_ptr<SeenRows> seen_rows_ PERCS_GUARDED;    // likewise
  std::uint64_t seen_run_ PERCS_GUARDED = 0;             // of this run
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsServer> metrics_;
  std::unique_ptr<PageServer> page_;
};

}  // namespace percs
