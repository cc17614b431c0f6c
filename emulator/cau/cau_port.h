// What software on a node asks of its hub's Collective Acceleration Unit, and what it hears back
// (paper 000 section IV-D, paper 003 section 3.6). The CAU knows trees, not collectives: a barrier
// or an allreduce is a reduce whose root multicasts the result.
//
// A tree is named by the same id on all its hubs and has at most one participating window per hub.
// It exists before a run starts, or appears and is repaired by network management while it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/ids.h"
#include "emulator/base/reduce_op.h"
#include "emulator/packet/cau_types.h"

namespace percs {

class CauListener {
 public:
  virtual ~CauListener() = default;
  // At the root only: contributions of all participants but the root, combined in the tree's fixed
  // order. May come before the root itself got to that operation. Reduces of one root come in
  // order.
  virtual void OnCauReduced(CauTreeId tree, std::uint32_t sequence, const CauPayload& payload) = 0;
  // At every participant but the one that sent it. Multicasts of one sender come in order; those of
  // different senders may overtake each other.
  virtual void OnCauMulticast(CauTreeId tree, std::uint32_t sequence,
                              const CauPayload& payload) = 0;
  // The operation did not reach this participant and never will, with the reason; nothing of it,
  // nor of later ones, is heard afterwards. Also for operations that cannot be right: roots, ops,
  // types or sizes that differ. A tree that fails says so for every operation its participant has
  // given and that is still in the CAU, and for the first one of each kind that the participant has
  // not heard of.
  virtual void OnCauFailed(CauTreeId tree, CauOperation operation, std::uint32_t sequence,
                           const absl::Status& why) = 0;
  // The neighbours of this CAU have acknowledged all that its participant gave and that has fired:
  // the window may let go of it.
  virtual void OnCauTaken(CauTreeId tree) {}
  // After the failures of its operations: UNAVAILABLE if network management will set the tree up
  // again and OnCauTreeUp follows, or FAILED_PRECONDITION if this hub is no part of it any more. It
  // may become one again: then, too, OnCauTreeUp follows.
  virtual void OnCauTreeDown(CauTreeId tree, const absl::Status& why) {}
  // The tree was set up, or again, among these nodes, in ascending order; sequences start at 0. At
  // the same instant on all its hubs.
  virtual void OnCauTreeUp(CauTreeId tree, const std::vector<NodeId>& participants) {}
};

// All of it happens now, in virtual time. Calls return at once; listeners are called from later
// events only, never from inside a call.
class CauPort {
 public:
  virtual ~CauPort() = default;
  // Makes the caller the participant of this hub. NOT_FOUND: no such tree here, or the tree has no
  // place for a participant on this hub; ALREADY_EXISTS: another participant is attached.
  virtual absl::Status Attach(CauTreeId tree, CauListener* listener) = 0;
  virtual void Detach(CauTreeId tree) = 0;
  // Nodes with a participating window, ascending; empty if there is no such tree here.
  virtual std::vector<NodeId> Participants(CauTreeId tree) const = 0;
  // Contribution of a participant that is not the root; `root` is the node of the root.
  // INVALID_ARGUMENT: an op or type the CAU does not have, a size over 64 or no multiple of the
  // operand, an unknown root, a sequence out of order; FAILED_PRECONDITION: not attached.
  virtual absl::Status Reduce(CauTreeId tree, std::uint32_t sequence, NodeId root, ReduceOp op,
                              OperandType type, const CauPayload& payload) = 0;
  // The root's part in a reduce: no operands, only what it takes them to be. Not needed for a
  // result, but with it a root that disagrees with the others is noticed even if all of them wait.
  // Errors as Reduce.
  virtual absl::Status ExpectReduce(CauTreeId tree, std::uint32_t sequence, ReduceOp op,
                                    OperandType type, std::uint8_t size) = 0;
  virtual absl::Status Multicast(CauTreeId tree, std::uint32_t sequence,
                                 const CauPayload& payload) = 0;
};

}  // namespace percs
