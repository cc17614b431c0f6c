// The one window through which a node takes part in a tree of CAUs, and the software around it.
// Only the node's leader, its task 0, uses it (paper 003 section 3.6: the tasks of a node elect one
// that operates the CAU). What comes before the leader asks for it waits in a queue by its number.
//
// The window holds one packet of the leader's until the neighbours of its CAU have acknowledged it
// (paper 000 section IV-D: tree links retransmit): the next one waits for that.
//
// Numbers of operations are not sent around: all leaders make the same calls in the same order.
//
// When network management has set the tree up again, leaders agree by an allreduce on the first
// operation of each kind that one of them has not received, repeat what they gave from there on,
// and forget what comes a second time. So a call either completes right, or is reported: if a node
// was left out, if calls contradict each other, if the tree is gone for good.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/ring.h"
#include "emulator/cau/cau_port.h"
#include "emulator/runtime/rank.h"

namespace percs {

class CauWindow final : private CauListener {
 public:
  // What the leader receives, on its thread; once for each call below.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnCauSent() = 0;  // the payload is in the CAU: nothing else is heard of that call
    virtual void OnCauReceived(const CauPayload& payload) = 0;
  };

  CauWindow(NodeRuntime& node, CauTreeId tree) : node_(node), tree_(tree) {}
  // When the node starts. An error is reported to the node.
  void Attach();

  // One call at a time. While the tree is set up again, calls wait. Errors are reported to the
  // node, and the call never ends.
  void Contribute(NodeId root, ReduceOp op, OperandType type, const CauPayload& payload,
                  Client* client);
  void AwaitReduced(ReduceOp op, OperandType type, std::uint8_t bytes, Client* client);  // root
  void Multicast(const CauPayload& payload, Client* client);
  void AwaitMulticast(Client* client);

  // "reduce 7 of tree 0": the last call begun, and why its tree is not there.
  std::string LastCall() const;
  CauTreeId tree() const { return tree_; }

 private:
  enum class State : std::uint8_t {
    kUp,
    kDown,      // network management is setting it up again
    kAgreeing,  // with the other leaders, where to continue
    kAgreed,    // this leader has still to repeat what it gave
    kFailed,    // nothing of the tree counts any more
  };
  struct Outgoing {
    CauOperation operation = CauOperation::kReduce;
    bool expects = false;  // a root's part in a reduce
    std::uint32_t sequence = 0;
    NodeId root = 0;
    ReduceOp op = ReduceOp::kNop;
    OperandType type = OperandType::kInt32;
    CauPayload payload;  // kept as long as it may have to be given again
    Client* client = nullptr;
  };
  struct Arrived {
    std::uint32_t sequence = 0;
    bool handled = false;  // the leader's thread has had it
    CauPayload payload;
  };
  struct Waiting {
    std::uint32_t sequence = 0;
    Client* client = nullptr;
  };

  // Calls that can be given again. One that is not kept any more and is missing is reported.
  static constexpr std::size_t kCallsKept = 1024;

  // Out.
  void Put(const Outgoing& outgoing);
  void Ready(std::uint64_t);
  void Enter(std::uint64_t);
  void LetGo();
  bool Give(const Outgoing& call);
  void Keep(const Outgoing& call);

  // In.
  void Await(CauOperation operation, std::uint32_t sequence, Client* client);
  void Queue(CauOperation operation, std::uint32_t sequence, const CauPayload& payload);
  void Handled(std::uint64_t operation_and_sequence);
  void Hand(int kind);
  bool Failed(const absl::Status& status);

  // After a repair.
  std::uint32_t Missing(int kind) const;
  CauPayload MissingOfBothKinds() const;
  std::uint32_t TreeNumber(const Outgoing& call) const {
    return static_cast<std::uint32_t>(call.sequence -
                                      origin_[static_cast<std::size_t>(call.operation)]);
  }
  bool GoesAgain(const Outgoing& call) const {
    return call.sequence > origin_[static_cast<std::size_t>(call.operation)];
  }
  bool Stale(std::uint64_t generation, State state) const {
    return generation != ups_ || state_ != state;
  }
  void Propose(std::uint64_t generation);
  void Decide(std::uint64_t generation);
  void Agreed(const CauPayload& first);
  void GoOn(std::uint64_t generation);
  void Receive(CauOperation operation, std::uint32_t sequence, const CauPayload& payload);
  void OnFault(const absl::Status& why);

  void OnCauReduced(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
    Receive(CauOperation::kReduce, sequence, payload);
  }
  void OnCauMulticast(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
    Receive(CauOperation::kMulticast, sequence, payload);
  }
  void OnCauFailed(CauTreeId, CauOperation, std::uint32_t, const absl::Status& why) override {
    OnFault(why);
  }
  void OnCauTaken(CauTreeId) override { LetGo(); }
  void OnCauTreeDown(CauTreeId, const absl::Status& why) override { OnFault(why); }
  void OnCauTreeUp(CauTreeId, const std::vector<NodeId>& participants) override;

  NodeRuntime& node_;
  const CauTreeId tree_;
  State state_ = State::kUp;
  std::array<std::uint32_t, 2> given_{};  // operations begun, by CauOperation
  // The tree's number of an operation is its own less this: after a repair the tree counts from 0
  // again, and 0 is the leaders' agreement.
  std::array<std::int64_t, 2> origin_{};
  bool numbered_ = true;  // origin_ is that of the tree as it is now
  CauOperation last_ = CauOperation::kReduce;
  Outgoing outgoing_;
  bool held_ = false;                         // `outgoing_` waits for the tree
  Ring<Outgoing> kept_;                       // in order
  std::array<std::uint32_t, 2> forgotten_{};  // of those before, some are kept no longer
  std::array<std::vector<Arrived>, 2> arrived_;
  std::array<Waiting, 2> waiting_;
  bool holds_ = false;  // the window has a packet that is not acknowledged
  bool waits_ = false;  // `outgoing_` waits for the window
  // Of a repair.
  std::uint64_t ups_ = 0;  // times the tree was set up again
  absl::Status why_;       // kDown
  CauPayload proposed_;    // root of the agreement: what the others have not had
  struct Early {
    CauOperation operation = CauOperation::kReduce;
    std::uint32_t sequence = 0;
    CauPayload payload;
  };
  std::vector<Early> early_;  // of leaders that continue already; not yet known here
};

}  // namespace percs
