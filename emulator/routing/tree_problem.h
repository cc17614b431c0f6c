// Why a tree of CAUs failed, as hubs and network management tell each other.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "emulator/base/ids.h"
#include "emulator/packet/cau_types.h"

namespace percs {

class Topology;

struct TreeProblem {
  enum class Code : std::uint8_t {
    kNone,
    // Calls that do not go together: `a` says one thing about an operation, `b` another.
    kRoots,
    kOps,
    kTypes,
    kSizes,
    kTwice,  // operation given by `a` after it had come from elsewhere: two senders
    // The network.
    kUnacknowledged,  // `a` got no answer from `b`
    kCutOff,          // no route between `a` and `b`, says network management
    kFull,            // CAU of `a` has no index left
    kNoTree,          // no tree can be laid over those that are left
    kDeleted,
    kMembersBack,  // none: members that were left out, `a` among them, are taken in again
  };
  Code code = Code::kNone;
  CauOperation operation = CauOperation::kReduce;
  std::uint32_t sequence = 0;
  NodeId a = kNoNode, b = kNoNode;

  bool of_program() const { return code >= Code::kRoots && code <= Code::kTwice; }
};
inline constexpr int kTreeProblemCodes = 12;

// INVALID_ARGUMENT for calls that do not go together, UNAVAILABLE for the network,
// RESOURCE_EXHAUSTED, FAILED_PRECONDITION, CANCELLED for a deleted tree.
absl::Status ToStatus(const TreeProblem& problem, CauTreeId tree, const Topology& topology);

}  // namespace percs
