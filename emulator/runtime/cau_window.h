// The one window through which a node takes part in a tree of CAUs, and the software around it. Only the
// node's leader, its task 0, uses it (paper 003 section 3.6: the tasks of a node elect one that operates the
// CAU). What comes before the leader asks for it waits in a queue by its number.
//
// Numbers of operations are not sent around: all leaders make the same calls in the same order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/cau/cau_port.h"
#include "emulator/runtime/rank.h"

namespace percs {

class CauWindow final : private CauListener {
 public:
  // What the leader is told, on its thread; once for each call below.
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnCauSent() = 0;  // the payload is in the CAU: nothing else is heard of that call
    virtual void OnCauReceived(const CauPayload& payload) = 0;
  };

  CauWindow(NodeRuntime& node, CauTreeId tree) : node_(node), tree_(tree) {}
  // When the node starts. An error is reported to the node.
  void Attach();

  // One call at a time. Errors are reported to the node, and the call never ends.
  void Contribute(NodeId root, ReduceOp op, OperandType type, const CauPayload& payload, Client* client);
  void AwaitReduced(ReduceOp op, OperandType type, std::uint8_t bytes, Client* client);  // root
  void Multicast(const CauPayload& payload, Client* client);
  void AwaitMulticast(Client* client);

  // "reduce 7 of tree 0": the last call begun.
  std::string LastCall() const;

 private:
  struct Outgoing {
    CauOperation operation = CauOperation::kReduce;
    std::uint32_t sequence = 0;
    NodeId root = 0;
    ReduceOp op = ReduceOp::kNop;
    OperandType type = OperandType::kInt32;
    CauPayload payload;
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

  void Put(const Outgoing& outgoing);
  void Ready(std::uint64_t);
  void Enter(std::uint64_t);
  void Await(CauOperation operation, std::uint32_t sequence, Client* client);
  void Queue(CauOperation operation, std::uint32_t sequence, const CauPayload& payload);
  void Handled(std::uint64_t operation_and_sequence);
  void Hand(int kind);
  bool Failed(const absl::Status& status);

  void OnCauReduced(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
    Queue(CauOperation::kReduce, sequence, payload);
  }
  void OnCauMulticast(CauTreeId, std::uint32_t sequence, const CauPayload& payload) override {
    Queue(CauOperation::kMulticast, sequence, payload);
  }
  void OnCauFailed(CauTreeId, CauOperation, std::uint32_t, const absl::Status& why) override { Failed(why); }
  void OnCauTreeDown(CauTreeId, const absl::Status& why) override { Failed(why); }

  NodeRuntime& node_;
  const CauTreeId tree_;
  std::array<std::uint32_t, 2> given_{};  // operations begun, by CauOperation
  CauOperation last_ = CauOperation::kReduce;
  Outgoing outgoing_;
  std::array<std::vector<Arrived>, 2> arrived_;
  std::array<Waiting, 2> waiting_;
  Time free_at_ = 0;     // the window takes the next packet
  bool failed_ = false;  // nothing of the tree counts any more
};

}  // namespace percs
