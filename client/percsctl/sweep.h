// What a sweep measures of each point, and its tables and plots.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/lib/sweep_grid.h"
#include "emulator/sim/run.h"

namespace percs {

// Columns keep their order.
using SweepRow = nlohmann::ordered_json;

// Of a run that ended; `error` of one that did not. Null where there is no sample.
SweepRow SweepMeasures(const RunResult& result);
SweepRow SweepError(const std::string& error);
// The columns of the axes and of the repetition, then `measures`.
SweepRow SweepTableRow(const std::vector<SweepAxis>& axes, const SweepPoint& point,
                       std::uint64_t seed, const SweepRow& measures);

std::string SweepCsv(const std::vector<SweepRow>& rows);  // RFC 4180; nothing for null
std::string SweepJsonLines(const std::vector<SweepRow>& rows);

// Draws `rows` into the SVG file `path` with gnuplot: curves over the load or the first axis of
// numbers, a line for each combination of the other axes, a panel for each measure. UNAVAILABLE if
// gnuplot is not there, INVALID_ARGUMENT if no axis has numbers.
absl::Status PlotSweep(const std::vector<SweepAxis>& axes, const std::vector<SweepRow>& rows,
                       const std::string& path);

}  // namespace percs
