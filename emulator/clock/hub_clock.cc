#include "emulator/clock/hub_clock.h"

#include <algorithm>
#include <bit>

#include "emulator/base/random.h"
#include "emulator/routing/route_tables.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Uniform in -limit..limit.
std::int64_t Either(RandomStream& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.Below(static_cast<std::uint32_t>(2 * limit + 1))) - limit;
}

// Excess that an oscillator counts in `time`.
Time Drift(Time time, std::int64_t ppb) {
  return static_cast<Time>(static_cast<__int128>(time) * ppb / 1'000'000'000);
}

}  // namespace

HubClock::HubClock(NodeId node, const ClockSettings& settings, std::uint64_t seed,
                   const P7ihParameters& parameters, const Isr& isr,
                   std::function<void(ControlItem&&)> send)
    : node_(node),
      settings_(settings),
      parameters_(parameters),
      isr_(isr),
      send_(std::move(send)),
      next_sample_(settings.period) {
  RandomStream random(seed, fmt::format("node/{}/clock", node));
  drift_ppb_ = Either(random, settings.drift_ppb);
  for (Time& error : errors_) error = Either(random, settings.error);
}

Time HubClock::Reading(Time now) const {
  return shown_ + (now - set_at_) + drifted_ + Drift(now - drifts_from_, drift_ppb_ + added_ppb_);
}

void HubClock::AddDrift(std::int64_t ppb, Time now) {
  drifted_ += Drift(now - drifts_from_, drift_ppb_ + added_ppb_);
  drifts_from_ = now;
  added_ppb_ = ppb;
  drifting_ = true;
}

void HubClock::SetRole(PortMask role, Time now) {
  const bool was_source = (role_ & HubTables::kDeliverHere) != 0;
  role_ = role;
  if ((role & HubTables::kDeliverHere) == 0) {
    next_symbol_ = kNever;
  } else if (!was_source) {
    Emit(now);  // its clock continues from its reading
  }
}

void HubClock::BeginAt(Time now) {
  shown_ = set_at_ = drifts_from_ = now;
  while (next_sample_ < now) {  // it was lost
    samples_.push_back({});
    next_sample_ = samples_.size() < kSamplesMax ? next_sample_ + settings_.period : kNever;
  }
}

void HubClock::Receive(const ControlItem& symbol) {
  symbols_.insert_or_assign({symbol.arrival, symbol.port}, symbol);
}

Time HubClock::next_time() const {
  const Time symbol = symbols_.empty() ? kNever : symbols_.begin()->first.first;
  return std::min({symbol, next_symbol_, next_sample_});
}

void HubClock::Run() {
  const Time now = next_time();
  while (!symbols_.empty() && symbols_.begin()->first.first == now) {
    const ControlItem symbol = symbols_.begin()->second;
    symbols_.erase(symbols_.begin());
    OnSymbol(symbol, now);
  }
  if (next_symbol_ == now) Emit(now);
  if (next_sample_ == now) Sample(now);
}

void HubClock::Emit(Time now) {
  emitted_ = Reading(now);
  Set(now, emitted_, node_, 0);
  next_symbol_ = now + settings_.period -
                 Drift(settings_.period, drift_ppb_ + added_ppb_);  // by its own clock
  PassOn(now, emitted_, kNoPort);
}

void HubClock::OnSymbol(const ControlItem& symbol, Time now) {
  const OutputPort& link = isr_.output(symbol.port);
  if (!link.up || link.generation != symbol.epoch) return;  // lost with the link
  // While trees change, a symbol may come twice, or to the source.
  if ((role_ & HubTables::kDeliverHere) || (symbol.source == source_ && symbol.raised <= emitted_))
    return;
  emitted_ = symbol.raised;
  const Time delay = Delay(parameters_, ClassOf(symbol.port)) + errors_[symbol.port];
  Set(now, static_cast<Time>(symbol.hash) + delay, symbol.source, symbol.hops);
  PassOn(now, symbol.raised, symbol.port);
}

void HubClock::Set(Time now, Time reading, NodeId source, std::uint32_t depth) {
  set_at_ = drifts_from_ = now;
  drifted_ = 0;
  drifting_ = added_ppb_ != 0;
  shown_ = reading;
  set_ = true;
  source_ = source;
  depth_ = depth;
}

void HubClock::PassOn(Time now, Time emitted, PortId except) {
  for (PortMask ports = role_ & ~HubTables::kDeliverHere; ports; ports &= ports - 1) {
    const PortId port = static_cast<PortId>(std::countr_zero(ports));
    const OutputPort& out = isr_.output(port);
    if (port == except || !out.up) continue;
    ControlItem symbol = out.ToPeer(ControlItem::Kind::kClock, source_);
    symbol.hops = static_cast<std::uint16_t>(depth_ + 1);
    symbol.raised = emitted;
    symbol.hash = static_cast<std::uint64_t>(Reading(now));
    symbol.arrival = now + Delay(parameters_, ClassOf(port));
    send_(std::move(symbol));
  }
}

void HubClock::Sample(Time now) {
  const Time age = !set_ ? kNever : drifting_ ? kDrifting : now - set_at_;
  samples_.push_back({Reading(now) - now, age, source_, depth_});
  next_sample_ = samples_.size() < kSamplesMax ? now + settings_.period : kNever;
}

}  // namespace percs
