// The part of FabricRun that asks daemons: snapshots, traces, and results at the end of a run.
#include <algorithm>
#include <utility>

#include "daemon/controller/fabric_run.h"
#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/convert/counters.h"
#include "proto/convert/node_result.h"
#include "proto/scenario/trace_codec.h"

namespace percs {

void FabricRun::Snapshot(std::vector<NodeId> nodes, SnapshotDone done) {
  Query query;
  query.nodes = std::move(nodes);
  query.done = std::move(done);
  Ask(std::move(query));
}

void FabricRun::GetTrace(TraceDone done) {
  Query query;
  query.traced = std::move(done);
  Ask(std::move(query));
}

void FabricRun::Ask(Query query) {
  if (!unreachable_.ok()) return query.Refuse(unreachable_);
  if (absl::Status status = Waiting(); !status.ok()) return query.Refuse(status);
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (master_.lost(static_cast<int>(p)) || !Concerns(query, p)) continue;
    if (absl::Status status = WaitsFor(p); !status.ok()) return query.Refuse(status);
  }
  query.id = ++query_number_;
  queries_.push_back(std::move(query));
  if (phase_ == Phase::kEnded) {
    SendQueries();
  } else {
    Step();
  }
}

bool FabricRun::Concerns(const Query& query, std::uint32_t process) const {
  return query.nodes.empty() ||
         std::any_of(query.nodes.begin(), query.nodes.end(),
                     [&](NodeId node) { return placement_.process_of_node[node] == process; });
}

void FabricRun::SendQueries() {
  for (auto it = queries_.begin(); it != queries_.end();) {
    const auto current = it++;
    Query& query = *current;
    if (query.sent) continue;
    query.sent = true;
    for (std::uint32_t p = 0; p < daemons_; ++p) {
      if (master_.lost(static_cast<int>(p)) || !Concerns(query, p)) continue;
      auto message = port_->Prepare(p);
      message->mutable_collect()->set_what(query.traced ? v1::Collect::WHAT_TRACE
                                                        : v1::Collect::WHAT_SNAPSHOT);
      message->mutable_collect()->set_query(query.id);
      for (const NodeId node : query.nodes) {
        if (placement_.process_of_node[node] == p) message->mutable_collect()->add_nodes(node);
      }
      port_->Send(p, std::move(message));
      query.awaited.insert(p);
      ++answers_awaited_;
    }
    if (query.awaited.empty()) Finish(current);
  }
}

void FabricRun::OnSnapshot(std::uint32_t process, const v1::Snapshot& snapshot) {
  const auto it = std::find_if(queries_.begin(), queries_.end(),
                               [&](const Query& q) { return q.id == snapshot.query(); });
  if (it == queries_.end()) return;
  for (const v1::NodeSnapshot& s : snapshot.nodes()) {
    auto stats = UnpackStats(s.stats());
    if (!stats.ok()) return Fail(stats.status());
    auto tallies = UnpackTallies(s.tallies());
    if (!tallies.ok()) return Fail(tallies.status());
    NodeState state{s.node(), *stats, s.links_up(), s.epoch(), *std::move(tallies)};
    for (int i = 0; i < std::min(s.rerouted_epochs_size(), s.rerouted_times_size()); ++i) {
      state.first_rerouted.emplace_back(s.rerouted_epochs(i), s.rerouted_times(i));
    }
    it->states.push_back(std::move(state));
  }
  Answered(it, process);
}

void FabricRun::OnTrace(std::uint32_t process, const v1::TraceEvents& trace) {
  const auto it = std::find_if(queries_.begin(), queries_.end(),
                               [&](const Query& q) { return q.id == trace.query(); });
  if (it == queries_.end()) return;
  auto events = EventsFromProto(trace.events(), topology());
  if (!events.ok()) return Fail(events.status());
  it->events.insert(it->events.end(), events->begin(), events->end());
  Answered(it, process);
}

// One process has answered the query.
void FabricRun::Answered(std::list<Query>::iterator it, std::uint32_t process) {
  if (it->awaited.erase(process) == 0) return;
  --answers_awaited_;
  if (it->awaited.empty()) Finish(it);
  if (!busy()) Step();
}

void FabricRun::Finish(std::list<Query>::iterator it) {
  Query query = std::move(*it);
  queries_.erase(it);
  std::sort(query.states.begin(), query.states.end(),
            [](const NodeState& a, const NodeState& b) { return a.node < b.node; });
  if (query.traced) {
    query.traced(MergeTrace(scenario_.parameters, std::move(query.events)));
  } else {
    query.done(std::move(query.states));
  }
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
    ++answers_awaited_;
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
  if (--answers_awaited_ == 0) FinishRun();
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
  for (const v1::WaitEdge& e : edges.edges()) {
    wait_edges_.push_back({e.node(), static_cast<PortId>(e.input()),
                           static_cast<PortId>(e.output()), static_cast<VcId>(e.input_vc()),
                           static_cast<VcId>(e.output_vc())});
  }
  blocked_.insert(blocked_.end(), edges.blocked().begin(), edges.blocked().end());
  if (--answers_awaited_ == 0) FinishDeadlock();
}

void FabricRun::FinishDeadlock() {
  std::sort(blocked_.begin(), blocked_.end());
  End(DeadlockError(topology(), master_.left(), master_.now(), std::move(wait_edges_), blocked_));
}

}  // namespace percs
