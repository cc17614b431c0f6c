// Every published figure of paper 003 beside what the emulator measures, by the paper's own loops.
// docs/collectives.md says which parameters were calibrated on which rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/share_observer.h"
#include "emulator/experiments/row.h"
#include "emulator/scenario/host_parameters.h"
#include "emulator/scenario/p7ih.h"

namespace percs {

// What is measured; by default the machine that was calibrated.
struct P7ihMachine {
  HostParameters host;
  P7ihParameters parameters;
};

// Rows whose id begins with `only`; empty: all, which takes minutes. Ids are P7IH-nnn, cells of the
// bandwidth tables `fig13.p2p.8MB.4096` (layer, size, cores) and `fig14b.hybrid.64KB.8192`
// (threads), and names of what they are where nothing is published that is known here.
absl::StatusOr<std::vector<ValidationRow>> ValidateP7ih(const std::string& only = "",
                                                        const ShareObserver& progress = {},
                                                        const P7ihMachine& machine = {});

}  // namespace percs
