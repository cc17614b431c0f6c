#include "emulator/cell/blade_parameters.h"

#include <utility>

#include "fmt/format.h"

namespace percs::cell {

absl::StatusOr<BladeParameters> ParametersOfBlade(std::string_view type) {
  BladeParameters p;
  p.type = std::string(type);
  if (type == "QS20") return p;
  if (type == "QS21") {
    p.memory_bytes = std::uint64_t{2} << 30;
    return p;
  }
  if (type == "QS22") {
    p.memory_bytes = std::uint64_t{8} << 30;
    p.link.line_time = 10'240;         // 25 GB/s over both directions
    p.link.single_line_time = 20'480;  // 6.25 GB/s
    return p;
  }
  return absl::InvalidArgumentError(
      fmt::format("unknown blade type '{}'; it is one of QS20, QS21, QS22", type));
}

absl::Status CheckBladeParameters(const BladeParameters& p) {
  const std::pair<const char*, std::int64_t> positive[] = {
      {"eib.cycle", p.eib.cycle},
      {"eib.start_interval", p.eib.start_interval},
      {"eib.transfers_per_ring", p.eib.transfers_per_ring},
      {"link.line_time", p.link.line_time},
      {"link.latency", p.link.latency},
      {"link.buffer_lines", p.link.buffer_lines},
      {"issue", p.issue},
      {"command", p.command},
      {"queue_depth", p.queue_depth},
      {"mailbox_depth", p.mailbox_depth},
      {"signal_read", p.signal_read},
  };
  for (const auto& [name, value] : positive) {
    if (value <= 0) {
      return absl::InvalidArgumentError(
          fmt::format("blade parameter {} is {}; it must be above 0", name, value));
    }
  }
  if (p.eib.hops_max < 6 || p.eib.hops_max > 11) {
    return absl::InvalidArgumentError(fmt::format(
        "blade parameter eib.hops_max is {}; it must be 6 to 11, or units cannot reach each other",
        p.eib.hops_max));
  }
  if (p.link.single_line_time < p.link.line_time) {
    return absl::InvalidArgumentError(
        fmt::format("blade parameter link.single_line_time is {} ps; one DMA cannot be faster than "
                    "the link ({} ps)",
                    p.link.single_line_time, p.link.line_time));
  }
  if (p.memory_bytes == 0 || p.memory_bytes % (2 * kLineBytes) != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "blade parameter memory_bytes is {}; it must be a multiple of 256", p.memory_bytes));
  }
  return absl::OkStatus();
}

}  // namespace percs::cell
