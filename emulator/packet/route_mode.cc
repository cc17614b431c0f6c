#include "emulator/packet/route_mode.h"

#include "absl/status/status.h"
#include "fmt/format.h"

namespace percs {

absl::Status CheckRouteSetting(const RouteSetting& setting, int supernodes) {
  const auto error = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  const char* mode = RouteModeName(setting.mode);
  const bool picks = setting.mode == RouteMode::kHwIndirect || setting.mode == RouteMode::kAdaptive;
  if (setting.middle != kNoMiddle && setting.mode != RouteMode::kSwIndirect) {
    return error(
        fmt::format("middle_supernode is only for sw_indirect, not for {}; remove it or write "
                    "`mode: sw_indirect`",
                    mode));
  }
  if (setting.middle != kNoMiddle && setting.middle >= supernodes) {
    return error(fmt::format("middle_supernode {} does not exist; there are supernodes 0 to {}",
                             setting.middle, supernodes - 1));
  }
  if (setting.adaptive_threshold != 0 && setting.mode != RouteMode::kAdaptive) {
    return error(
        fmt::format("adaptive_threshold is only for adaptive, not for {}; remove it", mode));
  }
  if (setting.adaptive != AdaptiveAlgorithm::kUgalL && setting.mode != RouteMode::kAdaptive) {
    return error(fmt::format(
        "adaptive: {} is only for mode adaptive, not for {}; remove it or write `mode: adaptive`",
        AdaptiveName(setting.adaptive), mode));
  }
  if ((picks || setting.mode == RouteMode::kSwIndirect) && supernodes < 3) {
    return error(fmt::format(
        "{} needs a middle supernode other than those of source and destination, so at least 3; "
        "this machine has {}",
        mode, supernodes));
  }
  return absl::OkStatus();
}

absl::Status CheckReports(const RouteSetting& setting, CongestionReport reports) {
  if (setting.reports() <= reports) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a packet's route is adaptive by {0}, for which hubs have to tell each other about their D "
      "links; write `routing: {{fifo: {{mode: adaptive, adaptive: {0}}}}}`, too",
      AdaptiveName(setting.adaptive)));
}

}  // namespace percs
