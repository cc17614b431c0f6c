#include "emulator/scenario/link_impairment.h"

#include <cmath>

#include "emulator/base/payload.h"
#include "fmt/format.h"

namespace percs {

double FlitErrorRate(double bit_error_rate) {
  constexpr int kFlitBits = 8 * kFlitBytes;
  return -std::expm1(kFlitBits * std::log1p(-bit_error_rate));
}

absl::Status CheckImpairment(const LinkImpairment& impairment, const Topology& topology,
                             const P7ihParameters& parameters) {
  const LinkEnd sender = impairment.sender;
  if (topology.Peer(sender.node, sender.port).node == kNoNode) {
    return absl::InvalidArgumentError(
        fmt::format("{}: nothing is plugged in there", topology.LinkName(sender)));
  }
  const double rate = impairment.flit_error_rate;
  if (!(rate >= 0 && rate <= 1)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a flit error rate of {}; it is a probability, 0 to 1",
                    topology.LinkName(sender), rate));
  }
  if (impairment.latency < 0 || impairment.latency > kLatencyMax) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} of added latency; write 0 to {}", topology.LinkName(sender),
                    FormatTime(impairment.latency), FormatTime(kLatencyMax)));
  }
  const LinkParameters& link = parameters.link(topology.ClassOfLink(sender));
  const int lanes = link.lanes + link.spare_lanes;
  if (impairment.kind == LinkImpairment::Kind::kLanesLost &&
      impairment.count > static_cast<std::uint32_t>(lanes)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} lanes lost, but {} links have {} + {} spare; write 0 to {}",
                    topology.LinkName(sender), impairment.count,
                    ClassName(topology.ClassOfLink(sender)), link.lanes, link.spare_lanes, lanes));
  }
  return absl::OkStatus();
}

}  // namespace percs
