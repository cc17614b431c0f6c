#include "daemon/link/link_mesh.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::size_t kWaitingMax = 1024;
constexpr std::chrono::milliseconds kLookEvery(500);
// Time without a stream after which the reason is queried, and then reported.
constexpr std::chrono::milliseconds kAskAfter(1'000), kTellAfter(3'000);
constexpr std::chrono::milliseconds kTellAgain(5'000);
constexpr char kNoAnswer[] = "it does not answer attempts to connect";

}  // namespace

grpc::ServerBidiReactor<v1::LinkMessage, v1::LinkMessage>* LinkMesh::Service::Exchange(
    grpc::CallbackServerContext* context) {
  return Open<v1::LinkMessage, v1::LinkMessage>(context, kExchangePath);
}

void LinkMesh::Join(const LinkIdentity& self, const std::vector<LinkPeerSpec>& peers) {
  Leave();
  self_ = self;
  for (const LinkPeerSpec& spec : peers) Add(spec);
  PlaceWaiting();
  look_.Set(kLookEvery, [this] { Look(); });
}

void LinkMesh::Add(const LinkPeerSpec& spec) {
  Remove(spec.process);
  auto peer = std::make_shared<LinkPeer>(lock_, transport_, self_, spec, events_);
  peers_[spec.process] = peer;
  if (peer->dials()) peer->Dial();
  PlaceWaiting();
}

void LinkMesh::PlaceWaiting() {
  for (const Waiting& w : std::exchange(waiting_, {})) {
    if (!Place(w.listener, w.hello).ok()) w.listener->port()->Cancel();
  }
}

void LinkMesh::Leave() {
  reconnects_before_ = reconnects();
  for (auto& [process, peer] : peers_) peer->Leave();
  peers_.clear();
  look_.Cancel();
  apart_.clear();
  unreachable_.clear();
  self_.run = 0;  // peers of the next run may call before we are configured
}

void LinkMesh::Break() {
  for (auto& [process, peer] : peers_) peer->Break();
}

void LinkMesh::Remove(std::uint32_t process) {
  const auto it = peers_.find(process);
  if (it == peers_.end()) return;
  reconnects_before_ += it->second->reconnects();
  it->second->Leave();
  peers_.erase(it);
  apart_.erase(process);
}

void LinkMesh::Look() {
  const WallClock::Point now = lock_->clock().Now();
  std::vector<v1::UnreachablePeer> unreachable;
  for (const auto& [process, peer] : peers_) {
    if (!peer->dials()) continue;
    if (peer->connected()) {
      apart_.erase(process);
      continue;
    }
    const auto apart = now - apart_.emplace(process, now).first->second;
    if (apart >= kAskAfter) peer->FailFast();
    if (apart < kTellAfter) continue;
    v1::UnreachablePeer& message = unreachable.emplace_back();
    message.set_process(process);
    message.set_wall_seconds(std::chrono::duration<double>(apart).count());
    message.set_why(peer->why_apart().empty() ? kNoAnswer : peer->why_apart());
  }
  Tell(unreachable);
  look_.Set(kLookEvery, [this] { Look(); });
}

void LinkMesh::Tell(const std::vector<v1::UnreachablePeer>& unreachable) {
  std::set<std::uint32_t> before = std::exchange(unreachable_, {});
  bool changed = false;
  for (const v1::UnreachablePeer& message : unreachable) {
    unreachable_.insert(message.process());
    if (before.erase(message.process()) > 0) continue;
    const LinkPeerSpec& spec = peers_.at(message.process())->spec();
    spdlog::warn("no stream to {} at {} for {:.1f} s: {}", spec.name, spec.address,
                 message.wall_seconds(), message.why());
    changed = true;
  }
  for (const std::uint32_t process : before) {
    if (const auto it = peers_.find(process); it != peers_.end())
      spdlog::info("there is a stream to {} again", it->second->spec().name);
    changed = true;
  }
  const WallClock::Point now = lock_->clock().Now();
  if (!changed && (unreachable.empty() || now - told_at_ < kTellAgain)) return;
  told_at_ = now;
  if (events_.unreachable) events_.unreachable(unreachable);
}

bool LinkMesh::all_reached() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& entry) { return entry.second->reached(); });
}

std::uint64_t LinkMesh::reconnects() const {
  std::uint64_t sum = reconnects_before_;
  for (const auto& [process, peer] : peers_) sum += peer->reconnects();
  return sum;
}

LinkPeer* LinkMesh::peer(std::uint32_t process) {
  const auto it = peers_.find(process);
  return it == peers_.end() ? nullptr : it->second.get();
}

absl::Status LinkMesh::OnHello(LinkListener* listener, const v1::LinkHello& hello) {
  const std::string who = fmt::format("process {}", hello.process());
  if (absl::Status status = CheckVersions(hello.versions(), who); !status.ok()) return status;
  return Place(listener, hello);
}

absl::Status LinkMesh::Place(LinkListener* listener, const v1::LinkHello& hello) {
  // The peer may have been configured before us, or have learned before us that a cable joins us
  // now, or have the place of a lost one and be known to all but us.
  const auto known = peers_.find(hello.process());
  const bool new_to_us =
      known == peers_.end() || known->second->spec().incarnation != hello.incarnation();
  const bool early = hello.run() > self_.run && (self_.run == 0 || hello.fabric() == self_.fabric);
  const bool joining = self_.run != 0 && hello.run() == self_.run &&
                       hello.fabric() == self_.fabric && hello.peer() == self_.process &&
                       hello.process() < self_.process && new_to_us;
  if (!early && !joining) return Admit(listener, hello);
  if (waiting_.size() >= kWaitingMax) {
    return absl::ResourceExhaustedError(
        "too many peers wait for a process that does not expect them yet");
  }
  waiting_.push_back({listener, hello});
  return absl::OkStatus();
}

void LinkMesh::OnGone(LinkListener* listener) {
  const auto gone = [&](const Waiting& w) { return w.listener == listener; };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), gone), waiting_.end());
}

absl::Status LinkMesh::Admit(LinkListener* listener, const v1::LinkHello& hello) {
  const auto it = peers_.find(hello.process());
  if (it == peers_.end() || it->second->dials()) {
    return absl::FailedPreconditionError(
        fmt::format("miswired link stream: process {} of run {} expects no stream from process {} "
                    "of run {} (which calls process {})",
                    self_.process, self_.run, hello.process(), hello.run(), hello.peer()));
  }
  if (absl::Status status = it->second->CheckHello(hello); !status.ok()) return status;
  it->second->Offer(listener, hello);
  return absl::OkStatus();
}

}  // namespace percs
