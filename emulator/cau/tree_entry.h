// One index of a CAU: a tree's neighbours here, what each has sent, and the rule by which the tree
// fires (paper 000 section IV-D). Multicast: what comes on one link goes out on all others. Reduce:
// when all links but one have their operand, the result goes out on that one. Each kind fires in
// the order of its sequence, so several operations may be on their way.
//
// Pure matching: no packets, no time.
#pragma once

#include <optional>
#include <vector>

#include "emulator/cau/tree_channel.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/routing/tree_problem.h"

namespace percs {

struct TreeLink {
  NodeId node = 0;
  TreeVertexId vertex = kNoVertex;  // kNoVertex: the participant of this hub
  TreeChannel channels[2];          // by CauOperation; unused for the participant
  Ring<CauItem> given[2];           // by the participant, in memory of its node: without bound

  bool local() const { return vertex == kNoVertex; }
  const CauItem* head(int kind) const {
    if (!local()) return channels[kind].receiver.head();
    return given[kind].empty() ? nullptr : &given[kind].front();
  }
};

// What fires: `item` goes out on `outputs`.
struct Firing {
  CauItem item;
  std::vector<int> outputs;   // links
  std::vector<int> consumed;  // links whose peer had to stop and may continue now
  int inputs = 0;
  bool own = false;  // the participant of this hub is one of the inputs
};

class TreeEntry {
 public:
  // REQUIRES: vertex < plan.vertices.size().
  TreeEntry(const TreePlan& plan, TreeVertexId vertex, int depth);

  // The next operation of a kind, if all is there for it. Its operands are taken away.
  // INVALID operands fill `problem` instead.
  bool Fire(CauOperation operation, Firing* firing, TreeProblem* problem);
  // An item that a link has just got ready: is it one too many?
  bool Misplaced(int link, CauOperation operation, const CauItem& item, TreeProblem* problem) const;
  // Does what another participant says of a reduce go with what the one here says of it?
  bool Contradicts(const CauItem& said, NodeId by, TreeProblem* problem) const;
  // What the participant says of the reduce that is next, if it has said something.
  const CauItem* Declared() const;

  const CauTreeId tree;
  const std::uint32_t generation;
  const TreeVertexId vertex;
  const NodeId node;
  const OperandOrder order;
  std::vector<TreeLink> links;  // the participant's first, then in fixed order
  std::uint32_t next[2] = {};   // by CauOperation: sequence of the next to fire
  Ring<CauItem> expected;     // reduces the participant here is the root of, as it takes them to be
  bool active = false;        // set up everywhere, and nothing has failed
  Time watch_at = kNever;     // when a reduce that does not come is asked about
  std::uint32_t watched = 0;  // its sequence
  int watch_tries = 0;
  int own_unacknowledged = 0;  // packets with a part of the participant's, on all links

  bool has_participant() const { return !links.empty() && links.front().local(); }
  int FindLink(TreeVertexId neighbor) const;

 private:
  bool Match(const CauItem& a, NodeId from_a, const CauItem& b, NodeId from_b,
             TreeProblem* problem) const;
  bool FireReduce(Firing* firing, TreeProblem* problem);
  bool FireMulticast(Firing* firing, TreeProblem* problem);
  void Take(int link, int kind, Firing* firing);
};

}  // namespace percs
