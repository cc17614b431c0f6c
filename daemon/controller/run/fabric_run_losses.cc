// The part of FabricRun that continues without a daemon that is gone (docs/semantics.md rule 21,
// docs/faults.md).
//
// Declared (Lose) -> the survivors that share links with it take in what they have of it and say
// how far that is, and finish the window -> no daemon runs a window: the loss is a command at the
// end of that window, journalled with the virtual times from which on nothing of the lost hubs
// arrived -> its links are down, network management continues without it.
#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"
#include "daemon/sync/placement.h"
#include "fmt/format.h"
#include "proto/scenario/commands.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::chrono::milliseconds kJournalAgain(1'000);
// A run that is being configured ends when daemons have not reached each other for so long.
constexpr double kStreamsWithinSeconds = 20;

}  // namespace

void FabricRun::Lose(std::uint32_t process, const std::string& name, std::uint64_t incarnation,
                     const std::string& why) {
  Hurry();
  AbandonRejoin(process);
  streams_.unreached.Forget(process);
  if (IsLost(process)) return TakeBack();
  Declare(process, name, incarnation, why);
  Continue();
}

void FabricRun::Declare(std::uint32_t process, const std::string& name, std::uint64_t incarnation,
                        const std::string& why) {
  // Of a run that has ended hubs can be asked no more.
  if (phase_ == Phase::kEnded)
    return Fail(absl::UnavailableError(fmt::format("lost {}: {}", name, why)));
  const bool last = std::count(setup_.placement.process_of_node.begin(),
                               setup_.placement.process_of_node.end(), process) > 0 &&
                    living() == 1;
  if (!going_on() || last) {
    return Fail(
        absl::UnavailableError(fmt::format("lost {}: {}{}", name, why,
                                           last ? "; it was the last daemon with hubs"
                                                : ", before the run started or after it ended")));
  }
  v1::SavedLoss loss;
  loss.set_process(process);
  loss.set_name(name);
  loss.set_incarnation(incarnation);
  // In a paced run the loss may take effect after the end of the last span: its hubs have not run
  // in between.
  loss.set_window_from(master_.unreported_from(process));
  loss.set_why(why);
  LeaveOut(process);
  queries_.Lose(process);
  losses_.LoseSurvivor(process);
  BeginLoss(loss);
}

void FabricRun::LeaveOut(std::uint32_t process) {
  master_.Lose(process);
  programs_.Lose(process);
  FollowHold();
}

bool FabricRun::HeldBy(std::uint32_t process) const {
  return master_.IsRunning(process) || final_.Awaits(process) || queries_.Awaits(process) ||
         losses_.Awaits(process);
}

bool FabricRun::Awaits(std::uint32_t process) const {
  return HeldBy(process) || rejoin_.Awaits(process);
}

absl::Status FabricRun::WaitsFor(std::uint32_t process) const {
  const auto missing = port_->Missing(process);
  if (!missing) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("run {} waits for {}", setup_.number, *missing));
}

absl::Status FabricRun::Waiting() const {
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    if (!HeldBy(p)) continue;
    if (absl::Status status = WaitsFor(p); !status.ok()) return status;
  }
  return ended() ? absl::OkStatus() : Apart();
}

// A daemon that is missing explains why others do not reach it.
absl::Status FabricRun::Apart() const {
  const auto takes_part = [this](std::uint32_t process) {
    return process < setup_.daemons() && !IsLost(process);
  };
  for (const std::uint32_t process : streams_.unreached.processes()) {
    if (!takes_part(process)) continue;
    if (absl::Status status = WaitsFor(process); !status.ok()) return status;
  }
  const std::string text = streams_.unreached.Text([&](std::uint32_t process) {
    return takes_part(process) && port_->Connected(process) ? port_->Describe(process) : v1::Peer();
  });
  if (text.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("run {} waits for streams between daemons: {}", setup_.number, text));
}

void FabricRun::RefuseWaiting() {
  const absl::Status why = Waiting();
  if (why.ok()) return;
  if (phase_ == Phase::kConfiguring) {
    if (streams_.unreached.longest_seconds() >= kStreamsWithinSeconds) Fail(why);
    return;
  }
  queries_.RefuseAll(why);
  for (Command& command : commands_.TakeAsked()) command.done(why);
  Continue();
}

std::uint32_t FabricRun::living() const {
  std::uint32_t count = 0;
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) count += !IsLost(p);
  return count;
}

void FabricRun::BeginLoss(const v1::SavedLoss& saved) {
  recovery_.touched = true;
  streams_.batches.Lose(saved.process());
  std::set<std::uint32_t> survivors, peers = streams_.cables.PeersOf(saved.process());
  for (const auto& [peer, channels] : SharedChannels(topology(), setup_.placement, saved.process()))
    peers.insert(peer);
  for (const std::uint32_t peer : peers) {
    if (IsLost(peer)) continue;
    auto message = port_->Prepare(peer);
    message->mutable_peer_lost()->set_process(saved.process());
    message->mutable_peer_lost()->set_batches(streams_.batches.Last(saved.process(), peer));
    port_->Send(peer, std::move(message));
    survivors.insert(peer);
  }
  losses_.Declare(saved, std::move(survivors));
}

void FabricRun::OnPeerLost(std::uint32_t process, const v1::PeerLostReply& reply) {
  if (!losses_.OnAnswer(process, reply)) return;
  recovery_.touched = true;
  Continue();
}

void FabricRun::TakeLosses() {
  const Time boundary = Now();
  std::uint32_t number = losses_.count();
  for (const Loss& loss : losses_.Take()) {
    Command command;
    command.done = [this, loss](const absl::StatusOr<Time>& at) {
      if (!at.ok()) OnLossRefused(loss, at.status());
    };
    *command.record.mutable_lose() = losses_.CommandFor(loss, ++number, boundary, streams_.batches);
    commands_.Add(std::move(command));
  }
  TakeCommands(boundary);
}

// A loss that is not in the journal would be missing in its replay: virtual time waits for room.
void FabricRun::OnLossRefused(const Loss& loss, const absl::Status& why) {
  if (!absl::IsResourceExhausted(why) && !absl::IsUnavailable(why)) return Fail(why);
  if (losses_.PutBack(loss, why)) {
    spdlog::error("run {}: virtual time is held: the loss of {} is not in the journal: {}",
                  setup_.number, loss.saved.name(), std::string(why.message()));
  }
  timers_.pace.Set(kJournalAgain, [this] { Step(); });
}

// Also of losses in a replayed journal, where no daemon is lost but hubs stop as they did then.
absl::StatusOr<Time> FabricRun::TakeLoss(const Command& command, Time boundary) {
  const v1::LostDaemon& message = command.record.lose();
  const LostHubs lost = LostFromProto(message, boundary);
  spdlog::warn("run {}: lost {} at {} of virtual time: {}; its {} nodes are lost", setup_.number,
               message.name(), FormatTime(boundary), message.why(), message.nodes_size());
  manager_->Lose(lost);
  losses_.TakeEffect(message);
  ReportManager();
  RouteActions(ActionsOf(lost, topology()));
  if (message.has_process()) {
    streams_.cables.Forget(message.process());
    ForgetPending(message.process());  // also commands, which no grant will deliver
    return boundary;
  }
  for (std::uint32_t p = 0; p < setup_.daemons(); ++p) {
    *pending_[p].add_lost() = message;
    master_.Wake(p, boundary);
  }
  return boundary;
}

}  // namespace percs
