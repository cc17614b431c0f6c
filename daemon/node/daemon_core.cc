#include "daemon/node/daemon_core.h"

#include <utility>

#include "daemon/config/log.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

// Messages that the controller has not acknowledged; beyond that programs wait, and reports have
// room.
constexpr std::size_t kSubmissionsMax = 1024;
// Between two slices of a window: threads that wait for the lock get it before it is taken again.
constexpr std::chrono::milliseconds kBreath(1);

}  // namespace

DaemonCore::DaemonCore(ProcessLock* lock, Around around)
    : around_(std::move(around)),
      mesh_(lock,
            {[this] { host_.Progress(); },
             [this](const absl::Status& status) { host_.Fail(status); }, around_.admit,
             [this](const std::vector<v1::UnreachablePeer>& peers) {
               if (sync_->connected()) host_.TellUnreachable(peers);
             }},
            around_.links),
      programs_(lock, {[this] { return sync_->session().unacknowledged() < kSubmissionsMax; },
                       [this] { return sync_->session().Prepare(); },
                       [this](std::unique_ptr<v1::DaemonMessage> m) {
                         sync_->session().Send(std::move(m));
                       },
                       around_.admit, [this] { host_.OnRanks(); }}),
      host_(&mesh_, &programs_,
            {[this] { return sync_->session().Prepare(); },
             [this](std::unique_ptr<v1::DaemonMessage> m) { sync_->session().Send(std::move(m)); },
             [this](std::function<void()> then) { slice_.Set(kBreath, std::move(then)); },
             [lock] { return lock->clock().Now(); }, around_.carried_bytes_max},
            around_.tap),
      lock_(lock),
      anew_(lock),
      slice_(lock) {}

void DaemonCore::Start(SyncClientOptions sync) {
  options_ = std::move(sync);
  options_.incarnation = around_.incarnations();
  Join();
}

void DaemonCore::Join() {
  sync_ = std::make_shared<SyncClient>(
      lock_, around_.controller(), options_,
      SyncClient::Events{
          [this] {
            spdlog::info("joined {} as process {}", options_.controller, sync_->process());
          },
          [this](v1::ControllerMessage& message) { return OnControllerMessage(message); },
          [this](const absl::Status& status) { OnGone(status); },
          [this](bool there) {
            around_.reached(there);
            if (there) programs_.Submit();
          }});
  sync_->Start();
}

// Messages of a daemon that was declared lost are ignored. Another incarnation may have its place.
void DaemonCore::OnGone(const absl::Status& status) {
  if (!absl::IsAborted(status)) return around_.end(status);
  spdlog::warn("{}", std::string(status.message()));
  host_.Drop(
      absl::UnavailableError("the controller declared this percsd lost, and its hubs are lost"));
  options_.incarnation = around_.incarnations();
  anew_.Set(std::chrono::milliseconds(0), [this] {  // no call uses the old one then
    if (stopped_) return;
    sync_->Stop();
    before_.push_back(std::move(sync_));
    Join();
  });
}

// The controller has checked the words.
void DaemonCore::Observe(const v1::Observe& observe) {
  if (!observe.log_level().empty() && !SetLogLevel(observe.log_level()).ok()) return;
  const auto detail = ParseMetricsDetail(observe.metrics_detail());
  if (!detail.ok()) return;
  for (const std::uint32_t node : observe.nodes()) metrics_detail_.some[node] = *detail;
}

absl::Status DaemonCore::OnControllerMessage(v1::ControllerMessage& message) {
  if (message.has_grant()) {
    host_.Grant(message.mutable_grant());
  } else if (message.has_configure()) {
    spdlog::info("run {}: building", message.configure().run());
    metrics_detail_.some.clear();  // other hubs may have their numbers now
    host_.Configure(message.configure(), LinkIdentity{sync_->fabric(), 0, options_.incarnation,
                                                      sync_->process(), options_.credentials});
    delete message.release_configure();  // it may be large, and no window needs it again
  } else if (message.has_peer_lost()) {
    host_.PeerLost(message.peer_lost());
  } else if (message.has_peer_back()) {
    host_.PeerBack(message.peer_back());
  } else if (message.has_break_links()) {
    mesh_.Break();
  } else if (message.has_ping()) {
    auto pong = sync_->session().Prepare();
    pong->mutable_pong();
    sync_->session().Send(std::move(pong));
  } else if (message.has_collect()) {
    host_.Collect(message.collect());
  } else if (message.has_drop()) {
    host_.Drop();
  } else if (message.has_endpoint_refused()) {
    programs_.Refuse(message.endpoint_refused());
  } else if (message.has_observe()) {
    Observe(message.observe());
  } else if (message.has_bye()) {
    around_.end(absl::OkStatus());
  }
  return absl::OkStatus();
}

void DaemonCore::Stop() {
  stopped_ = true;
  anew_.Cancel();
  slice_.Cancel();
  if (sync_) sync_->Stop();
  programs_.Leave();
  host_.Drop();
}

void DaemonCore::Forget() {
  sync_.reset();
  before_.clear();
}

}  // namespace percs
