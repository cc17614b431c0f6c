#include "emulator/workload/cau_loop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/cau/cau_reduction.h"
#include "fmt/format.h"

namespace percs {
namespace {

std::uint64_t Word(CauTreeId tree, std::uint64_t step, NodeId node, int i) {
  return Mix64(step << 24 ^ static_cast<std::uint64_t>(tree) << 8 ^ static_cast<std::uint64_t>(i)) ^
         Mix64(0x5eedull << 32 | node);
}

// A floating-point operand of which any order of combining gives the same, exact result: sums of
// small integers, products of few powers of two.
template <typename T>
T Exact(ReduceOp op, NodeId node, std::uint64_t word) {
  if (op != ReduceOp::kProd) return static_cast<T>(static_cast<int>(word % 129) - 64);
  if (node % 8 != 0) return word & 1 ? T{1} : T{-1};
  return word & 2 ? T{0.5} : T{2};
}

void PutOperand(ReduceOp op, OperandType type, NodeId node, std::uint64_t word, std::uint8_t* to) {
  if (type == OperandType::kFloat) {
    const float value = Exact<float>(op, node, word);
    std::memcpy(to, &value, sizeof(value));
  } else if (type == OperandType::kDouble) {
    const double value = Exact<double>(op, node, word);
    std::memcpy(to, &value, sizeof(value));
  } else {
    std::memcpy(to, &word, OperandBytes(type));
  }
}

}  // namespace

CauLoopTask::CauLoopTask(const CauWorkload& workload, CauTreeId tree, std::uint64_t token,
                         std::uint64_t seed, HubServices& hub)
    : workload_(workload),
      tree_(tree),
      token_(token),
      hub_(hub),
      cau_(*hub.cau()),
      context_(hub.context()),
      random_(seed, fmt::format("node/{}/cau/{}", context_.node, tree)),
      steps_(workload.iterations * workload.steps.size()) {
  result_.node = context_.node;
  result_.tree = tree;
}

// --- Life ----------------------------------------------------------------------------------------

void CauLoopTask::Start(CauListener* listener) {
  if (const absl::Status status = cau_.Attach(tree_, listener); !status.ok()) return Reject(status);
  SetRunning(true);
  Begin(cau_.Participants(tree_));
  state_ = State::kRunning;
  Pump();
}

void CauLoopTask::SetRunning(bool running) {
  if (counted_ == running) return;
  counted_ = running;
  context_.work->unfinished += running ? 1 : -1;
  context_.last_event = context_.now;
  result_.finished = context_.now;
}

void CauLoopTask::Begin(const std::vector<NodeId>& participants) {
  participants_ = participants;
  reduces_ = multicasts_ = 0;
  reduced_.clear();
  received_.clear();
}

void CauLoopTask::Reject(const absl::Status& status) {
  result_.problem = std::string(status.message());
  state_ = State::kStopped;
  SetRunning(false);
}

void CauLoopTask::Stop() {
  if (state_ == State::kStopped || state_ == State::kOver || state_ == State::kLeftOut) return;
  Reject(absl::CancelledError("stopped"));
}

void CauLoopTask::OnFailed(const absl::Status& why) {
  if (state_ == State::kStopped) return;
  for (; !open_.empty(); open_.pop_front()) {
    if (open_.front().done) continue;
    ++result_.steps_failed;
    next_step_ = std::min(next_step_, open_.front().number);
  }
  result_.reason = std::string(why.message());
  if (state_ == State::kOver) return;
  if (absl::IsInvalidArgument(why)) return Reject(why);  // it would only fail again
  state_ = State::kWaiting;
}

void CauLoopTask::OnDown(const absl::Status& why) {
  if (absl::IsUnavailable(why) || state_ == State::kOver || state_ == State::kStopped) return;
  Reject(why);
  state_ = State::kLeftOut;
}

void CauLoopTask::OnUp(const std::vector<NodeId>& participants) {
  if (state_ == State::kStopped) return;
  // Others may have continued; then it joins them at their step.
  const bool left_out = state_ == State::kLeftOut;
  if (left_out) result_.reason = std::exchange(result_.problem, "");
  asked_ = {left_out ? kNoStep : next_step_, next_step_};
  SetRunning(true);
  Begin(participants);
  state_ = State::kAgreeing;
  const NodeId root = participants_.front();
  reduces_ = multicasts_ = 1;
  if (root == context_.node) return;
  CauPayload mine;
  mine.size = sizeof(asked_);
  std::memcpy(mine.bytes.data(), asked_.data(), sizeof(asked_));
  const absl::Status status =
      cau_.Reduce(tree_, 0, root, ReduceOp::kMin, OperandType::kUint64, mine);
  if (!status.ok()) Reject(status);
}

// The root has the lowest step of the others, or the others have that of all.
void CauLoopTask::Agree() {
  const bool root = participants_.front() == context_.node;
  auto& arrived = root ? reduced_ : received_;
  const auto it = arrived.find(0);
  if (it == arrived.end()) return;
  CauPayload lowest = it->second;
  arrived.erase(it);
  if (root) {
    Combine(ReduceOp::kMin, OperandType::kUint64, asked_.size(), asked_.data(),
            lowest.bytes.data());
    if (const absl::Status status = cau_.Multicast(tree_, 0, lowest); !status.ok())
      return Reject(status);
  }
  std::memcpy(asked_.data(), lowest.bytes.data(), sizeof(asked_));
  next_step_ = asked_[0] != kNoStep ? asked_[0] : asked_[1];
  state_ = State::kRunning;
  Pump();
}

// --- Steps ---------------------------------------------------------------------------------------

void CauLoopTask::OnTimer() {
  computing_ = false;
  Pump();
}

void CauLoopTask::OnReduced(std::uint32_t sequence, const CauPayload& payload) {
  reduced_[sequence] = payload;
  if (state_ == State::kAgreeing) return Agree();
  Pump();
}

void CauLoopTask::OnMulticast(std::uint32_t sequence, const CauPayload& payload) {
  received_[sequence] = payload;
  if (state_ == State::kAgreeing) return Agree();
  Pump();
}

void CauLoopTask::Pump() {
  if (state_ != State::kRunning) return;
  do {
    for (std::size_t i = 0; i < open_.size() && state_ == State::kRunning; ++i) Advance(open_[i]);
    if (state_ == State::kRunning) SendInOrder();
    while (!open_.empty() && open_.front().done) open_.pop_front();
  } while (state_ == State::kRunning && BeginStep());
  if (state_ == State::kRunning && open_.empty() && next_step_ == steps_) {
    state_ = State::kOver;
    SetRunning(false);
  }
}

bool CauLoopTask::BeginStep() {
  if (computing_ || next_step_ == steps_ ||
      open_.size() >= static_cast<std::size_t>(workload_.in_flight))
    return false;
  Step step;
  step.number = next_step_++;
  step.kind = workload_.steps[step.number % workload_.steps.size()];
  step.root = participants_[workload_.rotate_root ? step.number % participants_.size() : 0];
  const bool root = step.root == context_.node;
  absl::Status status;
  if (step.kind != CauStep::kMulticast) {
    step.reduce = reduces_++;
    const CauPayload mine = Contribution(step, context_.node);
    status = root ? cau_.ExpectReduce(tree_, step.reduce, op(step), type(step), mine.size)
                  : cau_.Reduce(tree_, step.reduce, step.root, op(step), type(step), mine);
  }
  if (step.kind != CauStep::kReduce) {
    step.multicast = multicasts_++;
    step.sends = root;
  }
  if (!status.ok()) {
    Reject(status);
    return false;
  }
  if (step.kind == CauStep::kMulticast && root) {
    step.payload = Message(step);
    step.has_payload = true;
  }
  // A participant that only contributes is done when the call returns (paper 003 section 3.6).
  if (step.kind == CauStep::kReduce && !root) step.done = true;
  open_.push_back(step);
  if (workload_.compute_max > 0) {
    computing_ = true;
    const std::uint64_t most = static_cast<std::uint64_t>(workload_.compute_max);
    hub_.SetTimer(context_.now + 1 + static_cast<Time>(random_.Next() % most), token_);
  }
  return true;
}

void CauLoopTask::Advance(Step& step) {
  if (step.done) return;
  const bool root = step.root == context_.node;
  if (!root) {
    const auto it = received_.find(step.multicast);
    if (it == received_.end()) return;
    End(step, step.kind == CauStep::kMulticast
                  ? it->second.bytes == Message(step).bytes && it->second.size == Message(step).size
                  : Right(step, it->second, true));
    received_.erase(it);
    return;
  }
  if (step.kind == CauStep::kMulticast || step.has_payload) return;
  const auto it = reduced_.find(step.reduce);
  if (it == reduced_.end()) return;
  const bool right = Right(step, it->second, false);
  if (step.kind == CauStep::kReduce) {
    End(step, right);
  } else {
    step.payload = it->second;
    step.has_payload = true;
    const CauPayload mine = Contribution(step, context_.node);
    Combine(op(step), type(step), mine.size / OperandBytes(type(step)), mine.bytes.data(),
            step.payload.bytes.data());
    if (!right) End(step, false);
  }
  reduced_.erase(it);
}

// A participant gives its multicasts in the order of their sequence.
void CauLoopTask::SendInOrder() {
  for (std::size_t i = 0; i < open_.size(); ++i) {
    Step& step = open_[i];
    if (!step.sends) continue;
    if (!step.has_payload) return;
    step.sends = false;
    if (const absl::Status status = cau_.Multicast(tree_, step.multicast, step.payload);
        !status.ok()) {
      return Reject(status);
    }
    if (!step.done) End(step, step.kind == CauStep::kMulticast || Right(step, step.payload, true));
  }
}

void CauLoopTask::End(Step& step, bool right) {
  step.done = true;
  ++context_.stats.Cau(right ? CauCounter::kResultsRight : CauCounter::kResultsWrong);
  ++(right ? result_.steps_right : result_.steps_wrong);
}

// --- The serial reference ------------------------------------------------------------------------

CauPayload CauLoopTask::Contribution(const Step& step, NodeId node) const {
  CauPayload payload;
  if (step.kind == CauStep::kBarrier) return payload;
  const std::size_t size = OperandBytes(workload_.type);
  payload.size = static_cast<std::uint8_t>(size * static_cast<std::size_t>(workload_.operands));
  for (int i = 0; i < workload_.operands; ++i) {
    PutOperand(workload_.op, workload_.type, node, Word(tree_, step.number, node, i),
               payload.bytes.data() + static_cast<std::size_t>(i) * size);
  }
  return payload;
}

CauPayload CauLoopTask::Message(const Step& step) const { return Contribution(step, step.root); }

bool CauLoopTask::Right(const Step& step, const CauPayload& got, bool with_root) const {
  CauPayload all;
  bool first = true;
  for (const NodeId node : participants_) {
    if (node == step.root && !with_root) continue;
    const CauPayload one = Contribution(step, node);
    if (first) {
      all = one;
    } else {
      Combine(op(step), type(step), one.size / OperandBytes(type(step)), one.bytes.data(),
              all.bytes.data());
    }
    first = false;
  }
  // What NOP leaves is no result.
  return got.size == all.size && (op(step) == ReduceOp::kNop || got.bytes == all.bytes);
}

CauTaskResult CauLoopTask::result() const { return result_; }

std::string CauLoopTask::Blocked() const {
  if (!counted_) return "";
  const std::string who =
      fmt::format("{} in tree {}", context_.topology->NodeName(context_.node), tree_);
  if (state_ == State::kWaiting) return who + " waits for network management to set the tree up";
  if (open_.empty()) return fmt::format("{} waits before step {}", who, next_step_);
  const Step& step = open_.front();
  return fmt::format("{} waits in step {} with root {}", who, step.number,
                     context_.topology->NodeName(step.root));
}

// --- All trees of a hub --------------------------------------------------------------------------

absl::Status CauLoop::Check(const CauWorkload& workload, std::size_t trees) {
  for (const CauTreeId tree : workload.trees) {
    if (tree >= trees) {
      return absl::InvalidArgumentError(
          fmt::format("tree {} does not exist; the scenario has {}", tree, trees));
    }
  }
  if (trees == 0)
    return absl::InvalidArgumentError("a workload on trees, but the scenario has no tree");
  if (workload.steps.empty()) return absl::InvalidArgumentError("an iteration without a step");
  const bool moves_data = std::any_of(workload.steps.begin(), workload.steps.end(),
                                      [](CauStep step) { return step != CauStep::kBarrier; });
  if (!moves_data) return absl::OkStatus();
  return CheckCauReduction(workload.op, workload.type,
                           workload.operands * static_cast<int>(OperandBytes(workload.type)));
}

CauLoop::CauLoop(const CauWorkload& workload, const std::vector<TreeSpec>& trees,
                 std::uint64_t seed, HubServices& hub) {
  const auto made = static_cast<CauTreeId>(trees.size());  // at most kCauTreesMade
  for (CauTreeId tree = 0; tree < made; ++tree) {
    const auto& wanted = workload.trees;
    const auto& members = trees[tree].members;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), tree) == wanted.end()) continue;
    if (std::find(members.begin(), members.end(), hub.context().node) == members.end()) continue;
    tasks_.push_back(std::make_unique<CauLoopTask>(workload, tree, tasks_.size(), seed, hub));
  }
}

void CauLoop::Start() {
  for (auto& task : tasks_) task->Start(this);
}

void CauLoop::Stop() {
  for (auto& task : tasks_) task->Stop();
}

std::vector<CauTaskResult> CauLoop::cau_tasks() const {
  std::vector<CauTaskResult> results;
  for (const auto& task : tasks_) results.push_back(task->result());
  return results;
}

std::vector<std::string> CauLoop::Blocked() const {
  std::vector<std::string> all;
  for (const auto& task : tasks_) {
    std::string text = task->Blocked();
    if (!text.empty()) all.push_back(std::move(text));
  }
  return all;
}

CauLoopTask& CauLoop::Task(CauTreeId tree) {
  return **std::find_if(tasks_.begin(), tasks_.end(),
                        [tree](const auto& task) { return task->tree() == tree; });
}

}  // namespace percs
