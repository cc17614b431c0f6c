#include "emulator/management/active_faults.h"

#include <algorithm>

#include "emulator/management/loss.h"

namespace percs {

void ActiveFaults::Apply(const FaultAction& action, PortId port) {
  const std::uint32_t ended = action.begins ? action.replaces : action.fault;
  const auto it = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
    return held.action.fault == ended && held.action.kind == action.kind &&
           held.action.end == action.end;
  });
  if (it != held_.end() && (!action.begins || action.replaces != 0)) held_.erase(it);
  if (action.begins) held_.push_back({action, port});
}

void ActiveFaults::EndLosses(PortId port, std::uint32_t fault, Time at) {
  std::erase_if(held_, [&](const Held& held) {
    const bool of_loss = held.port == port && held.action.kind == FaultAction::Kind::kLinkDown &&
                         held.action.fault >= kLossNumbers;
    return of_loss && (held.action.fault == fault || held.action.at < at);
  });
}

bool ActiveFaults::Any(FaultAction::Kind kind, PortId port) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.action.kind == kind && held.port == port;
  });
}

double ActiveFaults::ErrorRate(LinkEnd sender) const {
  double rate = 0;
  for (const Held& held : held_) {
    if (held.action.kind != FaultAction::Kind::kErrorRate || !(held.action.end == sender)) continue;
    rate = rate == 0 ? held.action.rate : 1 - (1 - rate) * (1 - held.action.rate);
  }
  return rate;
}

std::uint32_t ActiveFaults::LanesLost(LinkEnd sender, int lanes_max) const {
  std::uint64_t lanes = 0;
  for (const Held& held : held_) {
    if (held.action.kind == FaultAction::Kind::kLanesLost && held.action.end == sender)
      lanes += held.action.count;
  }
  return static_cast<std::uint32_t>(std::min(lanes, static_cast<std::uint64_t>(lanes_max)));
}

Time ActiveFaults::Latency(LinkEnd sender) const {
  Time latency = 0;
  for (const Held& held : held_) {
    if (held.action.kind == FaultAction::Kind::kLatency && held.action.end == sender)
      latency += held.action.value;
  }
  return latency;
}

std::vector<bool> ActiveFaults::WindowsDown(int windows_per_hfi) const {
  std::vector<bool> down;
  for (const Held& held : held_) {
    const bool hfi = held.action.kind == FaultAction::Kind::kHfiDown;
    if (!hfi && held.action.kind != FaultAction::Kind::kWindowDown) continue;
    down.resize(static_cast<std::size_t>(kHfisPerHub * windows_per_hfi));
    const std::size_t count = hfi ? static_cast<std::size_t>(windows_per_hfi) : 1;
    for (std::size_t i = 0; i < count; ++i) down[held.action.count * count + i] = true;
  }
  return down;
}

std::int64_t ActiveFaults::ClockDrift() const {
  std::int64_t drift = 0;
  for (const Held& held : held_) {
    if (held.action.kind == FaultAction::Kind::kClockDrift) drift += held.action.value;
  }
  return drift;
}

unsigned ActiveFaults::PcieUnplugged() const {
  unsigned ports = 0;
  for (const Held& held : held_) {
    if (held.action.kind == FaultAction::Kind::kPcieUnplugged) ports |= 1u << held.action.count;
  }
  return ports;
}

}  // namespace percs
