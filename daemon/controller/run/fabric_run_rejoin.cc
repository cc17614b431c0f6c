// The part of FabricRun that lets a daemon take the place of a lost one within the run
// (docs/semantics.md rule 21, docs/protocol.md "Rejoining").
//
// A daemon is in the place (TakeBack) -> the survivors that share links with it open streams to it
// (PeerBack) -> it is configured, builds its hubs, which are all lost yet, and reaches the
// survivors (Ready) -> nobody is running: that it is back is a command at the end of that window,
// journalled before anybody hears of it -> every daemon's next grant says so. One at a time;
// whoever is lost meanwhile makes it begin again.
#include <utility>

#include "daemon/controller/run/fabric_run.h"
#include "daemon/sync/placement.h"
#include "daemon/sync/rejoin_codec.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kRejoinAgain(1'000);

}  // namespace

void FabricRun::TakeBack() {
  if (!going_on() || joining_ || !losses_.empty()) return;
  for (const auto& [process, loss] : lost_as_) {
    if (port_->Present(process)) return BeginRejoin(process);
  }
}

void FabricRun::BeginRejoin(std::uint32_t process) {
  joining_ = Joining{process, recoveries_ << 32 | ++attempts_, {}, false};
  for (const auto& [peer, channels] : SharedChannels(topology(), placement_, process)) {
    if (master_.lost(static_cast<int>(peer))) continue;
    auto message = port_->Prepare(peer);
    *message->mutable_peer_back()->mutable_peer() = port_->Describe(process);
    message->mutable_peer_back()->set_attempt(joining_->attempt);
    port_->Send(peer, std::move(message));
    joining_->awaited.insert(peer);
  }
  ConfigureRejoined();
}

void FabricRun::OnPeerBack(std::uint32_t survivor, const v1::PeerBackReply& reply) {
  if (!joining_ || reply.attempt() != joining_->attempt || joining_->awaited.erase(survivor) == 0)
    return;
  ConfigureRejoined();
}

void FabricRun::ConfigureRejoined() {
  if (!joining_->awaited.empty()) return;
  joining_->configured = true;
  SendConfigure(joining_->process);
}

void FabricRun::OnJoined(const v1::Ready& ready) {
  if (joining_->configured && ready.attempt() == joining_->attempt) SubmitRejoin();
}

void FabricRun::SubmitRejoin() {
  const v1::Peer peer = port_->Describe(joining_->process);
  Command command;
  command.done = [this, attempt = joining_->attempt](absl::StatusOr<Time> at) {
    if (!at.ok()) OnRejoinRefused(attempt, at.status());
  };
  v1::RejoinedDaemon* message = command.record.mutable_rejoin();
  message->set_process(peer.process());
  message->set_name(peer.name());
  message->set_incarnation(peer.incarnation());
  message->set_loss(lost_as_[peer.process()]);
  commands_.push_back(std::move(command));
  Soon();
}

// What the journal does not take now, it may take later; the daemon waits for it.
void FabricRun::OnRejoinRefused(std::uint64_t attempt, const absl::Status& why) {
  if (!joining_ || joining_->attempt != attempt) return;
  const std::uint32_t process = joining_->process;
  if (!joining_->refused) {
    spdlog::error("run {}: process {} cannot rejoin: {}", number_, process,
                  std::string(why.message()));
  }
  joining_->refused = true;
  if (absl::IsResourceExhausted(why) || absl::IsUnavailable(why)) {
    rejoin_timer_.Set(kRejoinAgain, [this, attempt] {
      if (joining_ && joining_->attempt == attempt) SubmitRejoin();
    });
    return;
  }
  lost_as_.erase(process);
  joining_.reset();
}

// `process` is lost. Survivors forget the stream to the one that was on its way, and that one
// builds its hubs again.
void FabricRun::AbandonRejoin(std::uint32_t process) {
  if (!joining_) return;
  const std::uint32_t joining = joining_->process;
  commands_.remove_if([joining](const Command& command) {
    return command.record.has_rejoin() && command.record.rejoin().process() == joining;
  });
  joining_.reset();
  for (const auto& [peer, channels] : SharedChannels(topology(), placement_, joining)) {
    if (peer == process || master_.lost(static_cast<int>(peer))) continue;
    auto message = port_->Prepare(peer);
    message->mutable_peer_lost()->set_process(joining);
    port_->Send(peer, std::move(message));
  }
  if (joining == process) return;
  auto message = port_->Prepare(joining);
  message->mutable_drop()->set_run(number_);
  port_->Send(joining, std::move(message));
}

absl::StatusOr<Time> FabricRun::TakeRejoin(const Command& command, Time boundary) {
  const v1::RejoinedDaemon& message = command.record.rejoin();
  const auto rejoined = manager_->Readmit(message.loss(), message.name(), boundary);
  if (!rejoined.ok()) return rejoined.status();
  spdlog::warn(
      "run {}: {} rejoins with {} hubs of loss {} at {} of virtual time, as incarnation {}",
      number_, message.name(), rejoined->nodes.size(), message.loss(), FormatTime(boundary),
      rejoined->incarnation);
  for (const NodeId node : rejoined->nodes) lost_nodes_.erase(node);
  if (message.has_process()) Welcome(message.process());
  manager_->Rejoin(*rejoined);
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (master_.lost(static_cast<int>(p))) continue;
    bool has_them = false;
    for (const NodeId node : rejoined->nodes) has_them |= placement_.process_of_node[node] == p;
    v1::RejoinCommand* rejoin = pending_[p].add_rejoined();
    RejoinToProto(*rejoined, has_them, rejoin);
    if (message.has_process()) rejoin->set_process(message.process());
    master_.Wake(static_cast<int>(p), boundary);
  }
  ReportManager();
  TakeBack();
  return boundary;
}

const RejoinedHubs* FabricRun::Rejoined(std::uint32_t process) const {
  const RejoinedHubs* last = nullptr;
  for (const RejoinedHubs& rejoined : manager_->losses().rejoined()) {
    if (placement_.process_of_node[rejoined.nodes.front()] == process) last = &rejoined;
  }
  return last;
}

// Nothing of what was for the one before is for this one.
void FabricRun::Welcome(std::uint32_t process) {
  const int p = static_cast<int>(process);
  joining_.reset();
  lost_as_.erase(process);
  master_.Rejoin(p);
  ForgetPending(process);
  programs_.Forget(process);
  FollowHold();
  batches_.Forget(process);
}

}  // namespace percs
