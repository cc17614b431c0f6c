// The clock of one hub: an oscillator with a drift of its own, set whenever a sync symbol comes
// (docs/clock.md). The hub that its tables name as the source sends a symbol every period; every
// hub sets its clock to what the symbol says plus the delay of the link it came over, as far as it
// knows that, and passes it on along the tree. Symbols travel beside the flits, like credits, and
// take no bandwidth. All of this is background (docs/semantics.md rule 6): it keeps no run from
// ending. Not modelled: a clock is set at once, not slewed.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "emulator/isr/isr.h"
#include "emulator/topology/clock_settings.h"
#include "emulator/wire/outbox.h"

namespace percs {

// Age of a clock whose oscillator a fault has made faster or slower since it was set: no one relies
// on it.
inline constexpr Time kDrifting = kNever - 1;

// What a hub's clock showed at a multiple of the period.
struct ClockSample {
  Time offset = 0;          // its reading minus virtual time
  Time age = kNever;        // since it was set last; kNever: it never was
  NodeId source = kNoNode;  // whose symbol that was
  std::uint32_t depth = 0;  // links from there
  bool operator==(const ClockSample&) const = default;
};

class HubClock {
 public:
  // Later periods are not sampled.
  static constexpr std::size_t kSamplesMax = 16'384;

  HubClock(NodeId node, const ClockSettings& settings, std::uint64_t seed,
           const P7ihParameters& parameters, const Isr& isr,
           std::function<void(ControlItem&&)> send);

  // The hub's place in the tree: ports that symbols are passed on by, HubTables::kDeliverHere if it
  // is the source.
  void SetRole(PortMask role, Time now);
  // Begins now, unset, instead of at 0.
  void BeginAt(Time now);
  void Receive(const ControlItem& symbol);
  Time next_time() const;
  // All there is at next_time().
  void Run();

  // From now on the oscillator counts `ppb` parts per billion more than it does by itself.
  void AddDrift(std::int64_t ppb, Time now);

  Time Reading(Time now) const;
  const std::vector<ClockSample>& samples() const { return samples_; }
  // How long a symbol takes over a link.
  static Time Delay(const P7ihParameters& parameters, LinkClass link) {
    return parameters.link(link).wire + parameters.credit_processing;
  }

 private:
  void Emit(Time now);
  void OnSymbol(const ControlItem& symbol, Time now);
  void Set(Time now, Time reading, NodeId source, std::uint32_t depth);
  void PassOn(Time now, Time emitted, PortId except);
  void Sample(Time now);

  const NodeId node_;
  const ClockSettings settings_;
  const P7ihParameters& parameters_;
  const Isr& isr_;
  std::function<void(ControlItem&&)> send_;
  std::int64_t drift_ppb_ = 0, added_ppb_ = 0;
  std::array<Time, kLinkPorts> errors_{};  // by port, of the delay as this hub knows it

  PortMask role_ = 0;
  Time set_at_ = 0, shown_ = 0;         // the clock showed `shown_` at `set_at_`
  Time drifts_from_ = 0, drifted_ = 0;  // at another rate before, which added this much
  bool set_ = false, drifting_ = false;
  NodeId source_ = kNoNode;
  std::uint32_t depth_ = 0;
  Time emitted_ = -1;  // of the last symbol taken: by its source's clock
  Time next_symbol_ = kNever;
  Time next_sample_;
  std::map<std::pair<Time, PortId>, ControlItem> symbols_;  // on their way
  std::vector<ClockSample> samples_;
};

}  // namespace percs
