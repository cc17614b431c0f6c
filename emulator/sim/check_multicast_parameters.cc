// Whether hubs can replicate multicast packets at all.
#include "emulator/sim/fabric.h"
#include "fmt/format.h"

namespace percs {

absl::Status CheckMulticastParameters(std::size_t groups, const P7ihParameters& parameters) {
  if (groups == 0) return absl::OkStatus();
  for (const LinkClass c : {LinkClass::kLl, LinkClass::kLr, LinkClass::kD}) {
    if (parameters.link(c).buffer_flits >= kPacketFlitsMax) continue;
    return absl::InvalidArgumentError(fmt::format(
        "multicast packets are replicated from buffers that hold them whole, {} flits, but those "
        "of {} links "
        "hold {}; write at least {}",
        kPacketFlitsMax, ClassName(c), parameters.link(c).buffer_flits, kPacketFlitsMax));
  }
  return CheckMulticastTableSize(groups, parameters.multicast_table_entries);
}

}  // namespace percs
