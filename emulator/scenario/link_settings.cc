#include "emulator/scenario/link_settings.h"

#include <cmath>

#include "emulator/base/payload.h"

namespace percs {
namespace {

FaultSpec Setting(Time at, LinkEnd link, FaultKind kind, bool mends) {
  FaultSpec spec;
  spec.at = at;
  spec.kind = kind;
  spec.select.link = link;
  spec.sets = mends ? FaultSets::kMended : FaultSets::kBroken;
  return spec;
}

FaultSpec OneWay(Time at, LinkEnd sender, FaultKind kind, bool mends) {
  FaultSpec spec = Setting(at, sender, kind, mends);
  spec.direction = FaultDirection::kForward;
  return spec;
}

}  // namespace

double FlitErrorRate(double bit_error_rate) {
  constexpr int kFlitBits = 8 * kFlitBytes;
  return -std::expm1(kFlitBits * std::log1p(-bit_error_rate));
}

FaultSpec SetLinkDown(Time at, LinkEnd link) {
  return Setting(at, link, FaultKind::kLinkDown, /*mends=*/false);
}

FaultSpec SetLinkUp(Time at, LinkEnd link) {
  return Setting(at, link, FaultKind::kLinkDown, /*mends=*/true);
}

FaultSpec SetErrorRate(Time at, LinkEnd sender, double flit_error_rate) {
  FaultSpec spec = OneWay(at, sender, FaultKind::kBitErrors, flit_error_rate == 0);
  spec.flit_error_rate = flit_error_rate;
  return spec;
}

FaultSpec SetCorruptNext(Time at, LinkEnd sender, std::uint32_t count) {
  FaultSpec spec = OneWay(at, sender, FaultKind::kCorruptNext, count == 0);
  spec.corrupt = count;
  return spec;
}

FaultSpec SetLanesLost(Time at, LinkEnd sender, std::uint32_t count) {
  FaultSpec spec = OneWay(at, sender, FaultKind::kLaneLoss, count == 0);
  spec.lanes = count;
  return spec;
}

FaultSpec SetLatency(Time at, LinkEnd sender, Time latency) {
  FaultSpec spec = OneWay(at, sender, FaultKind::kLatency, latency == 0);
  spec.latency = latency;
  return spec;
}

}  // namespace percs
