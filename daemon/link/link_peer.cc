#include "daemon/link/link_peer.h"

#include <chrono>
#include <utility>

#include "emulator/base/check.h"
#include "fmt/format.h"
#include "proto/process/bytes_of.h"
#include "proto/process/grpc_status.h"
#include "proto/process/version.h"

namespace percs {
namespace {

// Credits and delays of links let a process be a handful of windows ahead of what its peer has
// acknowledged, never this far.
constexpr std::chrono::milliseconds kRedialAfter(20), kRedialFailedAfter(500);

// The peer said no, and will say it again.
bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kUnimplemented || absl::IsDataLoss(status);
}

}  // namespace

LinkPeer::LinkPeer(ProcessLock* lock, LinkTransport* transport, const LinkIdentity& self,
                   const LinkPeerSpec& spec, const LinkEvents& events)
    : Endpoint(kUnacknowledgedMax),
      lock_(lock),
      transport_(transport),
      self_(self),
      spec_(spec),
      events_(events),
      redial_(lock),
      decoder_(spec.open_packets_max) {}

void LinkPeer::Dial() {
  if (!line_) line_ = transport_->LineTo(lock_, spec_.address, self_.credentials);
  dialled_fast_ = fail_fast_;
  Begin(line_->Open(/*wait=*/!fail_fast_));
}

void LinkPeer::FailFast() {
  if (!std::exchange(fail_fast_, true)) Break();
}

void LinkPeer::FillHello(v1::LinkHello* hello) const {
  *hello->mutable_versions() = OurVersions();
  hello->set_fabric(self_.fabric);
  hello->set_run(self_.run);
  hello->set_process(self_.process);
  hello->set_peer(spec_.process);
  hello->set_incarnation(self_.incarnation);
}

absl::Status LinkPeer::CheckHello(const v1::LinkHello& hello) const {
  const std::string who = fmt::format("process {}", hello.process());
  if (absl::Status status = CheckVersions(hello.versions(), who); !status.ok()) return status;
  const auto wrong = [&](const char* what, std::uint64_t expected, std::uint64_t got) {
    return absl::FailedPreconditionError(
        fmt::format("miswired link stream: expected {} {}, got {} (process {} calls process {})",
                    what, expected, got, hello.process(), hello.peer()));
  };
  if (hello.fabric() != self_.fabric) return wrong("fabric", self_.fabric, hello.fabric());
  if (hello.run() != self_.run) return wrong("run", self_.run, hello.run());
  if (hello.peer() != self_.process) {
    return wrong("a peer of process", self_.process, hello.peer());
  }
  if (hello.process() != spec_.process) return wrong("process", spec_.process, hello.process());
  if (hello.incarnation() != spec_.incarnation) {
    return wrong("incarnation", spec_.incarnation, hello.incarnation());
  }
  return absl::OkStatus();
}

void LinkPeer::Send(std::string batch) {
  std::unique_ptr<v1::LinkMessage> message = session().Prepare();
  message->set_batch(std::move(batch));
  message->set_carried(carried_sent_);
  session().Send(std::move(message));
}

absl::Status LinkPeer::OnMessage(v1::LinkMessage& message) {
  const bool in_order =
      message.carried() == carried_taken_ && (arrived_.empty() || arrived_.back().decoded);
  Received& arrived = arrived_.emplace_back();
  if (!in_order) {
    arrived.batch = std::move(*message.mutable_batch());
  } else {
    absl::Status status = decoder_.Decode(BytesOf(message.batch()), &arrived.outbox);
    if (!status.ok()) {
      status = absl::InvalidArgumentError(
          fmt::format("from process {}: {}", spec_.process, std::string(status.message())));
      events_.failure(status);
      return status;
    }
    arrived.decoded = true;
  }
  events_.progress();
  return absl::OkStatus();
}

absl::Status LinkPeer::Take(std::uint64_t number, const TakeOutbox& take) {
  PERCS_CHECK(Arrived(number));
  while (taken_ < number) {
    ++taken_;
    Received next = std::move(arrived_.front());
    arrived_.pop_front();
    if (absl::Status status = HandOver(std::move(next), take); !status.ok()) {
      return absl::InvalidArgumentError(fmt::format("batch {} of process {}: {}", taken_,
                                                    spec_.process, std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status LinkPeer::TakeCarried(std::string batch, const TakeOutbox& take) {
  ++carried_taken_;
  absl::Status status = HandOver({.batch = std::move(batch)}, take);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format("a batch of process {} in a grant: {}",
                                                spec_.process, std::string(status.message())));
}

absl::Status LinkPeer::HandOver(Received received, const TakeOutbox& take) {
  absl::Status status;
  if (!received.decoded) status = decoder_.Decode(BytesOf(received.batch), &received.outbox);
  return status.ok() ? take(std::move(received.outbox)) : status;
}

void LinkPeer::OnReached() {
  reached_ = true;
  fail_fast_ = false;
  why_apart_.clear();
  events_.progress();
}

void LinkPeer::OnLost(const absl::Status& status) {
  if (IsRefusal(status)) {
    return events_.failure(
        absl::Status(status.code(), fmt::format("link to process {} at {}: {}", spec_.process,
                                                spec_.address, std::string(status.message()))));
  }
  if (!dials()) return;
  if (dialled_fast_ && IsUnreachable(status)) why_apart_ = std::string(status.message());
  redial_.Set(fail_fast_ ? kRedialFailedAfter : kRedialAfter, [this] {
    if (!left() && !has_stream()) Dial();
  });
}

}  // namespace percs
