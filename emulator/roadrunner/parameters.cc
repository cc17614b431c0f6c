#include "emulator/roadrunner/parameters.h"

#include <utility>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs::roadrunner {

RoadrunnerParameters DefaultParameters() {
  RoadrunnerParameters p;
  auto blade = cell::ParametersOfBlade("QS22");
  PERCS_CHECK(blade.ok());
  p.blade = *std::move(blade);
  return p;
}

absl::Status CheckParameters(const RoadrunnerParameters& p) {
  const auto bad = [](const std::string& text) { return absl::InvalidArgumentError(text); };
  const std::pair<const char*, const LayerParameters*> layers[] = {
      {"dacs", &p.dacs}, {"mpi", &p.mpi}, {"mpi_shared", &p.mpi_shared}};
  for (const auto& [name, layer] : layers) {
    if (!(layer->bytes_per_ns > 0)) {
      return bad(
          fmt::format("{}.bytes_per_ns is {}; it must be above 0", name, layer->bytes_per_ns));
    }
    if (layer->overhead < 0 || layer->latency < 2 * layer->overhead) {
      return bad(fmt::format("{}.latency is {}; it holds the overhead of both ends, 2 x {}", name,
                             FormatTime(layer->latency), FormatTime(layer->overhead)));
    }
  }
  const CmlParameters& c = p.cml;
  const std::pair<const char*, std::int64_t> positive[] = {
      {"cml.tags", c.tags},
      {"cml.send_slots", c.send_slots},
      {"cml.receive_slots", c.receive_slots},
      {"infiniband.crossbar", p.infiniband.crossbar},
      {"infiniband.retry", p.infiniband.retry}};
  for (const auto& [name, value] : positive) {
    if (value <= 0) return bad(fmt::format("{} is {}; it must be above 0", name, value));
  }
  if (c.send_slots > 32 || c.receive_slots > 32) {
    return bad(fmt::format("cml.send_slots {} and receive_slots {}; a queue has at most 32",
                           c.send_slots, c.receive_slots));
  }
  if (!(p.infiniband.bytes_per_ns > 0)) return bad("infiniband.bytes_per_ns must be above 0");
  if (c.mem_domain_cells != 1 && c.mem_domain_cells != 2) {
    return bad(
        fmt::format("cml.mem_domain_cells is {}; a memory domain is 1 Cell or the 2 of a blade",
                    c.mem_domain_cells));
  }
  return cell::CheckBladeParameters(p.blade);
}

}  // namespace percs::roadrunner
