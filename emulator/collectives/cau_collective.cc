#include "emulator/collectives/cau_collective.h"

#include <cstring>

#include "emulator/runtime/node_runtime.h"
#include "fmt/format.h"

namespace percs {
namespace {

CauPayload Payload(const std::uint8_t* bytes, std::uint64_t size) {
  CauPayload payload;
  payload.size = static_cast<std::uint8_t>(size);
  if (bytes && size > 0) std::memcpy(payload.bytes.data(), bytes, size);
  return payload;
}

}  // namespace

CauCollective::CauCollective(Rank& rank, const TaskGroup& leaders, Operation operation,
                             std::size_t window)
    : rank_(rank),
      leaders_(leaders),
      me_(leaders.IndexOf(rank.number())),
      operation_(operation),
      window_(rank.node().cau_window(window)) {}

void CauCollective::Reset(const CollectiveCall& call) {
  PERCS_CHECK(!running_ && call.bytes <= kCauPayloadMax);
  call_ = call;
}

void CauCollective::Start() {
  running_ = true;
  const bool at_root = me_ == call_.root;
  if (operation_ == Operation::kBroadcast) {
    if (leaders_.size == 1) return Finish();
    return at_root ? window_->Multicast(Payload(call_.output, call_.bytes), this)
                   : window_->AwaitMulticast(this);
  }
  if (leaders_.size == 1) {
    if (call_.output) std::memmove(call_.output, call_.input, call_.bytes);
    return Finish();
  }
  if (at_root) {
    return window_->AwaitReduced(call_.op, call_.type, static_cast<std::uint8_t>(call_.bytes),
                                 this);
  }
  const NodeId root = rank_.node().placement().NodeOf(leaders_.task(call_.root));
  window_->Contribute(root, call_.op, call_.type, Payload(call_.input, call_.bytes), this);
}

void CauCollective::OnCauReceived(const CauPayload& payload) {
  if (payload.size != call_.bytes) {
    return rank_.node().Report(absl::FailedPreconditionError(fmt::format(
        "{} on the tree of CAUs: task {} got {} bytes and expects {}: the counts disagree",
        OperationName(operation_), rank_.number(), payload.size, call_.bytes)));
  }
  if (call_.output && operation_ == Operation::kReduce) {
    const CauPayload mine =
        Payload(call_.input, call_.bytes);  // input and output may be one buffer
    std::memcpy(call_.output, payload.bytes.data(), call_.bytes);
    Combine(call_.op, call_.type, call_.bytes / OperandBytes(call_.type), mine.bytes.data(),
            call_.output);
  } else if (call_.output) {
    std::memcpy(call_.output, payload.bytes.data(), call_.bytes);
  }
  Finish();
}

void CauCollective::Finish() {
  running_ = false;
  call_.done(call_.client);
}

std::string CauCollective::Waits() const {
  if (!running_) return "";
  return fmt::format("task {} waits in {} as {} of a {}", rank_.number(), window_->LastCall(),
                     me_ == call_.root ? "root" : "a participant", OperationName(operation_));
}

}  // namespace percs
