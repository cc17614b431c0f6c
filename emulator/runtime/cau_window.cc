#include "emulator/runtime/cau_window.h"

#include <algorithm>

#include "emulator/runtime/node_runtime.h"
#include "fmt/format.h"

namespace percs {

void CauWindow::Attach() { Failed(node_.hub().cau()->Attach(tree_, this)); }

bool CauWindow::Failed(const absl::Status& status) {
  if (status.ok()) return false;
  failed_ = true;
  node_.Report(absl::Status(status.code(), fmt::format("task {}: {}", node_.local_rank(0).number(),
                                                       std::string(status.message()))));
  return true;
}

std::string CauWindow::LastCall() const {
  const int kind = static_cast<int>(last_);
  return fmt::format("{} {} of tree {}", last_ == CauOperation::kReduce ? "reduce" : "multicast",
                     given_[static_cast<std::size_t>(kind)] - 1, tree_);
}

// --- Out ------------------------------------------------------------------------------------------

void CauWindow::Contribute(NodeId root, ReduceOp op, OperandType type, const CauPayload& payload,
                           Client* client) {
  Put({last_ = CauOperation::kReduce, given_[0]++, root, op, type, payload, client});
}

void CauWindow::Multicast(const CauPayload& payload, Client* client) {
  Put({last_ = CauOperation::kMulticast, given_[1]++, 0, ReduceOp::kNop, OperandType::kInt32, payload, client});
}

void CauWindow::Put(const Outgoing& outgoing) {
  outgoing_ = outgoing;
  Rank& leader = node_.local_rank(0);
  leader.Do<&CauWindow::Ready>(leader.Shared(node_.host().cau_send), this);
}

void CauWindow::Ready(std::uint64_t) {
  const Time wait = std::max<Time>(free_at_ - node_.now(), 0);
  node_.local_rank(0).Do<&CauWindow::Enter>(wait, this);
}

void CauWindow::Enter(std::uint64_t) {
  free_at_ = node_.now() + node_.host().cau_interval;
  if (failed_) return;
  CauPort& cau = *node_.hub().cau();
  const Outgoing& o = outgoing_;
  const absl::Status status = o.operation == CauOperation::kReduce
                                  ? cau.Reduce(tree_, o.sequence, o.root, o.op, o.type, o.payload)
                                  : cau.Multicast(tree_, o.sequence, o.payload);
  if (!Failed(status)) o.client->OnCauSent();
}

// --- In -------------------------------------------------------------------------------------------

void CauWindow::AwaitReduced(ReduceOp op, OperandType type, std::uint8_t bytes, Client* client) {
  last_ = CauOperation::kReduce;
  const std::uint32_t sequence = given_[0]++;
  if (failed_ || Failed(node_.hub().cau()->ExpectReduce(tree_, sequence, op, type, bytes))) return;
  Await(CauOperation::kReduce, sequence, client);
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
  arrived_[static_cast<std::size_t>(operation)].push_back({sequence, false, payload});
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
  if (failed_ || !waiting.client) return;
  const auto it = std::find_if(arrived.begin(), arrived.end(), [&](const Arrived& a) {
    return a.handled && a.sequence == waiting.sequence;
  });
  if (it == arrived.end()) return;
  const CauPayload payload = it->payload;
  arrived.erase(it);
  std::exchange(waiting.client, nullptr)->OnCauReceived(payload);
}

}  // namespace percs
