#include "daemon/controller/run/sent_batches.h"

#include <algorithm>
#include <set>
#include <utility>

namespace percs {

// A grant has all that were reported since the one before.
void SentBatches::OnGrant(std::uint32_t process, const v1::WindowGrant& grant) {
  granted_[process].clear();
  for (const std::uint32_t from : std::set(grant.peers().begin(), grant.peers().end())) {
    auto& sent = sent_[{from, process}];
    for (Batch& batch : sent) batch.granted = true;
    granted_[process].emplace_back(from, sent.size());
  }
}

void SentBatches::OnReport(std::uint32_t process, const v1::WindowReport& report, Time window) {
  for (const auto& [from, count] : std::exchange(granted_[process], {})) {
    auto& sent = sent_[{from, process}];
    sent.erase(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(count));
  }
  for (int i = 0; i < report.peers_size(); ++i) {
    if (i >= report.batches_size() || i >= report.carried_size()) break;
    if (report.batches(i) > 0 || !report.carried(i).empty())
      sent_[{process, report.peers(i)}].push_back({report.batches(i), window});
  }
}

std::uint64_t SentBatches::Last(std::uint32_t from, std::uint32_t to) const {
  std::uint64_t last = 0;
  const auto sent = sent_.find({from, to});
  if (sent == sent_.end()) return last;
  for (const Batch& batch : sent->second) {
    if (batch.number == 0 && !batch.granted) break;
    last = std::max(last, batch.number);
  }
  return last;
}

Time SentBatches::FirstMissing(std::uint32_t from, std::uint32_t to, std::uint64_t accepted) const {
  const auto sent = sent_.find({from, to});
  if (sent == sent_.end()) return kNever;
  const auto missing = std::find_if(sent->second.begin(), sent->second.end(),
                                    [&](const Batch& batch) { return batch.Missing(accepted); });
  return missing == sent->second.end() ? kNever : missing->window;
}

void SentBatches::Lose(std::uint32_t process) {
  for (auto& granted : granted_)
    std::erase_if(granted, [process](const auto& batch) { return batch.first == process; });
}

void SentBatches::Forget(std::uint32_t process) {
  granted_[process].clear();
  std::erase_if(sent_, [process](const auto& entry) {
    return entry.first.first == process || entry.first.second == process;
  });
}

void SentBatches::Save(v1::SavedRun* saved) const {
  for (const auto& [channel, batches] : sent_) {
    if (batches.empty()) continue;
    v1::SavedBatches* kept = saved->add_batches();
    kept->set_from(channel.first);
    kept->set_to(channel.second);
    for (const Batch& batch : batches) {
      kept->add_batches(batch.number);
      kept->add_windows(batch.window);
      kept->add_granted(batch.granted);
    }
  }
}

void SentBatches::Restore(const v1::SavedRun& saved) {
  for (const v1::SavedBatches& kept : saved.batches()) {
    auto& sent = sent_[{kept.from(), kept.to()}];
    for (int i = 0; i < std::min(kept.batches_size(), kept.windows_size()); ++i)
      sent.push_back(
          {kept.batches(i), kept.windows(i), i < kept.granted_size() && kept.granted(i)});
  }
}

}  // namespace percs
