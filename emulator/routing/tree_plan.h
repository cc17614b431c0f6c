// A tree of CAUs: which index of which CAU has which neighbours (paper 000 section IV-D), and the
// planner that lays one over any set of hubs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "emulator/base/ids.h"
#include "emulator/packet/cau_types.h"
#include "emulator/topology/topology.h"

namespace percs {

inline constexpr int kCauTrees =
    64;  // entries of a CAU's content-addressable memory (paper 003 section 3.6)
inline constexpr std::size_t kCauTreesMade = 0xffff;  // in a run: their numbers have 16 bits
inline constexpr int kCauFanOutMax = 8;  // tree links to children (paper 003 section 3.6)

// In which order a CAU combines the operands of a reduction.
enum class OperandOrder : std::uint8_t {
  kFixed,    // own participant, children, parent: the same bits in every run
  kArrival,  // as they come
};

// What software asks for.
struct TreeSpec {
  std::string name;
  std::vector<NodeId> members = {};  // hubs with a participating window
  std::vector<NodeId> relays =
      {};                       // hubs whose CAU passes on without one; a member may be one as well
  int fan_out = kCauFanOutMax;  // 1..8
  OperandOrder order = OperandOrder::kFixed;
};

using TreeVertexId = std::uint16_t;
inline constexpr TreeVertexId kNoVertex = 0xffff;

// One index of one CAU. A hub may have two, then at most one with the participant.
struct TreeVertex {
  NodeId node = 0;
  TreeVertexId parent = kNoVertex;  // always a lower number; vertex 0 has none
  bool participant = true;
  bool operator==(const TreeVertex&) const = default;
};

struct TreePlan {
  CauTreeId id = 0;
  std::uint32_t generation = 1;  // raised whenever it is set up again
  OperandOrder order = OperandOrder::kFixed;
  std::vector<TreeVertex> vertices;

  std::vector<NodeId> Participants() const;  // ascending
  int Depth() const;                         // tree links from vertex 0 to the farthest
  std::string Serialize() const;
  // INVALID_ARGUMENT for bytes that are no tree.
  static absl::StatusOr<TreePlan> Parse(absl::Span<const std::uint8_t> bytes);
};

// INVALID_ARGUMENT for a tree that cannot be set up: no member, a blade, a hub twice, a fan-out
// that is not 1..8.
absl::Status CheckTree(const Topology& topology, const TreeSpec& spec);

// A tree of least depth: the hubs in the order of their numbers, cut into parts at the edges of
// supernodes and drawers where that costs no depth, so that siblings share a drawer, then a
// supernode. Equal parts, so fan-out is balanced. `linked(a, b)`: a tree link between these two
// hubs can work. FAILED_PRECONDITION if no tree of such links was found. REQUIRES: CheckTree is OK.
using TreeLinked = std::function<bool(NodeId, NodeId)>;
absl::StatusOr<TreePlan> PlanTree(const Topology& topology, const TreeSpec& spec,
                                  const TreeLinked& linked);

}  // namespace percs
