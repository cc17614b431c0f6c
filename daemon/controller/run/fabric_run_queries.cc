// The part of FabricRun that asks daemons: snapshots, traces, and results at the end of a run.
#include <algorithm>
#include <utility>

#include "daemon/controller/run/fabric_run.h"
#include "fmt/format.h"

namespace percs {

void FabricRun::Snapshot(std::vector<NodeId> nodes, SnapshotDone done) {
  Ask({std::move(nodes), std::move(done), nullptr});
}

void FabricRun::Look(SnapshotDone done, std::function<void()> sent) {
  Ask({{}, std::move(done), nullptr, /*holds_time=*/false, std::move(sent)});
}

void FabricRun::GetTrace(TraceDone done) { Ask({{}, nullptr, std::move(done)}); }

void FabricRun::WhenRetaken(RetakenDone done) {
  if (!commands_.any_retaken()) return done(absl::OkStatus());
  NodeQueries::Query query;
  query.asks_daemons = query.holds_time = false;
  query.snapshot = [done = std::move(done)](const absl::StatusOr<std::vector<NodeState>>& states) {
    done(states.status());
  };
  Ask(std::move(query));
}

void FabricRun::Ask(NodeQueries::Query query) {
  if (!queries_.refused().ok()) return query.Refuse(queries_.refused());
  if (absl::Status status = Waiting(); !status.ok()) return query.Refuse(status);
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (IsLost(p) || !queries_.Concerns(query, p)) continue;
    if (absl::Status status = WaitsFor(p); !status.ok()) return query.Refuse(status);
  }
  queries_.Add(std::move(query));
  Hurry();
  if (phase_ == Phase::kEnded) {
    SendQueries();
  } else {
    Step();
  }
}

void FabricRun::SendQueries() {
  queries_.Send([this](std::uint32_t process) { return IsLost(process); });
}

void FabricRun::OnAnswer(const absl::Status& read) {
  if (!read.ok()) return Fail(read);
  Continue();
}

bool FabricRun::AnswersAwaited() const {
  return queries_.awaits_any() || final_.awaits_any() || losses_.awaits_any();
}

void FabricRun::Collect(v1::Collect::What what) {
  phase_ = what == v1::Collect::WHAT_RESULTS ? Phase::kCollecting : Phase::kDeadlocked;
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (IsLost(p)) continue;
    auto message = port_->Prepare(p);
    message->mutable_collect()->set_what(what);
    message->mutable_collect()->set_query(recovery_.controllers);
    port_->Send(p, std::move(message));
    final_.Await(p);
  }
}

void FabricRun::OnResults(std::uint32_t process, const v1::NodeResults& results) {
  if (phase_ != Phase::kCollecting || results.query() != recovery_.controllers) return;
  if (absl::Status status = final_.OnResults(process, results, losses_.nodes()); !status.ok())
    return Fail(status);
  if (!final_.awaits_any()) FinishRun();
}

void FabricRun::FinishRun() {
  if (final_.results() + losses_.nodes().size() != topology().nodes()) {
    return Fail(absl::DataLossError(fmt::format("received results of {} hubs, expected {}",
                                                final_.results(), topology().nodes())));
  }
  RunResult result = MergeResults(setup_.scenario, topology(), final_.TakeResults(),
                                  manager_->reroutes(), master_.windows(), manager_->losses());
  result.trees = manager_->trees();
  result.faults = manager_->faults()->List();
  End(std::move(result));
  if (!queries_.empty()) SendQueries();
}

void FabricRun::OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges) {
  if (phase_ != Phase::kDeadlocked || edges.query() != recovery_.controllers) return;
  if (absl::Status status = final_.OnWaitEdges(process, edges); !status.ok()) return Fail(status);
  if (!final_.awaits_any()) FinishDeadlock();
}

void FabricRun::FinishDeadlock() {
  End(DeadlockError(topology(), master_.left(), final_.last_event(), final_.wait_edges(),
                    final_.Blocked()));
}

}  // namespace percs
