// The part of FabricRun that lets a daemon take the place of a lost one within the run
// (docs/semantics.md rule 21, docs/protocol.md "Rejoining").
//
// A daemon is in the place (TakeBack) -> the survivors that share links with it open streams to it
// (PeerBack) -> it is configured, builds its hubs, which are all lost yet, and reaches the
// survivors (Ready) -> no daemon runs a window: its rejoin is a command at the end of that window,
// journalled before any message about it -> every daemon's next grant carries it. One at a time; if
// another daemon is lost meanwhile, it begins again.
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
  const bool first = losses_.any_declared() || commands_.any_retaken();
  if (!going_on() || rejoin_.under_way() || first) return;
  if (!losses_.places().empty()) Hurry();
  for (const auto& [process, loss] : losses_.places()) {
    if (port_->Present(process)) return BeginRejoin(process);
  }
}

void FabricRun::BeginRejoin(std::uint32_t process) {
  rejoin_.Begin(process, recovery_.controllers);
  for (const auto& [peer, channels] : SharedChannels(topology(), setup_.placement, process)) {
    if (IsLost(peer)) continue;
    auto message = port_->Prepare(peer);
    *message->mutable_peer_back()->mutable_peer() = port_->Describe(process);
    message->mutable_peer_back()->set_attempt(rejoin_.attempt());
    port_->Send(peer, std::move(message));
    rejoin_.AwaitStream(peer);
  }
  ConfigureRejoined();
}

void FabricRun::OnPeerBack(std::uint32_t survivor, const v1::PeerBackReply& reply) {
  if (rejoin_.OnStream(survivor, reply.attempt())) ConfigureRejoined();
}

void FabricRun::ConfigureRejoined() {
  if (!rejoin_.streams_open()) return;
  rejoin_.Configured();
  SendConfigure(rejoin_.process());
}

void FabricRun::OnJoined(const v1::Ready& ready) {
  if (rejoin_.IsReady(ready.attempt())) SubmitRejoin();
}

void FabricRun::SubmitRejoin() {
  const v1::Peer peer = port_->Describe(rejoin_.process());
  Command command;
  command.done = [this, attempt = rejoin_.attempt()](const absl::StatusOr<Time>& at) {
    if (!at.ok()) OnRejoinRefused(attempt, at.status());
  };
  v1::RejoinedDaemon* message = command.record.mutable_rejoin();
  message->set_process(peer.process());
  message->set_name(peer.name());
  message->set_incarnation(peer.incarnation());
  message->set_loss(losses_.places().at(peer.process()));
  commands_.Add(std::move(command));
  Soon();
}

// If the journal is full now, it may have room later; the daemon waits for it.
void FabricRun::OnRejoinRefused(std::uint64_t attempt, const absl::Status& why) {
  if (!rejoin_.IsAttempt(attempt)) return;
  const std::uint32_t process = rejoin_.process();
  if (rejoin_.Refused()) {
    spdlog::error("run {}: process {} cannot rejoin: {}", setup_.number, process,
                  std::string(why.message()));
  }
  if (absl::IsResourceExhausted(why) || absl::IsUnavailable(why)) {
    timers_.rejoin.Set(kRejoinAgain, [this, attempt] {
      if (rejoin_.IsAttempt(attempt)) SubmitRejoin();
    });
    return;
  }
  losses_.GivePlace(process);
  rejoin_.End();
}

// `process` is lost. Survivors drop the stream to the daemon that was rejoining, and that one
// builds its hubs again.
void FabricRun::AbandonRejoin(std::uint32_t process) {
  if (!rejoin_.under_way()) return;
  const std::uint32_t joining = rejoin_.process();
  commands_.ForgetRejoin(joining);
  rejoin_.End();
  for (const auto& [peer, channels] : SharedChannels(topology(), setup_.placement, joining)) {
    if (peer == process || IsLost(peer)) continue;
    auto message = port_->Prepare(peer);
    message->mutable_peer_lost()->set_process(joining);
    port_->Send(peer, std::move(message));
  }
  if (joining == process) return;
  auto message = port_->Prepare(joining);
  message->mutable_drop()->set_run(setup_.number);
  port_->Send(joining, std::move(message));
}

absl::StatusOr<Time> FabricRun::TakeRejoin(const Command& command, Time boundary) {
  const v1::RejoinedDaemon& message = command.record.rejoin();
  const auto rejoined = manager_->Readmit(message.loss(), message.name(), boundary);
  if (!rejoined.ok()) return rejoined.status();
  spdlog::warn(
      "run {}: {} rejoins with {} hubs of loss {} at {} of virtual time, as incarnation {}",
      setup_.number, message.name(), rejoined->nodes.size(), message.loss(), FormatTime(boundary),
      rejoined->incarnation);
  losses_.ReadmitNodes(rejoined->nodes);
  if (message.has_process()) Welcome(message.process());
  manager_->Rejoin(*rejoined);
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (IsLost(p)) continue;
    bool has_them = false;
    for (const NodeId node : rejoined->nodes)
      has_them |= setup_.placement.process_of_node[node] == p;
    v1::RejoinCommand* rejoin = pending_[p].add_rejoined();
    RejoinToProto(*rejoined, has_them, rejoin);
    if (message.has_process()) rejoin->set_process(message.process());
    master_.Wake(p, boundary);
  }
  ReportManager();
  TakeBack();
  return boundary;
}

const RejoinedHubs* FabricRun::Rejoined(std::uint32_t process) const {
  const RejoinedHubs* last = nullptr;
  for (const RejoinedHubs& rejoined : manager_->losses().rejoined()) {
    if (setup_.placement.process_of_node[rejoined.nodes.front()] == process) last = &rejoined;
  }
  return last;
}

// Input for the previous daemon of this place is dropped.
void FabricRun::Welcome(std::uint32_t process) {
  rejoin_.End();
  losses_.GivePlace(process);
  master_.Rejoin(process);
  ForgetPending(process);
  programs_.Forget(process);
  FollowHold();
  streams_.batches.Forget(process);
}

}  // namespace percs
