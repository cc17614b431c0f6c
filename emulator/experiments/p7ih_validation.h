// Every published figure of paper 003 beside what the emulator measures, by the paper's own loops.
// docs/collectives.md says which parameters were calibrated on which rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/base/share_observer.h"
#include "emulator/experiments/row.h"

namespace percs {

// Rows whose id begins with `only`; empty: all, which takes minutes. Ids are P7IH-nnn, cells of the
// bandwidth tables `fig13.p2p.8MB.4096` (layer, size, cores) and `fig14b.hybrid.64KB.8192`
// (threads), and names of what they are where nothing is published that is known here.
absl::StatusOr<std::vector<ValidationRow>> ValidateP7ih(const std::string& only = "",
                                                        const ShareObserver& progress = {});

}  // namespace percs
