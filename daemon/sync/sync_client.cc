#include "daemon/sync/sync_client.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Reports, answers and acknowledgements of a daemon that waits for a lost stream.
constexpr std::chrono::milliseconds kRetryAfter(50);
// For a place: first, and at most.
constexpr std::chrono::milliseconds kAskAgainAfter(500), kAskAgainMax(4'000);

// Trying again may help.
bool IsAbsence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsUnknown(status) || status.ok();
}

}  // namespace

SyncClient::SyncClient(ProcessLock* lock, std::unique_ptr<SyncTransport> transport,
                       SyncClientOptions options, Events events)
    : Endpoint(kUnacknowledgedMax),
      clock_(lock->clock()),
      transport_(std::move(transport)),
      options_(std::move(options)),
      events_(std::move(events)),
      retry_(lock),
      give_up_(lock) {}

void SyncClient::Start() {
  away_since_ = clock_.Now();
  Join();
}

void SyncClient::Stop() {
  stopped_ = true;
  Leave();
  retry_.Cancel();
  give_up_.Cancel();
}

void SyncClient::Join() {
  v1::JoinRequest request;
  *request.mutable_versions() = OurVersions();
  if (options_.place) request.set_place(*options_.place);
  request.set_name(options_.name);
  request.set_pid(options_.pid);
  request.set_link_address(options_.link_address);
  request.set_metrics_address(options_.metrics_address);
  request.set_incarnation(options_.incarnation);
  transport_->Join(request, [this](const absl::Status& status, const v1::JoinReply& reply) {
    OnJoinReply(status, reply);
  });
}

void SyncClient::OnJoinReply(const absl::Status& status, const v1::JoinReply& reply) {
  if (stopped_) return;
  const bool waits = options_.spare || options_.place;
  if (waits && absl::IsResourceExhausted(status))
    return WaitForPlace(std::string(status.message()));
  if (!status.ok()) return RetryOrGiveUp(status);
  joined_ = true;
  waiting_for_.clear();
  process_ = reply.process();
  fabric_ = reply.fabric();
  last_answer_.clear();
  events_.joined();
  Dial();
}

// The controller is reachable, so it does not give up.
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

void SyncClient::Dial() { Begin(transport_->Open()); }

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
    if (joined_) away_since_ = clock_.Now();
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
  const double seconds = std::chrono::duration<double>(clock_.Now() - away_since_).count();
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
