// What `percsctl plot` draws, as scripts for gnuplot. Every function takes what percsctl printed as
// JSON, by the title it has in the picture; INVALID_ARGUMENT says which one has nothing to draw.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace percs {

struct PlotInput {
  std::string title, source;  // `source`: its file, for errors
  nlohmann::json json;
};
using PlotInputs = std::vector<PlotInput>;

struct PlotSize {
  std::size_t width = 900, height = 600;
};

// Of `percsctl links`: the load from every node to every other; of a large machine from drawer to
// drawer, or from supernode to supernode.
absl::StatusOr<std::string> LinksPlot(const PlotInputs& inputs, PlotSize* size);
// Of results, or of traces: how the latencies of packets are distributed.
absl::StatusOr<std::string> LatencyPlot(const PlotInputs& inputs, PlotSize* size);
// Of results: latency and accepted load over the offered one. Those with one title are one curve.
absl::StatusOr<std::string> CurvesPlot(const PlotInputs& inputs, PlotSize* size);
// Of a trace: what its packets put on links of each class over time.
absl::StatusOr<std::string> LoadPlot(const PlotInputs& inputs, PlotSize* size);
// Of a result of a trace's replay: what each rank did with its time.
absl::StatusOr<std::string> RanksPlot(const PlotInputs& inputs, PlotSize* size);

}  // namespace percs
