#include "daemon/sync/sync_client.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/config/version.h"
#include "fmt/format.h"
#include "proto/security/channel.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Reports, answers and acknowledgements of a daemon that waits for a lost stream.
constexpr std::chrono::milliseconds kRetryAfter(50);
// For a place: first, and at most.
constexpr std::chrono::milliseconds kAskAgainAfter(500), kAskAgainMax(4'000);
constexpr std::chrono::seconds kJoinDeadline(5);

// Trying again may help.
bool IsAbsence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsUnknown(status) || status.ok();
}

}  // namespace

struct SyncClient::JoinCall {
  grpc::ClientContext context;
  v1::JoinRequest request;
  v1::JoinReply reply;
};

SyncClient::SyncClient(ProcessLock* lock, SyncClientOptions options, Events events)
    : Endpoint(kUnacknowledgedMax),
      lock_(lock),
      options_(std::move(options)),
      events_(std::move(events)),
      retry_(lock),
      give_up_(lock) {}

void SyncClient::Start() {
  stub_ =
      v1::Sync::NewStub(MakeChannel(options_.controller, options_.credentials, Role::kController));
  away_since_ = Clock::now();
  Join();
}

void SyncClient::Stop() {
  stopped_ = true;
  Leave();
  retry_.Cancel();
  give_up_.Cancel();
}

void SyncClient::Join() {
  auto call = std::make_shared<JoinCall>();
  *call->request.mutable_versions() = OurVersions();
  if (options_.place) call->request.set_place(*options_.place);
  call->request.set_name(options_.name);
  call->request.set_pid(static_cast<std::uint32_t>(getpid()));
  call->request.set_link_address(options_.link_address);
  call->request.set_metrics_address(options_.metrics_address);
  call->request.set_incarnation(options_.incarnation);
  call->context.set_deadline(std::chrono::system_clock::now() + kJoinDeadline);
  lock_->Add();
  stub_->async()->Join(&call->context, &call->request, &call->reply,
                       [this, call](const grpc::Status& status) mutable {
                         const LockGuard guard(lock_->mutex());
                         OnJoinReply(status, call->reply);
                         call.reset();  // its context has a share in the channel, as ClientStream's
                         lock_->Remove();
                       });
}

void SyncClient::OnJoinReply(const grpc::Status& status, const v1::JoinReply& reply) {
  if (stopped_) return;
  const bool waits = options_.spare || options_.place;
  if (waits && status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
    return WaitForPlace(status.error_message());
  if (!status.ok()) return RetryOrGiveUp(FromGrpc(status));
  joined_ = true;
  waiting_for_.clear();
  process_ = reply.process();
  fabric_ = reply.fabric();
  last_answer_.clear();
  events_.joined();
  Dial();
}

// The controller is there, so nothing is given up.
void SyncClient::WaitForPlace(const std::string& why) {
  if (waiting_for_ != why) {
    waiting_for_ = why;
    ask_again_after_ = kAskAgainAfter;
    spdlog::info("waiting for a place: {}: {}", options_.controller, why);
  }
  watching_ = false;
  give_up_.Cancel();
  retry_.Set(ask_again_after_, [this] { Join(); });
  ask_again_after_ = std::min(2 * ask_again_after_, kAskAgainMax);
}

void SyncClient::Dial() {
  auto* stream = new ClientStream<v1::DaemonMessage, v1::ControllerMessage>(lock_);
  stub_->async()->Session(stream->context(), stream);
  Begin(stream);
}

void SyncClient::RetryOrGiveUp(const absl::Status& status) {
  if (stopped_) return;
  if (!IsAbsence(status)) {
    stopped_ = true;
    return events_.gone(absl::Status(
        status.code(),
        fmt::format("controller at {}: {}", options_.controller, std::string(status.message()))));
  }
  events_.reached(false);
  last_answer_ = IsUnreachable(status) ? "" : std::string(status.message());
  if (!watching_) {
    // A dead controller's socket may hold the next connection attempt, so time is watched apart.
    watching_ = true;
    if (joined_) away_since_ = Clock::now();
    give_up_.Set(options_.timeout, [this] { Away(); });
  }
  retry_.Set(kRetryAfter, [this] {
    if (!joined_) return Join();
    if (!has_stream()) Dial();
  });
}

void SyncClient::Away() {
  watching_ = false;
  if (stopped_ || connected()) return;
  stopped_ = true;
  const double seconds = std::chrono::duration<double>(Clock::now() - away_since_).count();
  if (!last_answer_.empty()) {
    return events_.gone(absl::UnavailableError(fmt::format(
        "controller at {}: refused for {:.1f} s: {}", options_.controller, seconds, last_answer_)));
  }
  events_.gone(absl::UnavailableError(
      fmt::format("controller at {}: {} for {:.1f} s; is percs-controller running there?",
                  options_.controller, joined_ ? "no connection" : "no answer", seconds)));
}

void SyncClient::OnReached() {
  events_.reached(true);
  watching_ = false;
  give_up_.Cancel();
}

void SyncClient::FillHello(v1::SessionHello* hello) const {
  hello->set_fabric(fabric_);
  hello->set_process(process_);
  hello->set_incarnation(options_.incarnation);
}

absl::Status SyncClient::CheckHello(const v1::SessionHello& hello) const {
  if (hello.fabric() == fabric_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("this is not the controller that was joined: fabric {} instead of {}",
                  hello.fabric(), fabric_));
}

}  // namespace percs
