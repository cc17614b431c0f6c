// The part of Controller that communicates with daemons, and declares them lost.
#include <utility>

#include "daemon/controller/controller.h"
#include "fmt/format.h"

namespace percs {

void Controller::WatchForLosses() {
  loss_watch_.Look(lock_.clock().Now(), LossRules());
  if (run_) run_->RefuseWaiting();
  loss_timer_.Set(LossWatch::kLookEvery, [this]() PERCS_LOCKED { WatchForLosses(); });
}

LossWatch::Rules Controller::LossRules() const {
  LossWatch::Rules rules;
  rules.can_decide = storage_trouble_.ok();
  if (!run_ || run_->ended()) {
    rules.without_connection = options_.lost_after;
    return rules;
  }
  rules.without_answer = options_.loss_deadline;
  if (!rules.without_answer && run_->pace().pacing().live) rules.without_answer = kLiveDeadline;
  rules.without_connection = rules.without_answer;
  return rules;
}

LossWatch::Place Controller::See(std::uint32_t place) const {
  const Member* member = membership_.member(place);
  if (member == nullptr) return {};
  return {true, member->connected(), !member->connected() && member->process_gone(),
          run_ && run_->Awaits(place)};
}

void Controller::Ask(std::uint32_t place) {
  auto message = Prepare(place);
  message->mutable_ping();
  Send(place, std::move(message));
}

void Controller::Lose(std::uint32_t place, const std::string& why) { membership_.Lose(place, why); }

std::unique_ptr<v1::ControllerMessage> Controller::Prepare(std::uint32_t process) {
  Member* member = membership_.member(process);
  return member ? member->session().Prepare() : std::make_unique<v1::ControllerMessage>();
}

void Controller::Send(std::uint32_t process, std::unique_ptr<v1::ControllerMessage> message) {
  Member* member = membership_.member(process);
  if (member == nullptr) return;
  const bool configures = message->has_configure();
  member->session().Send(std::move(message));
  if (configures) SendMetricsDetail(process);
}

v1::Peer Controller::Describe(std::uint32_t process) const {
  v1::Peer peer;
  peer.set_process(process);
  if (const Member* member = membership_.member(process)) {
    peer.set_link_address(member->link_address());
    peer.set_incarnation(member->incarnation());
    peer.set_name(member->Describe());
  }
  return peer;
}

bool Controller::Present(std::uint32_t process) const {
  const Member* member = membership_.member(process);
  return member != nullptr && member->ever_connected();
}

bool Controller::Connected(std::uint32_t process) const {
  const Member* member = membership_.member(process);
  return member != nullptr && member->connected();
}

std::optional<std::string> Controller::Missing(std::uint32_t process) const {
  const Member* member = membership_.member(process);
  const auto silence = loss_watch_.Missing(process);
  if (member == nullptr || !silence) return std::nullopt;
  return fmt::format("{}, which {}", member->Describe(), DescribeSilence(*silence));
}

absl::Status Controller::BreakStreams(const std::string& name, v1::BreakStreamsReply* reply) {
  std::string names;
  for (std::uint32_t place = 0; place < membership_.places(); ++place) {
    Member* member = membership_.member(place);
    if (!member) continue;
    names += (names.empty() ? "" : ", ") + member->name();
    if (member->name() != name) continue;
    reply->set_place(place);
    reply->set_reconnects(ReconnectsOf(place));
    auto message = Prepare(place);
    message->mutable_break_links();
    Send(place, std::move(message));
    member->Break();  // messages in flight are sent again on the next one
    return absl::OkStatus();
  }
  return absl::NotFoundError(fmt::format("no daemon \"{}\" has joined; daemons: {}", name,
                                         names.empty() ? "none" : names));
}

std::uint64_t Controller::ReconnectsOf(std::uint32_t place) const {
  return membership_.member(place)->reconnects() + (run_ ? run_->master().reconnects_of(place) : 0);
}

}  // namespace percs
