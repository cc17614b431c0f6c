// Errors, replay and lanes of links (docs/semantics.md rule 18 and B.8). Nothing here runs for a
// link that never had a fault.
#include "emulator/isr/link_level.h"

#include <algorithm>
#include <cmath>

#include "emulator/base/check.h"
#include "emulator/isr/isr.h"
#include "fmt/format.h"

namespace percs {

void LinkErrors::SetRate(double flit_error_rate) {
  rate_ = flit_error_rate;
  Draw();
}

void LinkErrors::Draw() {
  if (rate_ <= 0) {
    clean_ = kForEver;
    return;
  }
  // Geometric. log1p(-1) is minus infinity: then every distance is 0.
  const double flits = std::floor(std::log(random_.Unit()) / std::log1p(-rate_));
  clean_ = flits < static_cast<double>(kForEver) ? static_cast<std::uint64_t>(flits) : kForEver;
}

bool LinkErrors::Transmit() {
  if (forced_ > 0) {
    --forced_;
    return false;
  }
  if (clean_ == 0) {
    Draw();
    return false;
  }
  if (clean_ != kForEver) --clean_;
  return true;
}

LinkLevel& Isr::LevelOf(PortId port) {
  std::unique_ptr<LinkLevel>& level = link_levels_[port];
  if (!level) {
    level = std::make_unique<LinkLevel>(
        RandomStream(seed_, fmt::format("node/{}/port/{}/errors", context_.node, port)));
  }
  return *level;
}

void Isr::SetErrorRate(PortId port, double flit_error_rate) {
  LevelOf(port).errors.SetRate(flit_error_rate);
  outputs_[port].errors = true;
}

void Isr::CorruptNext(PortId port, std::uint32_t transmissions) {
  LevelOf(port).errors.CorruptNext(transmissions);
  outputs_[port].errors = true;
}

void Isr::SetLanesLost(PortId port, bool out_going, std::uint32_t lanes) {
  LinkLevel& level = LevelOf(port);
  (out_going ? level.lanes_lost_out : level.lanes_lost_in) = static_cast<int>(lanes);
  SetLanes(port, level);
}

// Flits in flight are not overtaken: when the latency falls, the next commitment starts late
// (Transmit).
void Isr::SetLatency(PortId port, bool out_going, Time latency) {
  LinkLevel& level = LevelOf(port);
  if (!out_going) {
    level.latency_in = latency;
    return;
  }
  OutputPort& out = outputs_[port];
  level.under_way = std::max(level.under_way, out.busy_until + out.wire);
  out.wire += latency - level.latency_out;
  level.latency_out = latency;
  level.latency_most = std::max(level.latency_most, latency);
  out.errors = true;
}

void Isr::SetLanes(PortId port, LinkLevel& level) {
  const LinkParameters& link = context_.parameters->link(ClassOf(port));
  const int working = link.lanes_working(level.lanes_lost_out);
  if (std::min(working, link.lanes_working(level.lanes_lost_in)) < link.lanes_min) {
    lanes_short_ |= PortBit(port);
  } else {
    lanes_short_ &= ~PortBit(port);
  }
  context_.stats.ports[port].lanes_lost = static_cast<std::uint64_t>(level.lanes_lost_out);
  if (working >= link.lanes_min)
    SetFlitTime(port, (link.flit_time * link.lanes + working - 1) / working);
}

// A running commitment plays out as it was granted. Fronts that have not begun may request earlier
// or later (B.4).
void Isr::SetFlitTime(PortId port, Time flit_time) {
  OutputPort& out = outputs_[port];
  if (flit_time == out.flit_time) return;
  LinkLevel& level = LevelOf(port);
  if (out.busy_until > context_.now && level.changed_under != out.busy_until) {
    level.changed_under = out.busy_until;
    level.flit_time_before = out.flit_time;
  }
  out.flit_time = flit_time;
  for (InputBuffer& buffer : link_buffers_) {
    Packet* front = buffer.Front(port);
    if (!front || front->begun) continue;
    ClearRequest(buffer, front);
    Advance(buffer, front);
  }
}

Time Isr::CommittedFlitTime(PortId port) const {
  const OutputPort& out = outputs_[port];
  const LinkLevel* level = port < kLinkPorts ? link_levels_[port].get() : nullptr;
  return level && level->changed_under == out.busy_until ? level->flit_time_before : out.flit_time;
}

Time Isr::ReplayRound(PortId port) const {
  const OutputPort& out = outputs_[port];
  const LinkLevel& level = *link_levels_[port];
  const Time back = out.wire - level.latency_out + level.latency_in;
  const Time f = out.flit_time, nak = back + context_.parameters->credit_processing;
  return (f + out.wire + nak + f - 1) / f * f;
}

int Isr::FlitsBeforeError(PortId port, int wanted) const {
  if (!context_.parameters->link_replay) return wanted;
  const std::uint64_t clean = link_levels_[port]->errors.clean();
  return clean == 0
             ? 1
             : static_cast<int>(std::min<std::uint64_t>(clean, static_cast<std::uint64_t>(wanted)));
}

Time Isr::Transmit(PortId port, OutputPort& out, Packet* p, int count) {
  LinkErrors& errors = link_levels_[port]->errors;
  PortStats& stats = context_.stats.ports[port];
  const P7ihParameters& parameters = *context_.parameters;
  Time start = std::max(context_.now, link_levels_[port]->under_way - out.wire);
  if (!parameters.link_replay) {
    for (int i = 0; i < count; ++i) {
      if (errors.Transmit()) continue;
      ++stats.crc_errors;
      p->tail_marks |= kCorruptMark;
    }
    return start;
  }
  const Time round = ReplayRound(port);
  for (int i = 0, in_a_row = 0; i < count;) {
    if (errors.Transmit()) {
      ++i;
      continue;
    }
    PERCS_CHECK(count == 1);  // the run ends before a corrupted flit
    ++stats.crc_errors;
    ++stats.replays;
    start += round;
    if (++in_a_row < parameters.replay_limit) continue;
    on_replay_exhausted_(port, start);
    break;
  }
  return start;
}

}  // namespace percs
