#include "emulator/runtime/memory_server.h"

#include <algorithm>

#include "emulator/runtime/node_runtime.h"

namespace percs {

// Brings served_ up to now.
void MemoryServer::Serve() {
  const Time now = node_.now();
  served_ += static_cast<Time>(Wide{now - at_} * kWhole / Slowdown());
  at_ = now;
}

void MemoryServer::Begin(Rank& rank, Time cost, std::uint64_t bytes) {
  Serve();
  const auto alone = static_cast<std::int64_t>(bytes) * node_.host().node_per_kib;
  const Wide share = Wide{alone / 1024} * kWhole / cost;
  jobs_.push_back({&rank, served_ + cost, share});
  asked_ += share;
  Arm();
}

void MemoryServer::Arm() {
  if (jobs_.empty()) return;
  Time first = kNever;
  for (const Job& job : jobs_) first = std::min(first, job.finish);
  const Wide alone = std::max<Time>(first - served_, 0);
  const Time at = node_.now() + static_cast<Time>((alone * Slowdown() + kWhole - 1) / kWhole);
  if (at >= armed_) return;
  armed_ = at;
  node_.WakeMemory(at);
}

void MemoryServer::OnTimer() {
  // A later job may have slowed down the one that this was for.
  if (node_.now() < armed_) return;
  armed_ = kNever;
  Serve();
  std::vector<Rank*> done;
  std::erase_if(jobs_, [&](const Job& job) {
    if (job.finish > served_) return false;
    asked_ -= job.share;
    done.push_back(job.rank);
    return true;
  });
  for (Rank* rank : done) rank->OnTimer();
  Arm();
}

}  // namespace percs
