#include "emulator/routing/tree_problem.h"

#include "emulator/base/check.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/topology/topology.h"
#include "fmt/format.h"

namespace percs {

absl::Status ToStatus(const TreeProblem& problem, CauTreeId tree, const Topology& topology) {
  const auto name = [&topology](NodeId node) {
    return node < topology.nodes() ? topology.NodeName(node) : std::string("no hub");
  };
  const std::string a = name(problem.a), b = name(problem.b);
  const std::string what = fmt::format(
      "{} {} of tree {}", problem.operation == CauOperation::kReduce ? "reduce" : "multicast",
      problem.sequence, tree);
  const auto differ = [&](const char* things) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} and {} name different {}; all must name the same", what, a, b, things));
  };
  using Code = TreeProblem::Code;
  switch (problem.code) {
    case Code::kNone:
      return absl::OkStatus();
    case Code::kRoots:
      return differ("roots");
    case Code::kOps:
      return differ("operations");
    case Code::kTypes:
      return differ("operand types");
    case Code::kSizes:
      return differ("sizes");
    case Code::kTwice:
      return absl::InvalidArgumentError(fmt::format(
          "{} came from {} after {} had already taken part; it has only one {}", what, a, b,
          problem.operation == CauOperation::kReduce ? "contribution of each" : "sender"));
    case Code::kUnacknowledged:
      return absl::UnavailableError(fmt::format(
          "tree {}: {} received no acknowledgement from {} after its last retransmission", tree, a,
          b));
    case Code::kCutOff:
      return absl::UnavailableError(
          fmt::format("tree {}: there is no longer a route between {} and {}", tree, a, b));
    case Code::kFull:
      return absl::ResourceExhaustedError(
          fmt::format("tree {}: all {} indexes of the CAU of {} are in use; delete a tree first",
                      tree, kCauTrees, a));
    case Code::kNoTree:
      return absl::UnavailableError(
          fmt::format("tree {}: no tree connects the hubs that {} can still reach", tree, a));
    case Code::kDeleted:
      return absl::CancelledError(fmt::format("tree {} was deleted", tree));
    case Code::kMembersBack:
      return absl::UnavailableError(
          fmt::format("tree {}: {} is reachable again and rejoins the tree", tree, a));
  }
  PERCS_CHECK(false);
}

}  // namespace percs
