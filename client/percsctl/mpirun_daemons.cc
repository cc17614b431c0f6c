// percsctl mpirun on daemons: each rank attaches to the percsd that has its hub.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "client/lib/interrupt.h"
#include "client/mpi/control.h"
#include "client/mpi/summary.h"
#include "client/percsctl/command.h"
#include "client/percsctl/format.h"
#include "client/percsctl/mpirun.h"
#include "client/percsctl/mpirun_fabric.h"
#include "client/percsctl/rank_daemon.h"
#include "emulator/management/tree_status.h"
#include "proto/convert/run_result.h"
#include "proto/process/grpc_status.h"
#include "proto/process/mutex.h"
#include "proto/process/temporary_folder.h"
#include "proto/scenario/command_methods.h"
#include "proto/security/channel.h"

namespace percs {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kCallDeadline(10'000), kLookEvery(100), kPause(2);
constexpr milliseconds kHeldWithin(10'000);     // until virtual time waits for ranks
constexpr milliseconds kIdleWithin(30'000);     // from the program's end to that of its packets
constexpr milliseconds kDeadlockAfter(10'000);  // of ranks that wait for ever

bool InProgress(v1::FabricState state) {
  return state == v1::FABRIC_STATE_RUNNING || state == v1::FABRIC_STATE_IDLE ||
         state == v1::FABRIC_STATE_PAUSED;
}

// One program on the daemons of a fabric.
class DaemonRun {
 public:
  DaemonRun(FabricClient& client, Credentials credentials, const MpirunArguments& a,
            const MpirunPlan& plan, const Topology& topology, mpi::JobJournal* journal)
      : client_(client),
        credentials_(std::move(credentials)),
        a_(a),
        plan_(plan),
        topology_(topology),
        journal_(journal) {}

  // The machine is there, the ranks have their places, and virtual time waits for them.
  absl::Status Begin();
  absl::StatusOr<MpirunEnd> Run(mpi::LaunchOptions launch);

 private:
  template <typename Reply, typename Request>
  absl::StatusOr<Reply> Call(RankDaemon& daemon,
                             grpc::Status (v1::Ranks::Stub::*call)(grpc::ClientContext*,
                                                                   const Request&, Reply*),
                             const Request& request) {
    Reply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    const grpc::Status status = (daemon.stub.get()->*call)(&context, request, &reply);
    if (status.ok()) return reply;
    const absl::Status why = FromGrpc(status);
    return absl::Status(why.code(), fmt::format("the percsd of {}: {}", daemon.HubsText(),
                                                std::string(why.message())));
  }
  absl::Status Apply();
  v1::Tree WorldTree(const std::string& name) const;
  absl::Status MakeTree();
  absl::Status Control();
  absl::Status FindDaemons();
  // Waits for a program before it whose windows are not released yet.
  absl::Status BeginRanks();
  absl::Status BeginOnAll(const v1::BeginRanksRequest& request);
  absl::Status AwaitHold();
  // Looks at all ranks, from time to time.
  void Look();
  template <typename Reply>
  void Journal(const Reply& reply);
  void JournalCommands(Time began);
  void CheckStuck();
  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }
  // The daemon did not answer. If it is lost, that is why others fail, who may have said so before.
  void FailToAnswer(const RankDaemon& daemon, const absl::Status& status);
  // Nothing happens on the machine any more.
  bool IsIdle();
  void AwaitIdle();
  void EndRanks(bool release, mpi::JobResult* result);
  // The virtual time at which the ranks had begun.
  Time EndOnAll(bool release, mpi::JobResult* result);
  absl::Status EndRun(MpirunEnd* end);

  FabricClient& client_;
  const Credentials credentials_;
  const MpirunArguments& a_;
  const MpirunPlan& plan_;
  const Topology& topology_;
  mpi::JobJournal* const journal_;  // or null
  std::optional<TemporaryFolder> folder_;
  std::map<std::uint32_t, RankDaemon> daemons_;  // by process
  std::uint64_t run_ = 0;
  bool joined_ = false;  // the run was there before
  std::string tree_;     // of MPI_COMM_WORLD, made in a run that was there before; "": none
  std::uint32_t world_tree_ = 0;
  std::string failure_;
  bool lost_ = false;  // failure_ names a daemon that is lost
  Clock::time_point looked_{}, stuck_since_{};
  std::uint64_t stuck_changes_ = 0;
  Mutex commands_mutex_;
  std::vector<v1::JournalRecord> commands_ ABSL_GUARDED_BY(commands_mutex_);  // to be journalled
  std::unique_ptr<mpi::JobControl> control_;
};

absl::Status DaemonRun::Begin() {
  auto folder = TemporaryFolder::Make("percs-ranks-");
  if (!folder.ok()) return folder.status();
  folder_.emplace(*std::move(folder));
  if (absl::Status status = Apply(); !status.ok()) return status;
  if (absl::Status status = FindDaemons(); !status.ok()) return status;
  absl::Status status = MakeTree();
  if (status.ok()) status = BeginRanks();
  if (status.ok()) status = AwaitHold();
  if (status.ok()) status = Control();
  if (status.ok() && InterruptGuard::raised()) status = absl::CancelledError("interrupted");
  if (status.ok()) return status;
  mpi::JobResult nothing;
  EndRanks(/*release=*/true, &nothing);
  if (joined_) return status;
  const auto stopped = client_.Stop();  // whoever hears of `status` needs no other error
  return status;
}

absl::Status DaemonRun::Apply() {
  const auto status = client_.Status();
  if (!status.ok()) return status.status();
  joined_ = InProgress(status->state());
  run_ = status->run();
  if (joined_ && status->nodes() != topology_.nodes()) {
    return absl::InvalidArgumentError(fmt::format(
        "the fabric runs \"{}\" with {} nodes, and the program's machine has {}; name its scenario "
        "before the program",
        status->scenario(), status->nodes(), topology_.nodes()));
  }
  if (joined_ && journal_ != nullptr) {
    return absl::FailedPreconditionError(
        "--journal: the fabric has a run already, of which the journal would know nothing; use "
        "--daemons, or stop the run first");
  }
  if (joined_) return absl::OkStatus();
  v1::ApplyRequest request;
  *request.mutable_scenario() = plan_.message;
  if (const v1::Tree world = WorldTree("MPI_COMM_WORLD"); world.has_name()) {
    auto& trees = *request.mutable_scenario()->mutable_trees();
    *trees.Add() = world;  // number 0
    std::rotate(trees.pointer_begin(), trees.pointer_end() - 1, trees.pointer_end());
  }
  request.set_wait_endpoints(a_.ranks);
  const auto reply = client_.Apply(request, kApplyDeadline);
  if (!reply.ok()) return reply.status();
  run_ = reply->run();
  return absl::OkStatus();
}

// Without a name if the program needs none.
v1::Tree DaemonRun::WorldTree(const std::string& name) const {
  v1::Tree tree;
  const TreeSpec spec = mpi::WorldTree(plan_.places);
  if (plan_.collective_bytes == 0 || spec.members.empty()) return tree;
  tree.set_name(name);
  std::string members;
  for (const NodeId node : spec.members)
    members += (members.empty() ? "" : ",") + topology_.NodeName(node);
  tree.set_members(members);
  return tree;
}

// In a run that was there before: network management sets it up while virtual time passes.
absl::Status DaemonRun::MakeTree() {
  v1::CreateTreeRequest request;
  *request.mutable_tree() = WorldTree(fmt::format("MPI-job-{}-{}", a_.job, getpid()));
  if (!joined_ || !request.tree().has_name()) return absl::OkStatus();
  const auto made = client_.CreateTree(request);
  if (!made.ok()) return made.status();
  tree_ = request.tree().name();
  world_tree_ = made->id();
  const Clock::time_point until = Clock::now() + kHeldWithin;
  while (true) {
    const auto reply = client_.ListTrees(tree_);
    if (!reply.ok()) return reply.status();
    const v1::TreeStatus& tree = reply->trees(0);
    if (tree.state() == TreeStateName(TreeState::kReady)) return absl::OkStatus();
    if (tree.state() != TreeStateName(TreeState::kSettingUp) || Clock::now() > until) {
      return absl::UnavailableError(
          fmt::format("the tree of MPI_COMM_WORLD is {}: {}", tree.state(), tree.problem()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Faults go on to the controller, and those of a journalled run into its journal, too.
absl::Status DaemonRun::Control() {
  if (a_.control.empty()) return absl::OkStatus();
  using google::protobuf::Message;
  auto control =
      mpi::JobControl::Start(a_.control, [this](const google::protobuf::MethodDescriptor& method,
                                                const Message& request, Message* reply) {
        const absl::Status status = client_.CallMethod(method, request, reply);
        if (!status.ok() || method.output_type() == v1::ListFaultsReply::descriptor())
          return status;
        v1::JournalRecord record = CommandRecord(method, request);
        record.set_at(reply->GetReflection()->GetInt64(
            *reply, reply->GetDescriptor()->FindFieldByName("at")));
        const MutexLock lock(commands_mutex_);
        commands_.push_back(std::move(record));
        return status;
      });
  if (!control.ok()) return control.status();
  control_ = *std::move(control);
  return absl::OkStatus();
}

absl::Status DaemonRun::FindDaemons() {
  std::map<NodeId, bool> known;
  for (const mpi::RankPlace& place : plan_.places) {
    if (std::exchange(known[place.hub], true)) continue;
    const std::string hub = topology_.NodeName(place.hub);
    const auto found = client_.FindHub(hub);
    if (!found.ok()) return found.status();
    RankDaemon& daemon = daemons_[found->process()];
    daemon.hubs.push_back(hub);
    if (!daemon.stub) {
      daemon.stub = v1::Ranks::NewStub(MakeChannel(found->address(), credentials_, Role::kDaemon));
    }
  }
  return absl::OkStatus();
}

absl::Status DaemonRun::BeginRanks() {
  v1::BeginRanksRequest request;
  request.set_job(a_.job);
  for (const mpi::RankPlace& place : plan_.places) {
    request.add_hubs(place.hub);
    request.add_windows(place.window);
  }
  request.set_compute_scale(plan_.compute_scale);
  request.set_collective_bytes(plan_.collective_bytes);
  request.set_world_tree(world_tree_);
  request.set_journal(journal_ != nullptr);
  const Clock::time_point until = Clock::now() + kHeldWithin;
  while (true) {
    const absl::Status status = BeginOnAll(request);
    if (!absl::IsAborted(status) || Clock::now() > until || InterruptGuard::raised()) return status;
    // Where it has begun it would hold virtual time, and the one before needs a window to end.
    mpi::JobResult nothing;
    EndOnAll(/*release=*/true, &nothing);
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status DaemonRun::BeginOnAll(const v1::BeginRanksRequest& request) {
  const std::string sockets = folder_->path() + "/ranks";
  std::error_code error;
  fs::remove_all(sockets, error);
  fs::create_directory(sockets, error);
  for (auto& [process, daemon] : daemons_) {
    const auto reply = Call(daemon, &v1::Ranks::Stub::BeginRanks, request);
    if (!reply.ok()) return reply.status();
    daemon.begun = true;
    for (const std::uint32_t rank : reply->ranks()) {
      fs::create_symlink(reply->socket(), fmt::format("{}/{}", sockets, rank), error);
      if (error) return absl::InternalError(fmt::format("{}: {}", sockets, error.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status DaemonRun::AwaitHold() {
  const Clock::time_point until = Clock::now() + kHeldWithin;
  while (true) {
    const auto status = client_.Status();
    if (!status.ok()) return status.status();
    if (status->programs_owing() >= a_.ranks) return absl::OkStatus();
    if (Clock::now() > until)
      return absl::DeadlineExceededError("the controller has not heard of the ranks");
    std::this_thread::sleep_for(kPause);
  }
}

void DaemonRun::Look() {
  const Clock::time_point now = Clock::now();
  if (now - looked_ < kLookEvery) return;
  looked_ = now;
  v1::WatchRanksRequest request;
  request.set_job(a_.job);
  for (auto& [process, daemon] : daemons_) {
    const auto reply = Call(daemon, &v1::Ranks::Stub::WatchRanks, request);
    if (!reply.ok()) {
      FailToAnswer(daemon, reply.status());
      continue;
    }
    daemon.last = *reply;
    Journal(*reply);
    if (!reply->failure().empty()) Fail(reply->failure());
  }
  CheckStuck();
}

void DaemonRun::FailToAnswer(const RankDaemon& daemon, const absl::Status& status) {
  const bool lost = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (!lost) return Fail(Text(status));
  if (!std::exchange(lost_, true))
    failure_ = fmt::format("the percsd of {} is lost", daemon.HubsText());
}

template <typename Reply>
void DaemonRun::Journal(const Reply& reply) {
  if (journal_ == nullptr || reply.calls().empty()) return;
  if (absl::Status status = journal_->AddPiece(reply.calls()); !status.ok())
    Fail("journal: " + Text(status));
}

void DaemonRun::JournalCommands(Time began) {
  control_.reset();
  const MutexLock lock(commands_mutex_);
  for (v1::JournalRecord& command : commands_) {
    if (journal_ == nullptr) continue;
    command.set_at(command.at() - began);
    if (absl::Status status = journal_->Add(command); !status.ok())
      Fail("journal: " + Text(status));
  }
}

// Every rank waits, and nothing is under way, for a while.
void DaemonRun::CheckStuck() {
  bool stuck = false, others = false;
  std::uint64_t changes = 0;
  std::string waits;
  for (const auto& [process, daemon] : daemons_) {
    stuck = stuck || daemon.last.stuck();
    others = others || daemon.last.absent() + daemon.last.running() > 0 ||
             (daemon.last.waiting() > 0 && !daemon.last.stuck());
    changes += daemon.last.changes();
    if (!daemon.last.waits().empty()) waits += (waits.empty() ? "" : "; ") + daemon.last.waits();
  }
  const bool same = std::exchange(stuck_changes_, changes) == changes;
  if (!stuck || others || !same || stuck_since_ == Clock::time_point()) {
    stuck_since_ = Clock::now();
  } else if (Clock::now() - stuck_since_ > kDeadlockAfter) {
    Fail("the program waits for ever: " + waits);
  }
}

bool DaemonRun::IsIdle() {
  const auto status = client_.Status();
  if (!status.ok()) Fail(Text(status.status()));
  return status.ok() && status->state() == v1::FABRIC_STATE_IDLE;
}

void DaemonRun::AwaitIdle() {
  const Clock::time_point until = Clock::now() + kIdleWithin;
  while (failure_.empty() && Clock::now() < until) {
    looked_ = {};
    Look();
    bool idle = joined_ || IsIdle();
    for (const auto& [process, daemon] : daemons_) idle = idle && daemon.last.idle();
    if (idle) return;
    std::this_thread::sleep_for(kPause);
  }
}

void DaemonRun::EndRanks(bool release, mpi::JobResult* result) {
  JournalCommands(EndOnAll(release, result));
  if (!tree_.empty()) client_.DeleteTree(tree_).status().IgnoreError();
}

Time DaemonRun::EndOnAll(bool release, mpi::JobResult* result) {
  v1::EndRanksRequest request;
  request.set_job(a_.job);
  request.set_release(release);
  result->ranks.resize(plan_.places.size());
  Time began = 0;
  for (auto& [process, daemon] : daemons_) {
    if (!std::exchange(daemon.begun, false)) continue;
    const auto reply = Call(daemon, &v1::Ranks::Stub::EndRanks, request);
    if (!reply.ok()) {
      FailToAnswer(daemon, reply.status());
      continue;
    }
    if (!reply->failure().empty()) Fail(reply->failure());
    result->late_calls += reply->late_calls();
    began = reply->began();
    Journal(*reply);
    mpi::AddCollectives(*reply, &result->collectives);
    for (const v1::EndedRank& rank : reply->ranks()) {
      if (rank.rank() < result->ranks.size())
        result->ranks[rank.rank()] = mpi::SummaryFromProto(rank);
    }
  }
  return began;
}

// What the machine did, of a run that was begun for the program.
absl::Status DaemonRun::EndRun(MpirunEnd* end) {
  if (!failure_.empty()) {
    const auto stopped = client_.Stop();  // or it has ended
    return absl::OkStatus();
  }
  const auto reply = client_.WatchRun(run_, [](const v1::RunProgress&) { return true; });
  if (!reply.ok()) return reply.status();
  auto run = RunResultFromProto(reply->result(), topology_);
  if (!run.ok()) return run.status();
  end->result.run = *std::move(run);
  end->faults = reply->result().faults();
  end->has_run = true;
  return absl::OkStatus();
}

absl::StatusOr<MpirunEnd> DaemonRun::Run(mpi::LaunchOptions launch) {
  launch.socket = folder_->path() + "/ranks";
  const MpirunSight sight{[this] {
                            Look();
                            return !failure_.empty();
                          },
                          [this] {
                            Time now = 0;
                            std::uint64_t messages = 0;
                            for (const auto& [process, daemon] : daemons_) {
                              now = std::max<Time>(now, daemon.last.virtual_time());
                              messages += daemon.last.messages();
                            }
                            return fmt::format("{} virtual, {} messages", FormatShort(now),
                                               FormatCount(messages));
                          }};
  MpirunEnd end;
  end.has_run = false;
  const auto status = RunOpenMpi(launch, sight);
  if (status.ok()) AwaitIdle();
  EndRanks(/*release=*/joined_, &end.result);
  if (!joined_) {
    if (absl::Status ended = EndRun(&end); !ended.ok()) return ended;
  }
  if (!status.ok()) return status.status();
  end.status = *status;
  end.result.failure = failure_;
  end.result.Combine();
  return end;
}

}  // namespace

absl::StatusOr<MpirunEnd> RunOnDaemons(const MpirunArguments& a, const MpirunPlan& plan,
                                       const Topology& topology, mpi::LaunchOptions launch,
                                       mpi::JobJournal* journal) {
  FabricOptions fabric = a.fabric;
  std::unique_ptr<OwnFabric> own;
  if (a.daemons > 0) {
    auto started = OwnFabric::Start(a.daemons, topology.hubs());
    if (!started.ok()) return started.status();
    own = *std::move(started);
    fabric.name = own->name();
  }
  const auto tls = IdentityFor(fabric);
  if (!tls.ok()) return tls.status();
  Credentials credentials;
  if (!tls->empty()) {
    auto loaded = Credentials::Load(*tls, RoleSet(Role::kOperator));
    if (!loaded.ok()) return loaded.status();
    credentials = *std::move(loaded);
  }
  const auto client = Connect(fabric);
  if (!client.ok()) return client.status();
  DaemonRun run(**client, std::move(credentials), a, plan, topology, journal);
  {
    const InterruptGuard interrupt;
    if (absl::Status status = run.Begin(); !status.ok()) return status;
  }
  return run.Run(std::move(launch));
}

}  // namespace percs
