// Collectives of an MPI program on trees of CAUs, as papers 002 and 003 do them: the ranks of a hub
// combine in the node's memory, one of them operates the CAU, and a reduce whose root multicasts
// the total is an allreduce. A communicator gets a tree of its own as long as the hubs have any.
//
// All of it happens in virtual time, on real operands, by the packets of the emulated CAUs. What
// the ranks of a communicator call is compared, so that calls that contradict each other end the
// run with what they were. After a repair of a tree, what had not ended is given again.
//
// Where other processes have hubs, too, each of them has this for its own ranks, and they meet in
// packets of CAUs alone: MPI_COMM_WORLD has the tree that was there before, communicators of one
// hub need none, and the others get none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/mpi/transport.h"
#include "emulator/base/reduce_op.h"
#include "emulator/cau/cau_port.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/sim/fabric.h"

namespace percs::mpi {

struct CollectiveCall {
  std::uint64_t id = 0;
  std::uint64_t group = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kNop;
  OperandType type = OperandType::kInt32;
  std::uint32_t root = 0;   // a rank of the group; of kBarrier and kAllreduce: its first
  std::uint64_t bytes = 0;  // of the collective
  Bytes operand;            // of this rank; empty where it has none
};

struct JoinCall {
  std::uint64_t id = 0;
  std::uint64_t communicator = 0;
  std::vector<std::uint32_t> ranks;  // in their order there
};

// Who sets up trees, and the one that was there before.
struct CollectiveTrees {
  std::optional<CauTreeId> world;  // WorldTree of the places; none if one hub has all ranks
  bool makes = true;               // network management is in this process
};

struct CollectiveCounts {
  std::uint64_t calls[4] = {};  // by CollectiveKind; of a whole group
  std::uint64_t groups = 0;     // communicators that got a tree, or need none: all on one hub
  std::uint64_t refused = 0;    // ... that got none: their collectives are messages
  std::uint64_t repairs = 0;    // trees set up again
};

// The tree that a job over these places has from its start; no members if one hub has them all.
TreeSpec WorldTree(const std::vector<RankPlace>& places);

// WIDE: one protocol: each method is one step of a collective.
class Collectives {
 public:
  // REQUIRES: all outlive this.
  Collectives(Fabric& fabric, const std::vector<RankPlace>& places, const CollectiveTrees& trees,
              Transport& transport, TransportUser& user, const HostParameters& host);
  ~Collectives();

  // Virtual time begins for the ranks.
  void Begin(Time at);
  // Of a fabric that goes on: nobody is at the world's tree any more.
  void Close(Time at);
  // Calls of a rank, in the order of their times. An error names what contradicts what.
  absl::Status Join(std::uint32_t rank, Time at, const JoinCall& call);
  absl::Status Call(std::uint32_t rank, Time at, CollectiveCall call);
  absl::Status Leave(std::uint32_t rank, Time at, std::uint64_t group);

  const CollectiveCounts& counts() const { return counts_; }
  // Open MPI's number of it, which is the same wherever its ranks are; 0 for no group.
  std::uint64_t communicator(std::uint64_t group) const {
    return group == kNoGroup || group > groups_.size() ? 0 : groups_[group - 1]->communicator;
  }

 private:
  enum class State : std::uint8_t { kJoining, kSettingUp, kUp, kDown, kOver };
  struct Group;
  struct Packet {  // of the hub's leader, to its CAU
    CauOperation operation = CauOperation::kReduce;
    std::uint64_t number = 0;  // of the collective
    std::size_t chunk = 0;
    std::uint32_t generation = 0;  // of the group
  };
  // A hub of a group, and the software of the one of its ranks that operates the CAU.
  struct Part final : public CauListener {
    Part(Collectives& o, Group& g, std::size_t i) : owner(o), group(g), index(i) {}
    void OnCauReduced(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
      owner.OnReduced(group, index, sequence, payload);
    }
    void OnCauMulticast(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
      owner.OnMulticast(group, index, sequence, payload);
    }
    void OnCauFailed(CauTreeId, CauOperation, std::uint32_t, const absl::Status&) override {
      owner.OnDown(group);
    }
    void OnCauTaken(CauTreeId) override;
    void OnCauTreeDown(CauTreeId, const absl::Status& why) override;
    void OnCauTreeUp(CauTreeId, const std::vector<NodeId>& participants) override {
      owner.OnUp(group, participants);
    }

    Collectives& owner;
    Group& group;
    const std::size_t index;
    NodeId node = 0;
    bool here = true;                    // else another process has it
    std::vector<std::uint32_t> members;  // ranks, the leader first
    std::deque<Packet> out;
    bool holds = false;  // the window has a packet that is not acknowledged
    Time busy = 0;       // the leader's software
  };
  struct OfHub {                     // of a collective
    std::vector<Bytes> operands;     // by member
    std::vector<std::uint64_t> ids;  // 0: has not called, or has ended
    std::vector<Time> called;
    std::size_t arrived = 0;
    Bytes value;  // of all its members
    bool ready = false;
    std::size_t chunks = 0;  // of the result that have come
    Bytes result;
    bool has_result = false;
    Time result_at = 0;
  };
  struct Operation {
    std::uint64_t number = 0;
    CollectiveKind kind = CollectiveKind::kBarrier;
    ReduceOp op = ReduceOp::kNop;
    OperandType type = OperandType::kInt32;
    std::uint32_t root = 0;
    std::size_t root_hub = 0;
    std::uint64_t bytes = 0;
    std::size_t chunks = 1;  // packets
    // By CauOperation: the first packet's, and how many packets there are. A reduce without a
    // broadcast has none of the other kind, so it takes no sequence there.
    std::uint32_t sequence[2] = {}, packets[2] = {};
    bool reduced = false;  // the root has the total, or it is a broadcast
    std::size_t chunks_reduced = 0;
    Bytes total;  // at the root
    std::vector<OfHub> hubs;
    std::size_t ended = 0;   // ranks that are here
    std::size_t unsent = 0;  // packets that the CAUs here are to have
  };
  // Of an operation that no rank here has called yet.
  struct Early {
    CauOperation kind = CauOperation::kReduce;
    std::size_t hub = 0;
    std::uint32_t sequence = 0;
    CauPayload payload;
    Time at = 0;  // the leader's software has it
  };
  struct Member {
    std::size_t hub = 0, local = 0;
    std::uint64_t calls = 0;
    bool joined = false, left = false;
  };
  struct Group {
    std::uint64_t number = 0, communicator = 0;
    State state = State::kJoining;
    CauTreeId tree = 0;
    std::vector<std::uint32_t> ranks;
    absl::flat_hash_map<std::uint32_t, Member> members;  // by rank
    std::vector<std::unique_ptr<Part>> hubs;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> joins;  // rank, id
    std::size_t here = 0, left = 0;                              // ranks
    std::vector<Early> early;
    std::deque<Operation> operations;
    std::uint64_t first = 0;  // number of the first of them
    std::uint32_t next[2] = {};
    bool repairing = false;
    std::uint32_t generation = 0;  // raised when its tree was set up again
  };

  // --- collective_groups.cc
  Group& MakeGroup(std::uint64_t communicator, const std::vector<std::uint32_t>& ranks);
  Group& GroupFor(const JoinCall& call, std::uint32_t rank);
  bool JoinWorld(const JoinCall& call, std::uint32_t rank, Time at);
  void SetUp(Group& group, Time now);
  void AwaitTree(Group& group, Time now);
  void Attach(Group& group, Time now);
  void Detach(Group& group, Time at);
  void Answer(Group& group, Time now);
  void AnswerOne(std::uint32_t rank, std::uint64_t id, std::uint64_t group, Time now);
  void OnDown(Group& group);
  void OnUp(Group& group, const std::vector<NodeId>& participants);
  void GiveAgain(Group& group, Time now);
  void Fail(const std::string& reason);

  // --- collectives.cc
  absl::Status Agrees(const Group& group, const Operation& first, std::uint32_t rank,
                      const CollectiveCall& call) const;
  Operation& OperationFor(Group& group, std::uint64_t number, const CollectiveCall& call);
  void TakeSequences(Group& group, Operation& operation);
  Operation* Find(Group& group, std::uint64_t number);
  Operation* FindBySequence(Group& group, CauOperation operation, std::uint32_t sequence);
  void Contribute(Group& group, Operation& operation, std::size_t hub);
  void Send(Group& group, std::size_t hub, CauOperation kind, std::uint64_t number, Time at);
  void Pump(Group& group, std::size_t hub, Time now);
  bool KeepEarly(Group& group, CauOperation kind, std::size_t hub, std::uint32_t sequence,
                 const CauPayload& payload);
  void TakeEarly(Group& group, Operation& operation);
  void OnReduced(Group& group, std::size_t hub, std::uint32_t sequence, const CauPayload& payload);
  void OnMulticast(Group& group, std::size_t hub, std::uint32_t sequence,
                   const CauPayload& payload);
  void HaveTotal(Group& group, std::uint64_t number, Time now);
  void HaveResult(Group& group, Operation& operation, std::size_t hub, Time at);
  void EndMember(Group& group, Operation& operation, std::size_t hub, std::size_t local, Time at);
  void Retire(Group& group);
  // When a rank of a hub sees what another one of it has written: a line of the node's memory, and
  // its readers are served one by one.
  Time SeenAt(Time at, std::size_t local) const;

  Fabric& fabric_;
  const std::vector<RankPlace>& places_;
  const CollectiveTrees trees_;
  Group* world_ = nullptr;    // null: none
  bool world_taken_ = false;  // a communicator uses it
  Transport& transport_;
  TransportUser& user_;
  const HostParameters& host_;
  std::vector<std::unique_ptr<Group>> groups_;  // by number - 1
  CollectiveCounts counts_;
};

}  // namespace percs::mpi
