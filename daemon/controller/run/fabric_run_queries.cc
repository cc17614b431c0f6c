// The part of FabricRun that asks daemons: snapshots, traces, and results at the end of a run.
#include <algorithm>
#include <utility>

#include "daemon/controller/run/fabric_run.h"
#include "daemon/sync/answer_codec.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"

namespace percs {

void FabricRun::Snapshot(std::vector<NodeId> nodes, SnapshotDone done) {
  Ask({std::move(nodes), std::move(done), nullptr});
}

void FabricRun::GetTrace(TraceDone done) { Ask({{}, nullptr, std::move(done)}); }

void FabricRun::Ask(NodeQueries::Query query) {
  if (!unreachable_.ok()) return query.Refuse(unreachable_);
  if (absl::Status status = Waiting(); !status.ok()) return query.Refuse(status);
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (IsLost(p) || !queries_.Concerns(query, p)) continue;
    if (absl::Status status = WaitsFor(p); !status.ok()) return query.Refuse(status);
  }
  queries_.Add(std::move(query));
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
  if (!busy()) Step();
}

bool FabricRun::AnswersAwaited() const {
  return queries_.awaits_any() || !collecting_.empty() ||
         std::any_of(losses_.begin(), losses_.end(),
                     [](const Loss& loss) { return !loss.awaited.empty(); });
}

void FabricRun::Collect(v1::Collect::What what) {
  phase_ = what == v1::Collect::WHAT_RESULTS ? Phase::kCollecting : Phase::kDeadlocked;
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (master_.lost(static_cast<int>(p))) continue;
    auto message = port_->Prepare(p);
    message->mutable_collect()->set_what(what);
    message->mutable_collect()->set_query(recoveries_);
    port_->Send(p, std::move(message));
    collecting_.insert(p);
  }
}

void FabricRun::OnResults(std::uint32_t process, const v1::NodeResults& results) {
  if (phase_ != Phase::kCollecting || results.query() != recoveries_) return;
  collecting_.erase(process);
  for (const v1::NodeResult& message : results.nodes()) {
    auto result = NodeResultFromProto(message);
    if (!result.ok()) return Fail(result.status());
    if (result->node >= topology().nodes() || placement_.process_of_node[result->node] != process) {
      return Fail(absl::InvalidArgumentError(fmt::format(
          "process {} sent a result of node {}, which does not exist", process, result->node)));
    }
    if (!lost_nodes_.contains(result->node)) results_.push_back(*std::move(result));
  }
  if (collecting_.empty()) FinishRun();
}

void FabricRun::FinishRun() {
  if (results_.size() + lost_nodes_.size() != topology().nodes()) {
    return Fail(absl::DataLossError(fmt::format("received results of {} hubs, expected {}",
                                                results_.size(), topology().nodes())));
  }
  RunResult result = MergeResults(scenario_, topology(), std::move(results_), manager_->reroutes(),
                                  master_.windows(), manager_->losses());
  result.trees = manager_->trees();
  result.faults = manager_->faults()->List();
  End(std::move(result));
  if (!queries_.empty()) SendQueries();
}

void FabricRun::OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges) {
  if (phase_ != Phase::kDeadlocked || edges.query() != recoveries_) return;
  collecting_.erase(process);
  const auto read = WaitEdgesFromProto(edges);
  if (!read.ok()) return Fail(read.status());
  wait_edges_.insert(wait_edges_.end(), read->begin(), read->end());
  blocked_.insert(blocked_.end(), edges.blocked().begin(), edges.blocked().end());
  if (collecting_.empty()) FinishDeadlock();
}

void FabricRun::FinishDeadlock() {
  std::sort(blocked_.begin(), blocked_.end());
  End(DeadlockError(topology(), master_.left(), master_.now(), std::move(wait_edges_), blocked_));
}

}  // namespace percs
