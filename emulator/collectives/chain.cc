#include "emulator/collectives/chain.h"

#include <utility>

#include "emulator/runtime/node_runtime.h"

namespace percs {

TaskGroup LocalGroup(Rank& rank) {
  const std::uint32_t tasks = rank.node().placement().tasks_per_node;
  return {rank.number() - rank.local(), 1, tasks};
}

Chain::Chain(Rank& rank, std::vector<ChainLevel> levels) : rank_(rank), levels_(std::move(levels)) {
  for (const ChainLevel& level : levels_) times_.push_back({level.name, 0, 0});
}

void Chain::Reset(const CollectiveCall& call) {
  user_ = call;
  at_ = 0;
}

void Chain::Start() { Continue(); }

void Chain::Continue() {
  for (; at_ < levels_.size(); ++at_) {
    ChainLevel& level = levels_[at_];
    CollectiveCall call = user_;
    call.done = LevelDone;
    call.client = this;
    if (!level.collective || !level.prepare(call)) continue;
    entered_ = rank_.now();
    level.collective->Reset(call);
    level.collective->Start();
    return;
  }
  user_.done(user_.client);
}

void Chain::LevelDone(void* chain) {
  Chain& c = *static_cast<Chain*>(chain);
  LevelTime& time = c.times_[c.at_];
  time.total += c.rank_.now() - c.entered_;
  ++time.calls;
  ++c.at_;
  c.Continue();
}

std::string Chain::Waits() const {
  return at_ < levels_.size() && levels_[at_].collective ? levels_[at_].collective->Waits() : "";
}

void Chain::AddTimes(CollectiveResult* result) const {
  CollectiveResult mine;
  mine.levels = times_;
  result->Merge(mine);
}

}  // namespace percs
