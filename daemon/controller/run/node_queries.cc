#include "daemon/controller/run/node_queries.h"

#include <algorithm>
#include <utility>

#include "daemon/sync/answer_codec.h"
#include "proto/scenario/trace_codec.h"

namespace percs {

bool NodeQueries::Concerns(const Query& query, std::uint32_t process) const {
  if (query.nodes.empty()) return query.asks_daemons;
  return std::any_of(query.nodes.begin(), query.nodes.end(),
                     [&](NodeId node) { return placement_.process_of_node[node] == process; });
}

void NodeQueries::Send(IsLost is_lost) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto current = it++;
    if (std::exchange(current->sent, true)) continue;
    const Query& query = current->query;
    if (query.sent) query.sent();
    for (int p = 0; p < placement_.manager_process; ++p) {
      const auto process = static_cast<std::uint32_t>(p);
      if (is_lost(process) || !Concerns(query, process)) continue;
      auto message = port_->Prepare(process);
      v1::Collect* collect = message->mutable_collect();
      collect->set_what(query.trace ? v1::Collect::WHAT_TRACE : v1::Collect::WHAT_SNAPSHOT);
      collect->set_query(current->number);
      for (const NodeId node : query.nodes) {
        if (placement_.process_of_node[node] == process) collect->add_nodes(node);
      }
      port_->Send(process, std::move(message));
      current->awaited.insert(process);
      answers_awaited_ += query.holds_time ? 1 : 0;
    }
    if (current->awaited.empty()) Finish(current);
  }
}

bool NodeQueries::Awaits(std::uint32_t process) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Waiting& waiting) { return waiting.awaited.contains(process); });
}

NodeQueries::Place NodeQueries::Find(std::uint64_t number) {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [&](const Waiting& waiting) { return waiting.number == number; });
}

absl::Status NodeQueries::OnSnapshot(std::uint32_t process, const v1::Snapshot& snapshot) {
  const Place place = Find(snapshot.query());
  if (place == waiting_.end()) return absl::OkStatus();
  for (const v1::NodeSnapshot& message : snapshot.nodes()) {
    auto state = NodeStateFromProto(message);
    if (!state.ok()) return state.status();
    const absl::Status owned = CheckOwner(placement_, process, state->node, "a snapshot");
    if (!owned.ok()) return owned;
    place->states.push_back(*std::move(state));
  }
  if (!snapshot.more()) Answered(place, process);
  return absl::OkStatus();
}

absl::Status NodeQueries::OnTrace(std::uint32_t process, const v1::TraceEvents& trace) {
  const Place place = Find(trace.query());
  if (place == waiting_.end()) return absl::OkStatus();
  const auto events = EventsFromProto(trace.events(), topology_);
  if (!events.ok()) return events.status();
  place->events.insert(place->events.end(), events->begin(), events->end());
  Answered(place, process);
  return absl::OkStatus();
}

void NodeQueries::Answered(Place place, std::uint32_t process) {
  if (place->awaited.erase(process) == 0) return;
  answers_awaited_ -= place->query.holds_time ? 1 : 0;
  if (place->awaited.empty()) Finish(place);
}

void NodeQueries::Lose(std::uint32_t process) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const Place place = it++;
    if (place->awaited.contains(process)) {  // half an answer is none
      std::erase_if(place->states, [&](const NodeState& state) {
        return placement_.process_of_node[state.node] == process;
      });
    }
    Answered(place, process);
  }
}

void NodeQueries::RefuseFromNowOn(const absl::Status& why) {
  if (refused_.ok()) refused_ = why;
  RefuseAll(why);
}

void NodeQueries::RefuseAll(const absl::Status& why) {
  answers_awaited_ = 0;
  for (Waiting& waiting : std::exchange(waiting_, {})) waiting.query.Refuse(why);
}

void NodeQueries::Finish(Place place) {
  Waiting done = std::move(*place);
  waiting_.erase(place);
  std::sort(done.states.begin(), done.states.end(),
            [](const NodeState& a, const NodeState& b) { return a.node < b.node; });
  if (done.query.trace) {
    done.query.trace(MergeTrace(parameters_, std::move(done.events)));
  } else {
    done.query.snapshot(std::move(done.states));
  }
}

}  // namespace percs
