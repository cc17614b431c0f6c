#include "emulator/runtime/cau_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/runtime/node_runtime.h"
#include "fmt/format.h"

namespace percs {

void CauWindow::Attach() { Failed(node_.hub().cau()->Attach(tree_, this)); }

bool CauWindow::Failed(const absl::Status& status) {
  if (status.ok()) return false;
  state_ = State::kFailed;
  node_.Report(absl::Status(status.code(), fmt::format("task {}: {}", node_.local_rank(0).number(),
                                                       std::string(status.message()))));
  return true;
}

std::string CauWindow::LastCall() const {
  const int kind = static_cast<int>(last_);
  std::string call =
      fmt::format("{} {} of tree {}", last_ == CauOperation::kReduce ? "reduce" : "multicast",
                  given_[static_cast<std::size_t>(kind)] - 1, tree_);
  if (state_ == State::kDown)
    call += fmt::format(" (not set up again yet: {})", std::string(why_.message()));
  return call;
}

// --- Out -----------------------------------------------------------------------------------------

void CauWindow::Contribute(NodeId root, ReduceOp op, OperandType type, const CauPayload& payload,
                           Client* client) {
  Put({last_ = CauOperation::kReduce, false, given_[0]++, root, op, type, payload, client});
}

void CauWindow::Multicast(const CauPayload& payload, Client* client) {
  Put({last_ = CauOperation::kMulticast, false, given_[1]++, 0, ReduceOp::kNop, OperandType::kInt32,
       payload, client});
}

void CauWindow::Put(const Outgoing& outgoing) {
  outgoing_ = outgoing;
  Rank& leader = node_.local_rank(0);
  leader.Do<&CauWindow::Ready>(leader.Shared(node_.host().cau_send), this);
}

void CauWindow::Ready(std::uint64_t) {
  waits_ = holds_;
  if (!waits_) Enter(0);
}

void CauWindow::LetGo() {
  holds_ = false;
  // It went back to the work queue, and is found there again.
  if (std::exchange(waits_, false))
    node_.local_rank(0).Do<&CauWindow::Enter>(node_.host().shared_step, this);
}

void CauWindow::Enter(std::uint64_t) {
  if (state_ == State::kFailed) return;
  held_ = state_ != State::kUp;
  if (held_) return;
  Keep(outgoing_);
  if (Give(outgoing_)) outgoing_.client->OnCauSent();
}

bool CauWindow::Give(const Outgoing& o) {
  CauPort& cau = *node_.hub().cau();
  const std::uint32_t sequence = TreeNumber(o);
  if (o.expects) return !Failed(cau.ExpectReduce(tree_, sequence, o.op, o.type, o.payload.size));
  holds_ = true;
  return !Failed(o.operation == CauOperation::kReduce
                     ? cau.Reduce(tree_, sequence, o.root, o.op, o.type, o.payload)
                     : cau.Multicast(tree_, sequence, o.payload));
}

void CauWindow::Keep(const Outgoing& call) {
  if (kept_.size() == kCallsKept) {
    forgotten_[static_cast<std::size_t>(kept_.front().operation)] = kept_.front().sequence + 1;
    kept_.pop_front();
  }
  kept_.push_back(call);
}

// --- In ------------------------------------------------------------------------------------------

void CauWindow::AwaitReduced(ReduceOp op, OperandType type, std::uint8_t bytes, Client* client) {
  last_ = CauOperation::kReduce;
  Outgoing part{CauOperation::kReduce, true, given_[0]++, 0, op, type, {}, nullptr};
  part.payload.size = bytes;
  Keep(part);
  if (state_ == State::kFailed || (state_ == State::kUp && !Give(part))) return;
  Await(CauOperation::kReduce, part.sequence, client);
}

void CauWindow::AwaitMulticast(Client* client) {
  Await(last_ = CauOperation::kMulticast, given_[1]++, client);
}

void CauWindow::Await(CauOperation operation, std::uint32_t sequence, Client* client) {
  const auto kind = static_cast<std::size_t>(operation);
  waiting_[kind] = {sequence, client};
  Hand(static_cast<int>(kind));
}

void CauWindow::Queue(CauOperation operation, std::uint32_t sequence, const CauPayload& payload) {
  const auto kind = static_cast<std::size_t>(operation);
  if (state_ == State::kFailed) return;
  // After a repair, also of results that came before it.
  const bool had = std::any_of(arrived_[kind].begin(), arrived_[kind].end(),
                               [&](const Arrived& a) { return a.sequence == sequence; });
  const bool waits = waiting_[kind].client && waiting_[kind].sequence == sequence;
  if (had || (sequence < given_[kind] && !waits)) return;
  arrived_[kind].push_back({sequence, false, payload});
  Rank& leader = node_.local_rank(0);
  leader.Do<&CauWindow::Handled>(leader.Shared(node_.host().cau_receive), this,
                                 static_cast<std::uint64_t>(operation) << 32 | sequence);
}

void CauWindow::Handled(std::uint64_t operation_and_sequence) {
  const auto kind = static_cast<std::size_t>(operation_and_sequence >> 32);
  for (Arrived& arrived : arrived_[kind]) {
    arrived.handled |= arrived.sequence == static_cast<std::uint32_t>(operation_and_sequence);
  }
  Hand(static_cast<int>(kind));
}

void CauWindow::Hand(int kind) {
  auto& arrived = arrived_[static_cast<std::size_t>(kind)];
  Waiting& waiting = waiting_[static_cast<std::size_t>(kind)];
  if (state_ == State::kFailed || !waiting.client) return;
  const auto it = std::find_if(arrived.begin(), arrived.end(), [&](const Arrived& a) {
    return a.handled && a.sequence == waiting.sequence;
  });
  if (it == arrived.end()) return;
  const CauPayload payload = it->payload;
  arrived.erase(it);
  std::exchange(waiting.client, nullptr)->OnCauReceived(payload);
}

// --- After a repair ------------------------------------------------------------------------------

void CauWindow::OnFault(const absl::Status& why) {
  if (state_ == State::kFailed) return;
  if (!absl::IsUnavailable(why)) {  // calls that contradict each other, or the end of the tree
    Failed(why);
    return;
  }
  state_ = State::kDown;
  why_ = why;
  LetGo();
}

void CauWindow::OnCauTreeUp(CauTreeId, const std::vector<NodeId>& participants) {
  if (state_ == State::kFailed) return;
  if (participants.size() < node_.placement().nodes) {
    Failed(absl::UnavailableError(
        fmt::format("{} of the {} nodes are left in the tree that was set up again after: {}",
                    participants.size(), node_.placement().nodes, std::string(why_.message()))));
    return;
  }
  ++ups_;
  state_ = State::kAgreeing;
  numbered_ = false;
  early_.clear();
  Rank& leader = node_.local_rank(0);
  if (participants.front() == node_.hub().context().node) return;  // it waits for the others first
  leader.Do<&CauWindow::Propose>(leader.Shared(node_.host().cau_send), this, ups_);
}

// The first operation of a kind that this leader has neither received nor given.
std::uint32_t CauWindow::Missing(int kind) const {
  const auto k = static_cast<std::size_t>(kind);
  std::uint32_t first = waiting_[k].client ? waiting_[k].sequence : given_[k];
  const auto arrived = [&](const Arrived& a) { return a.sequence == first; };
  while (std::any_of(arrived_[k].begin(), arrived_[k].end(), arrived)) ++first;
  return first;
}

CauPayload CauWindow::MissingOfBothKinds() const {
  CauPayload missing;
  const std::uint32_t first[] = {Missing(0), Missing(1)};
  missing.size = sizeof(first);
  std::memcpy(missing.bytes.data(), first, sizeof(first));
  return missing;
}

void CauWindow::Propose(std::uint64_t generation) {
  if (Stale(generation, State::kAgreeing)) return;
  CauPort& cau = *node_.hub().cau();
  const NodeId root = cau.Participants(tree_).front();
  Failed(cau.Reduce(tree_, 0, root, ReduceOp::kMin, OperandType::kUint32, MissingOfBothKinds()));
}

void CauWindow::Receive(CauOperation operation, std::uint32_t sequence, const CauPayload& payload) {
  if (numbered_) {
    const std::int64_t number = sequence + origin_[static_cast<std::size_t>(operation)];
    return Queue(operation, static_cast<std::uint32_t>(number), payload);
  }
  if (state_ != State::kAgreeing) return;  // it failed again meanwhile; this will be given again
  if (sequence > 0) {
    early_.push_back({operation, sequence, payload});
  } else if (operation == CauOperation::kMulticast) {
    Agreed(payload);
  } else {
    proposed_ = payload;
    Rank& leader = node_.local_rank(0);
    leader.Do<&CauWindow::Decide>(leader.Shared(node_.host().cau_receive + node_.host().cau_send),
                                  this, ups_);
  }
}

// The root of the agreement.
void CauWindow::Decide(std::uint64_t generation) {
  if (Stale(generation, State::kAgreeing)) return;
  CauPayload first = MissingOfBothKinds();
  Combine(ReduceOp::kMin, OperandType::kUint32, 2, proposed_.bytes.data(), first.bytes.data());
  if (!Failed(node_.hub().cau()->Multicast(tree_, 0, first))) Agreed(first);
}

void CauWindow::Agreed(const CauPayload& payload) {
  std::uint32_t first[2];
  std::memcpy(first, payload.bytes.data(), sizeof(first));
  for (const std::size_t kind : {0, 1}) {
    origin_[kind] = std::int64_t{first[kind]} - 1;  // 0 was the agreement
    if (first[kind] >= forgotten_[kind]) continue;
    Failed(absl::UnavailableError(fmt::format(
        "tree {} was set up again, but {} {} must be repeated and only the last {} calls are kept",
        tree_, kind == 0 ? "reduce" : "multicast", first[kind], kCallsKept)));
    return;
  }
  state_ = State::kAgreed;
  numbered_ = true;
  for (const Early& early : std::exchange(early_, {}))
    Receive(early.operation, early.sequence, early.payload);
  Time cost = node_.host().cau_receive;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (GoesAgain(kept_[i])) cost += node_.host().cau_send;
  }
  Rank& leader = node_.local_rank(0);
  leader.Do<&CauWindow::GoOn>(leader.Shared(cost), this, ups_);
}

void CauWindow::GoOn(std::uint64_t generation) {
  if (Stale(generation, State::kAgreed)) return;
  state_ = State::kUp;
  for (std::size_t i = 0; i < kept_.size() && state_ == State::kUp; ++i) {
    if (GoesAgain(kept_[i])) Give(kept_[i]);
  }
  if (held_) Enter(0);
}

}  // namespace percs
