#include "daemon/controller/run/final_answers.h"

#include <algorithm>

#include "daemon/sync/answer_codec.h"
#include "proto/convert/node_result.h"

namespace percs {

absl::Status FinalAnswers::OnResults(std::uint32_t process, const v1::NodeResults& results,
                                     const std::set<NodeId>& lost) {
  awaited_.erase(process);
  for (const v1::NodeResult& message : results.nodes()) {
    auto result = NodeResultFromProto(message);
    if (!result.ok()) return result.status();
    const absl::Status owned = CheckOwner(placement_, process, result->node, "a result");
    if (!owned.ok()) return owned;
    if (!lost.contains(result->node)) results_.push_back(*std::move(result));
  }
  return absl::OkStatus();
}

absl::Status FinalAnswers::OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges) {
  awaited_.erase(process);
  const auto read = WaitEdgesFromProto(edges);
  if (!read.ok()) return read.status();
  for (const WaitEdge& edge : *read) {
    const absl::Status owned = CheckOwner(placement_, process, edge.node, "a wait");
    if (!owned.ok()) return owned;
  }
  wait_edges_.insert(wait_edges_.end(), read->begin(), read->end());
  last_event_ = std::max<Time>(last_event_, edges.last_event());
  blocked_.insert(blocked_.end(), edges.blocked().begin(), edges.blocked().end());
  return absl::OkStatus();
}

std::vector<std::string> FinalAnswers::Blocked() const {
  std::vector<std::string> sorted = blocked_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace percs
