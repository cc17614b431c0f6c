#include "daemon/controller/members/membership.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>

#include "fmt/format.h"
#include "proto/process/printable.h"
#include "proto/process/version.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::size_t kRefusedKnown = 1024;

}  // namespace

Member::Member(Membership* membership, std::uint32_t place, v1::JoinRequest joined)
    : Endpoint(kUnacknowledgedMax),
      membership_(membership),
      place_(place),
      joined_(std::move(joined)) {}

std::string Member::Describe() const {
  return fmt::format("{} in place {} (pid {})", name(), place_, pid());
}

bool Member::process_gone() const {
  if (link_address().rfind("unix:", 0) != 0) return false;
  if (kill(static_cast<pid_t>(pid()), 0) != 0) return errno == ESRCH;
  // A process that has ended may wait for its parent to read its status.
  std::ifstream file(fmt::format("/proc/{}/stat", pid()));
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() &&
         (stat[name_end + 2] == 'Z' || stat[name_end + 2] == 'X');
}

void Member::Save(v1::SavedMember* saved) const {
  *saved->mutable_joined() = joined_;
  saved->set_ever_connected(ever_connected_);
  saved->set_received(session().received());
  saved->set_sent(session().sent());
  saved->set_left(session().left());
  session().VisitUnacknowledged(
      [&](const v1::ControllerMessage& message) { *saved->add_unacknowledged() = message; });
}

void Member::Restore(const v1::SavedMember& saved) {
  std::vector<std::unique_ptr<v1::ControllerMessage>> queue;
  for (const auto& message : saved.unacknowledged())
    queue.push_back(std::make_unique<v1::ControllerMessage>(message));
  session().Restore(saved.received(), saved.sent(), saved.has_left() ? saved.left() : saved.sent(),
                    std::move(queue));
  ever_connected_ = saved.ever_connected();
}

absl::Status Member::CheckHello(const v1::SessionHello& hello) const {
  if (hello.fabric() == membership_->fabric_ && hello.incarnation() == incarnation()) {
    return absl::OkStatus();
  }
  if (hello.fabric() == membership_->fabric_) {
    return absl::AbortedError(fmt::format(
        "this daemon was declared lost and another daemon has place {}; join again", place_));
  }
  return absl::FailedPreconditionError(
      fmt::format("place {} of this fabric ({}) belongs to another daemon than the caller (of "
                  "fabric {}); join again",
                  place_, membership_->fabric_, hello.fabric()));
}

void Member::FillHello(v1::SessionHello* hello) const {
  hello->set_fabric(membership_->fabric_);
  hello->set_process(place_);
  hello->set_incarnation(incarnation());
}

absl::Status Member::OnMessage(v1::DaemonMessage& message) {
  return membership_->events_.message(place_, message);
}

void Member::OnReached() {
  if (!ever_connected_) spdlog::info("{} has joined, links at {}", Describe(), link_address());
  if (!std::exchange(ever_connected_, true)) membership_->events_.changed(place_);
  membership_->events_.reached();
}

Membership::Membership(ProcessLock* lock, std::uint32_t places, std::uint64_t fabric, Events events)
    : lock_(lock), fabric_(fabric), events_(std::move(events)), members_(places) {}

// A daemon that is refused as UNAVAILABLE tries again.
Membership::Service::Service(ProcessLock* lock, const Events& events, Membership* membership)
    : LockedService(
          lock,
          [admit = events.admit](const std::string& peer) {
            const absl::Status status = admit(peer);
            return status.ok() ? status : absl::UnavailableError(status.message());
          },
          membership) {}

grpc::ServerUnaryReactor* Membership::Service::Join(grpc::CallbackServerContext* context,
                                                    const v1::JoinRequest* request,
                                                    v1::JoinReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = admit_(context->peer()); !status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  const LockGuard guard(lock_->mutex());
  owner_->Join(*request, [=, this](const absl::StatusOr<std::uint32_t>& place) PERCS_LOCKED {
    if (place.ok()) {
      reply->set_process(*place);
      reply->set_fabric(owner_->fabric_);
      reply->set_processes(owner_->places());
    }
    reactor->Finish(ToGrpc(place.status()));
  });
  return reactor;
}

grpc::ServerBidiReactor<v1::DaemonMessage, v1::ControllerMessage>* Membership::Service::Session(
    grpc::CallbackServerContext* context) {
  return Open<v1::ControllerMessage, v1::DaemonMessage>(context, kSessionPath);
}

void Membership::LogRefusal(const v1::JoinRequest& request, const absl::Status& why) {
  if (refused_.size() >= kRefusedKnown) refused_.clear();
  std::string& said = refused_[request.incarnation()];
  if (said == why.message()) return;
  said = std::string(why.message());
  spdlog::warn("refused {} (pid {}): {}", request.name(), request.pid(), said);
}

absl::StatusOr<std::uint32_t> Membership::FindPlace(const v1::JoinRequest& request) const {
  for (std::uint32_t place = 0; place < places(); ++place) {
    // The reply to an earlier try was lost.
    if (members_[place] && members_[place]->incarnation() == request.incarnation()) return place;
  }
  if (request.has_place()) {
    const std::uint32_t place = request.place();
    if (place >= places()) {
      return absl::OutOfRangeError(fmt::format(
          "place {} does not exist; this fabric has places 0 to {}", place, places() - 1));
    }
    const Member* holder = members_[place].get();
    if (!holder) return place;
    if (!holder->connected()) {  // it may come back or be lost, and the caller can wait for that
      return absl::ResourceExhaustedError(
          fmt::format("place {} still belongs to {}, which has no connection; it becomes free when "
                      "that daemon is declared lost",
                      place, holder->Describe()));
    }
    return absl::AlreadyExistsError(
        fmt::format("place {} is taken by {}; choose another place", place, holder->Describe()));
  }
  for (std::uint32_t place = 0; place < places(); ++place) {
    if (!members_[place]) return place;
  }
  return absl::ResourceExhaustedError(fmt::format(
      "all {} places of this fabric are taken; start percs-controller with more --daemons",
      places()));
}

// Only one process listens at an address: an earlier one without a connection has ended.
void Membership::Replace(const v1::JoinRequest& request) {
  for (std::uint32_t place = 0; place < places(); ++place) {
    const Member* member = members_[place].get();
    if (!member || member->connected() || member->link_address() != request.link_address())
      continue;
    if (member->incarnation() != request.incarnation())
      Lose(place, "another process took its address");
  }
}

absl::Status Membership::CheckStays() const {
  if (handing_over_)
    return absl::UnavailableError("the controller is shutting down; try again with the next one");
  if (leaving_) return absl::FailedPreconditionError("the controller is shutting down");
  return absl::OkStatus();
}

void Membership::Join(const v1::JoinRequest& request, Joined done) {
  const auto place = GivePlace(request);
  if (!place.ok()) {
    LogRefusal(request, place.status());
    return done(place);
  }
  if (hold_back_ && !members_[*place]->kept()) {
    waiting_.emplace(*place, std::move(done));
    return;
  }
  done(place);
}

void Membership::AnswerWaiting(std::uint32_t place, const absl::Status& status) {
  const auto [begin, end] = waiting_.equal_range(place);
  std::vector<Joined> answers;
  for (auto it = begin; it != end; ++it) answers.push_back(std::move(it->second));
  waiting_.erase(begin, end);
  for (const Joined& done : answers)
    done(status.ok() ? absl::StatusOr<std::uint32_t>(place)
                     : absl::StatusOr<std::uint32_t>(status));
}

absl::StatusOr<std::uint32_t> Membership::GivePlace(const v1::JoinRequest& request) {
  if (absl::Status status = CheckStays(); !status.ok()) return status;
  if (absl::Status status = CheckName(request.name()); !status.ok()) return status;
  const std::string who = fmt::format("{} (pid {})", request.name(), request.pid());
  if (absl::Status status = CheckVersions(request.versions(), who); !status.ok()) return status;
  if (request.link_address().empty()) {
    return absl::InvalidArgumentError(fmt::format("{} sent no address for links", who));
  }
  Replace(request);
  auto place = FindPlace(request);
  if (!place.ok() || members_[*place]) return place;
  members_[*place] = std::make_shared<Member>(this, *place, request);
  refused_.erase(request.incarnation());
  if (hold_back_) members_[*place]->session().HoldBack();
  events_.changed(*place);
  return place;
}

absl::Status Membership::OnHello(SyncListener* listener, const v1::SessionHello& hello) {
  if (handing_over_) return CheckStays();  // it is not lost
  if (hello.process() < places() && !members_[hello.process()] && hello.fabric() == fabric_) {
    return absl::AbortedError(
        fmt::format("the daemon in place {} was declared lost; join again", hello.process()));
  }
  if (hello.process() >= places() || !members_[hello.process()]) {
    return absl::FailedPreconditionError(
        fmt::format("no daemon has joined in place {}; join first", hello.process()));
  }
  Member& member = *members_[hello.process()];
  if (absl::Status status = member.CheckHello(hello); !status.ok()) return status;
  member.Offer(listener, hello);
  return absl::OkStatus();
}

void Membership::Lose(std::uint32_t place, const std::string& why) {
  const std::shared_ptr<Member> member = std::move(members_[place]);
  members_[place] = nullptr;
  member->Leave();
  AnswerWaiting(place, absl::UnavailableError("this daemon was declared lost; join again"));
  spdlog::warn("lost {}: {}", member->Describe(), why);
  events_.changed(place);
  if (!leaving_) events_.lost(*member, why);
}

absl::Status Membership::Restore(
    std::uint64_t fabric, const std::vector<std::pair<std::uint32_t, v1::SavedMember>>& members) {
  fabric_ = fabric;
  for (const auto& [place, saved] : members) {
    if (place >= places() || saved.left() > saved.sent() ||
        saved.sent() < static_cast<std::uint64_t>(saved.unacknowledged_size())) {
      return absl::DataLossError(
          fmt::format("the saved state of the daemon in place {} is invalid", place));
    }
    members_[place] = std::make_shared<Member>(this, place, saved.joined());
    members_[place]->session().HoldBack();
    members_[place]->set_kept();
    members_[place]->Restore(saved);
  }
  return absl::OkStatus();
}

void Membership::Release() {
  for (const auto& member : members_) {
    if (!member) continue;
    member->session().Release();
    if (member->kept()) continue;
    member->set_kept();
    AnswerWaiting(member->place(), absl::OkStatus());
  }
}

std::uint32_t Membership::ready() const {
  return static_cast<std::uint32_t>(std::count_if(
      members_.begin(), members_.end(), [](const auto& m) { return m && m->ever_connected(); }));
}

void Membership::Goodbye() {
  leaving_ = true;
  for (const auto& member : members_) {
    if (!member) continue;
    auto message = member->session().Prepare();
    message->mutable_bye();
    member->session().Send(std::move(message));
  }
}

bool Membership::farewells_delivered() const {
  return std::none_of(members_.begin(), members_.end(),
                      [](const auto& m) { return m && m->connected(); });
}

void Membership::HandOver() {
  handing_over_ = true;
  Leave();
}

void Membership::Leave() {
  leaving_ = true;
  for (std::uint32_t place = 0; place < places(); ++place) {
    if (!members_[place]) continue;
    members_[place]->Leave();
    members_[place] = nullptr;
    AnswerWaiting(place, CheckStays());
    events_.changed(place);
  }
}

}  // namespace percs
