// What outputs count (docs/semantics.md part C): stalls, inputs that lose an arbitration, and the
// sums of what was sent.
#include <bit>

#include "emulator/isr/isr.h"

namespace percs {

void Isr::ChangeStall(PortId port, OutputPort& out, unsigned stalled_vcs) {
  const Time now = context_.now;
  PortStats& stats = context_.stats.ports[port];
  if (stalled_vcs != 0 && out.stalled_vcs == 0) {
    out.stall_since = now;
    ++stalled_outputs_;
    if (IsHfi(port)) listener_.OnEjectionStall(true);
  } else if (stalled_vcs == 0) {
    if (IsHfi(port)) listener_.OnEjectionStall(false);
    stats.credit_stall_ps += static_cast<std::uint64_t>(now - out.stall_since);
    out.stall_since = -1;
    --stalled_outputs_;
  }
  for (unsigned changed = stalled_vcs ^ out.stalled_vcs; changed; changed &= changed - 1) {
    const int v = std::countr_zero(changed);
    Time& since = out.vc_stall_since[static_cast<std::size_t>(v)];
    VcStats& counters = stats.vc[static_cast<std::size_t>(v)];
    if (stalled_vcs >> v & 1) {
      since = now;
      ++counters.credit_stalls;
    } else {
      counters.credit_stall_ps += static_cast<std::uint64_t>(now - since);
    }
  }
  out.stalled_vcs = static_cast<std::uint8_t>(stalled_vcs);
}

// Of the inputs that can be granted, all but the winner lose. Before anything is granted.
void Isr::CountLosses(PortId port, OutputPort& out, int winner) {
  for (unsigned rest = out.requested_vcs; rest; rest &= rest - 1) {
    const int v = std::countr_zero(rest);
    OutputVc& vc = out.vc[static_cast<std::size_t>(v)];
    const RequestSet& requesters = out.requesters[static_cast<std::size_t>(v)];
    if (!vc.credits.Any(context_.now)) continue;
    int losers = vc.owner ? requesters.Has(vc.owner_index) : requesters.Count();
    if (losers == 0) continue;
    const bool won = requesters.Has(winner) && (!vc.owner || vc.owner_index == winner);
    context_.stats.ports[port].vc[static_cast<std::size_t>(v)].arbitration_losses +=
        static_cast<std::uint64_t>(losers - won);
  }
}

void Isr::FoldCounters() {
  for (std::size_t port = 0; port < kServicePort; ++port) {
    const OutputPort& out = outputs_[port];
    for (std::size_t v = 0; v < out.vcs; ++v) {
      if (out.vc[v].flits == 0) continue;
      VcStats& stats = context_.stats.ports[port].vc[v];
      stats.flits = out.vc[v].flits;
      stats.packets = out.vc[v].packets;
      stats.bytes = stats.flits * kFlitBytes - out.vc[v].unfilled;
    }
  }
}

}  // namespace percs
