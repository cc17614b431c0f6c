#include "daemon/controller/run/run_losses.h"

#include <algorithm>
#include <utility>

namespace percs {

void RunLosses::Declare(const v1::SavedLoss& saved, std::set<std::uint32_t> survivors) {
  declared_.push_back({saved, std::move(survivors)});
}

void RunLosses::LoseSurvivor(std::uint32_t process) {
  for (Loss& loss : declared_) loss.awaited.erase(process);
}

bool RunLosses::OnAnswer(std::uint32_t survivor, const v1::PeerLostReply& reply) {
  const auto loss = std::find_if(declared_.begin(), declared_.end(), [&](const Loss& l) {
    return l.saved.process() == reply.process();
  });
  if (loss == declared_.end() || loss->awaited.erase(survivor) == 0) return false;
  (*loss->saved.mutable_accepted())[survivor] = reply.accepted();
  return true;
}

bool RunLosses::Awaits(std::uint32_t survivor) const {
  return std::any_of(declared_.begin(), declared_.end(),
                     [&](const Loss& loss) { return loss.awaited.contains(survivor); });
}

bool RunLosses::awaits_any() const {
  return std::any_of(declared_.begin(), declared_.end(),
                     [](const Loss& loss) { return !loss.awaited.empty(); });
}

std::list<RunLosses::Loss> RunLosses::Take() {
  not_journalled_ = absl::OkStatus();
  return std::exchange(declared_, {});
}

v1::LostDaemon RunLosses::CommandFor(const Loss& loss, std::uint32_t number, Time boundary,
                                     const SentBatches& batches) const {
  const auto& owners = placement_.process_of_node;
  const std::uint32_t process = loss.saved.process();
  v1::LostDaemon message;
  message.set_process(process);
  message.set_name(loss.saved.name());
  message.set_incarnation(loss.saved.incarnation());
  message.set_why(loss.saved.why());
  message.set_number(number);
  for (NodeId node = 0; node < owners.size(); ++node) {
    if (owners[node] == process) message.add_nodes(node);
  }
  const auto sever = [&message](Time at) {
    v1::SeveredHubs* severed = message.add_severed();
    severed->set_at(at);
    *severed->mutable_from() = message.nodes();
    return severed;
  };
  const std::map<std::uint32_t, std::uint64_t> answers(loss.saved.accepted().begin(),
                                                       loss.saved.accepted().end());
  for (const auto& [peer, accepted] : answers) {
    const Time from = std::min(
        {loss.saved.window_from(), boundary, batches.FirstMissing(process, peer, accepted)});
    if (from >= boundary) continue;
    v1::SeveredHubs* severed = sever(from);
    for (NodeId node = 0; node < owners.size(); ++node) {
      if (owners[node] == peer) severed->add_to(node);
    }
  }
  if (loss.saved.window_from() < boundary) sever(loss.saved.window_from())->set_management(true);
  return message;
}

bool RunLosses::PutBack(const Loss& loss, const absl::Status& why) {
  const bool first = declared_.empty();
  not_journalled_ = why;
  declared_.push_back(loss);
  return first;
}

void RunLosses::TakeEffect(const v1::LostDaemon& message) {
  nodes_.insert(message.nodes().begin(), message.nodes().end());
  count_ = std::max(count_, message.number());
  if (message.has_process()) places_[message.process()] = message.number();
}

void RunLosses::ReadmitNodes(const std::vector<NodeId>& nodes) {
  for (const NodeId node : nodes) nodes_.erase(node);
}

void RunLosses::Journalled(const v1::LostDaemon& message) {
  journalled_[message.process()] = message.incarnation();
}

bool RunLosses::WasJournalled(std::uint32_t process, std::uint64_t incarnation) const {
  const auto it = journalled_.find(process);
  return it != journalled_.end() && it->second == incarnation;
}

void RunLosses::Save(v1::SavedRun* saved) const {
  for (const Loss& loss : declared_) *saved->add_losses() = loss.saved;
  saved->set_losses_count(count_);
}

void RunLosses::Restore(const v1::SavedRun& saved) {
  for (const v1::SavedLoss& loss : saved.losses()) declared_.push_back({loss, {}});
  count_ = saved.losses_count();
}

}  // namespace percs
