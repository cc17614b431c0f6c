#include "emulator/runtime/shared_line.h"

#include <algorithm>
#include <utility>

#include "emulator/runtime/node_runtime.h"

namespace percs {

void SharedLine::Read(Rank& rank, Time* ready_at) {
  if (!written_ || copies_[rank.local()]) return;
  copies_.set(rank.local());
  const HostParameters& host = rank.node().host();
  const Time issued = std::max({rank.now(), free_at_, rank.next_miss});
  free_at_ = rank.next_miss = issued + host.line_repeat;
  *ready_at = std::max(*ready_at, issued + rank.node().LineLatency(core_, rank.core()));
}

Time SharedLine::ClaimTime(Rank& rank) const {
  if (!written_ || (copies_[rank.local()] && copies_.count() == 1)) return 0;
  return rank.node().LineLatency(core_, rank.core());
}

void SharedLine::Advance(Rank& rank) {
  ++counter_;
  core_ = rank.core();
  written_ = true;
  copies_.reset();
  copies_.set(rank.local());
  std::vector<Rank*> woken;
  woken.swap(watchers_);
  watching_.reset();
  for (Rank* watcher : woken) watcher->Wake();
  if (watchers_.empty()) {
    woken.clear();
    watchers_.swap(woken);  // keeps its room
  }
}

}  // namespace percs
