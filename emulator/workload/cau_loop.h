// The participants of one hub in trees of CAUs: each runs the steps of the workload one after the
// other and compares every result with a serial reference. When network management has set a tree
// up again, its participants agree by an allreduce on the first step that one of them has not done,
// and continue there.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

// The participant of one tree.
class CauLoopTask {
 public:
  CauLoopTask(const CauWorkload& workload, CauTreeId tree, std::uint64_t token, std::uint64_t seed,
              HubServices& hub);

  void Start(CauListener* listener);
  void OnTimer();
  void OnReduced(std::uint32_t sequence, const CauPayload& payload);
  void OnMulticast(std::uint32_t sequence, const CauPayload& payload);
  void OnFailed(const absl::Status& why);
  void OnDown(const absl::Status& why);
  void OnUp(const std::vector<NodeId>& participants);
  void Stop();

  CauTreeId tree() const { return tree_; }
  // "" if it waits for nothing.
  std::string Blocked() const;
  CauTaskResult result() const;

 private:
  enum class State : std::uint8_t {
    kRunning,
    kAgreeing,  // about where to continue
    kWaiting,   // for network management
    kLeftOut,   // of the tree; may be taken in again
    kOver,      // all steps done; may be called back
    kStopped,   // for good
  };
  struct Step {
    std::uint64_t number = 0;
    CauStep kind = CauStep::kBarrier;
    NodeId root = 0;
    std::uint32_t reduce = 0, multicast = 0;  // sequences
    bool sends = false;                       // its multicast is this hub's, and not given yet
    bool has_payload = false, done = false;
    CauPayload payload;  // to be multicast
  };

  void Begin(const std::vector<NodeId>& participants);
  void SetRunning(bool running);  // counts as work
  void Pump();
  bool BeginStep();
  void Advance(Step& step);
  void SendInOrder();
  void Agree();
  void End(Step& step, bool right);
  bool Right(const Step& step, const CauPayload& got, bool with_root) const;
  void Reject(const absl::Status& status);

  ReduceOp op(const Step& step) const {
    return step.kind == CauStep::kBarrier ? ReduceOp::kNop : workload_.op;
  }
  OperandType type(const Step& step) const {
    return step.kind == CauStep::kBarrier ? OperandType::kInt32 : workload_.type;
  }
  CauPayload Contribution(const Step& step, NodeId node) const;
  CauPayload Message(const Step& step) const;

  const CauWorkload& workload_;
  const CauTreeId tree_;
  const std::uint64_t token_;  // of its timer
  HubServices& hub_;
  CauPort& cau_;
  NodeContext& context_;
  RandomStream random_;
  const std::uint64_t steps_;
  State state_ = State::kWaiting;
  bool counted_ = false;
  std::vector<NodeId> participants_;
  std::uint64_t next_step_ = 0;
  // The lowest step that a participant has not done, of those that were not left out, and of all.
  static constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
  std::array<std::uint64_t, 2> asked_{};
  std::uint32_t reduces_ = 0, multicasts_ = 0;  // sequences given out since the tree was set up
  bool computing_ = false;
  Ring<Step> open_;
  std::map<std::uint32_t, CauPayload> reduced_, received_;  // not asked for yet, by sequence
  CauTaskResult result_;
};

class CauLoop final : public HubWorkload, private CauListener {
 public:
  // INVALID_ARGUMENT for a reduction that a CAU does not have, and for trees that there are not.
  static absl::Status Check(const CauWorkload& workload, std::size_t trees);
  // REQUIRES: Check is OK, the hub has a CAU.
  CauLoop(const CauWorkload& workload, const std::vector<TreeSpec>& trees, std::uint64_t seed,
          HubServices& hub);

  void Start() override;
  void OnTimer(std::uint64_t token) override { tasks_[token]->OnTimer(); }
  void Stop() override;
  std::vector<CauTaskResult> cau_tasks() const override;
  std::vector<std::string> Blocked() const override;

 private:
  CauLoopTask& Task(CauTreeId tree);
  void OnCauReduced(CauTreeId tree, std::uint32_t sequence, const CauPayload& payload) override {
    Task(tree).OnReduced(sequence, payload);
  }
  void OnCauMulticast(CauTreeId tree, std::uint32_t sequence, const CauPayload& payload) override {
    Task(tree).OnMulticast(sequence, payload);
  }
  void OnCauFailed(CauTreeId tree, CauOperation, std::uint32_t, const absl::Status& why) override {
    Task(tree).OnFailed(why);
  }
  void OnCauTreeDown(CauTreeId tree, const absl::Status& why) override { Task(tree).OnDown(why); }
  void OnCauTreeUp(CauTreeId tree, const std::vector<NodeId>& participants) override {
    Task(tree).OnUp(participants);
  }

  std::vector<std::unique_ptr<CauLoopTask>> tasks_;  // in order of trees
};

}  // namespace percs
