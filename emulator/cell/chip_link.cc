#include "emulator/cell/chip_link.h"

#include <algorithm>

#include "emulator/cell/mfc.h"

namespace percs::cell {

void ChipLink::Send(Transfer* t, int beats, bool last, Time arrival) {
  constexpr int kBeats = kLineBytes / kBeatBytes;
  const Time wire = (line_time_ * beats + kBeats - 1) / kBeats;
  free_ = std::max(free_, arrival) + wire;
  if (!t->is_signal) t->mfc->TakeLink(context_->now + single_line_time_ * beats / kBeats);

  BladeStats& stats = context_->stats;
  stats.link_bytes[from_cell_] += static_cast<std::uint64_t>(beats) * kBeatBytes;
  if (last) ++(t->is_signal ? stats.link_signals : stats.link_dmas)[from_cell_];
  // In order, so times are never equal: two lines never leave at one instant.
  context_->queue.Push(
      free_ + context_->parameters.link.latency,
      EventKey(EventClass::kLink, from_cell_, last, static_cast<std::uint64_t>(beats)),
      EventData(t));
}

void ChipLink::Degrade(double share) {
  // A share may be as small as a number can be; a line takes no more than a second.
  const auto slower = [share](Time t) {
    return static_cast<Time>(std::min(static_cast<double>(t) / share, double{kSecond}));
  };
  line_time_ = slower(context_->parameters.link.line_time);
  single_line_time_ = slower(context_->parameters.link.single_line_time);
}

}  // namespace percs::cell
