#include "daemon/controller/run/final_answers.h"

#include <algorithm>

#include "daemon/sync/answer_codec.h"
#include "fmt/format.h"
#include "proto/convert/node_result.h"

namespace percs {

absl::Status FinalAnswers::OnResults(std::uint32_t process, const v1::NodeResults& results,
                                     const std::set<NodeId>& lost) {
  awaited_.erase(process);
  for (const v1::NodeResult& message : results.nodes()) {
    auto result = NodeResultFromProto(message);
    if (!result.ok()) return result.status();
    if (result->node >= placement_.process_of_node.size() ||
        placement_.process_of_node[result->node] != process) {
      return absl::InvalidArgumentError(fmt::format(
          "process {} sent a result of node {}, which it does not have", process, result->node));
    }
    if (!lost.contains(result->node)) results_.push_back(*std::move(result));
  }
  return absl::OkStatus();
}

absl::Status FinalAnswers::OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges) {
  awaited_.erase(process);
  const auto read = WaitEdgesFromProto(edges);
  if (!read.ok()) return read.status();
  wait_edges_.insert(wait_edges_.end(), read->begin(), read->end());
  blocked_.insert(blocked_.end(), edges.blocked().begin(), edges.blocked().end());
  return absl::OkStatus();
}

std::vector<std::string> FinalAnswers::Blocked() const {
  std::vector<std::string> sorted = blocked_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace percs
