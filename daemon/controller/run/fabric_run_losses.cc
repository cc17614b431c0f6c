// The part of FabricRun that continues without a daemon that is gone (docs/semantics.md rule 21,
// docs/faults.md).
//
// Declared (Lose) -> the survivors that share links with it take in what they have of it and say
// how far that is, and finish the window -> nobody is running: the loss is a command at the end of
// that window, journalled with the virtual times from which on nothing of the lost hubs arrived ->
// its links are down, network management continues without it.
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
  AbandonRejoin(process);
  unreached_.Forget(process);
  if (master_.lost(static_cast<int>(process))) return TakeBack();
  // Of a run that has ended hubs can be asked no more.
  if (phase_ == Phase::kEnded)
    return Fail(absl::UnavailableError(fmt::format("lost {}: {}", name, why)));
  const bool last = std::count(placement_.process_of_node.begin(), placement_.process_of_node.end(),
                               process) > 0 &&
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
  loss.set_window_from(master_.running(static_cast<int>(process)) ? master_.window_from() : kNever);
  loss.set_why(why);
  LeaveOut(process);
  queries_.Lose(process);
  for (Loss& other : losses_) other.awaited.erase(process);
  BeginLoss(loss);
  if (!busy()) Step();
}

void FabricRun::LeaveOut(std::uint32_t process) {
  master_.Lose(static_cast<int>(process));
  programs_.Lose(process);
  FollowHold();
}

bool FabricRun::DeclaredLost(std::uint32_t process, std::uint64_t incarnation) const {
  const auto it = retaken_losses_.find(process);
  return it != retaken_losses_.end() && it->second == incarnation;
}

bool FabricRun::HeldBy(std::uint32_t process) const {
  return master_.running(static_cast<int>(process)) || final_.Awaits(process) ||
         queries_.Awaits(process) ||
         std::any_of(losses_.begin(), losses_.end(),
                     [&](const Loss& l) { return l.awaited.contains(process); });
}

bool FabricRun::Awaits(std::uint32_t process) const {
  return HeldBy(process) ||
         (joining_ && (joining_->process == process || joining_->awaited.contains(process)));
}

absl::Status FabricRun::WaitsFor(std::uint32_t process) const {
  const auto missing = port_->Missing(process);
  if (!missing) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("run {} waits for {}", number_, *missing));
}

absl::Status FabricRun::Waiting() const {
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    if (!HeldBy(p)) continue;
    if (absl::Status status = WaitsFor(p); !status.ok()) return status;
  }
  return ended() ? absl::OkStatus() : Apart();
}

absl::Status FabricRun::Apart() const {
  const std::string text = unreached_.Text([this](std::uint32_t process) {
    return process >= daemons_ || IsLost(process) ? v1::Peer() : port_->Describe(process);
  });
  if (text.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("run {} waits for streams between daemons: {}", number_, text));
}

void FabricRun::RefuseWaiting() {
  const absl::Status why = Waiting();
  if (why.ok()) return;
  if (phase_ == Phase::kConfiguring) {
    if (unreached_.longest_seconds() >= kStreamsWithinSeconds) Fail(why);
    return;
  }
  queries_.RefuseAll(why);
  std::list<Command> refused;
  for (auto it = commands_.begin(); it != commands_.end();) {
    const auto command = it++;
    if (!command->record.has_rejoin()) refused.splice(refused.end(), commands_, command);
  }
  for (Command& command : refused) command.done(why);
  if (!busy()) Step();
}

std::uint32_t FabricRun::living() const {
  std::uint32_t count = 0;
  for (std::uint32_t p = 0; p < daemons_; ++p) count += !master_.lost(static_cast<int>(p));
  return count;
}

void FabricRun::BeginLoss(const v1::SavedLoss& saved) {
  Loss& loss = losses_.emplace_back();
  loss.saved = saved;
  touched_ = true;
  batches_.Lose(saved.process());
  std::set<std::uint32_t> peers = cables_.PeersOf(saved.process());
  for (const auto& [peer, channels] : SharedChannels(topology(), placement_, saved.process()))
    peers.insert(peer);
  for (const std::uint32_t peer : peers) {
    if (master_.lost(static_cast<int>(peer))) continue;
    auto message = port_->Prepare(peer);
    message->mutable_peer_lost()->set_process(saved.process());
    message->mutable_peer_lost()->set_batches(batches_.Last(saved.process(), peer));
    port_->Send(peer, std::move(message));
    loss.awaited.insert(peer);
  }
}

void FabricRun::OnPeerLost(std::uint32_t process, const v1::PeerLostReply& reply) {
  const auto loss = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& l) {
    return l.saved.process() == reply.process();
  });
  if (loss == losses_.end() || loss->awaited.erase(process) == 0) return;
  (*loss->saved.mutable_accepted())[process] = reply.accepted();
  touched_ = true;
  if (!busy()) Step();
}

// Where what it had sent did not arrive any more, by receiver.
void FabricRun::FillSevered(const Loss& loss, Time boundary, v1::LostDaemon* message) const {
  const std::uint32_t process = loss.saved.process();
  const auto add = [&](Time at) {
    v1::SeveredHubs* severed = message->add_severed();
    severed->set_at(at);
    *severed->mutable_from() = message->nodes();
    return severed;
  };
  const std::map<std::uint32_t, std::uint64_t> answers(loss.saved.accepted().begin(),
                                                       loss.saved.accepted().end());
  for (const auto& [peer, accepted] : answers) {
    const Time from = std::min(
        {loss.saved.window_from(), boundary, batches_.FirstMissing(process, peer, accepted)});
    if (from >= boundary) continue;
    v1::SeveredHubs* severed = add(from);
    for (NodeId node = 0; node < topology().nodes(); ++node) {
      if (placement_.process_of_node[node] == peer) severed->add_to(node);
    }
  }
  if (loss.saved.window_from() < boundary) add(loss.saved.window_from())->set_management(true);
}

void FabricRun::TakeLosses() {
  const Time boundary = Now();
  std::uint32_t number = losses_count_;
  not_journalled_ = absl::OkStatus();
  for (const Loss& loss : std::exchange(losses_, {})) {
    Command command;
    command.done = [this, loss](absl::StatusOr<Time> at) {
      if (!at.ok()) OnLossRefused(loss, at.status());
    };
    v1::LostDaemon* message = command.record.mutable_lose();
    message->set_process(loss.saved.process());
    message->set_name(loss.saved.name());
    message->set_incarnation(loss.saved.incarnation());
    message->set_why(loss.saved.why());
    message->set_number(++number);
    for (NodeId node = 0; node < topology().nodes(); ++node) {
      if (placement_.process_of_node[node] == loss.saved.process()) message->add_nodes(node);
    }
    FillSevered(loss, boundary, message);
    commands_.push_back(std::move(command));
  }
  TakeCommands(boundary);
}

// A loss that is not in the journal would not be in its replay: virtual time waits for room.
void FabricRun::OnLossRefused(const Loss& loss, const absl::Status& why) {
  if (!absl::IsResourceExhausted(why) && !absl::IsUnavailable(why)) return Fail(why);
  if (losses_.empty()) {
    spdlog::error("run {}: virtual time is held: the loss of {} is not in the journal: {}", number_,
                  loss.saved.name(), std::string(why.message()));
  }
  not_journalled_ = why;
  losses_.push_back(loss);
  pace_timer_.Set(kJournalAgain, [this] { Step(); });
}

// Of the journal, too, where nobody is gone now but hubs are to stop as they did then.
absl::StatusOr<Time> FabricRun::TakeLoss(const Command& command, Time boundary) {
  const v1::LostDaemon& message = command.record.lose();
  const LostHubs lost = LostFromProto(message, boundary);
  spdlog::warn("run {}: lost {} at {} of virtual time: {}; its {} nodes are lost", number_,
               message.name(), FormatTime(boundary), message.why(), message.nodes_size());
  manager_->Lose(lost);
  lost_nodes_.insert(lost.nodes.begin(), lost.nodes.end());
  losses_count_ = std::max(losses_count_, lost.number);
  ReportManager();
  RouteActions(ActionsOf(lost, topology()));
  if (message.has_process()) {
    lost_as_[message.process()] = lost.number;
    cables_.Forget(message.process());
    manager_->outbox(static_cast<int>(message.process())).Clear();
    return boundary;
  }
  for (std::uint32_t p = 0; p < daemons_; ++p) {
    *pending_[p].add_lost() = message;
    master_.Wake(static_cast<int>(p), boundary);
  }
  return boundary;
}

}  // namespace percs
