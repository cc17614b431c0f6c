// Where the switches of a network of switches stand in a drawing.
#pragma once

#include <string>
#include <vector>

namespace percs {

// In steps between neighbours, to the right and downward; both from 0 on.
struct Spot {
  double x = 0, y = 0;
  bool operator==(const Spot&) const = default;
};

// By switch, as `names` (SwitchGraph::name): a torus or a HyperX of two dimensions as a grid, of
// more as grids side by side; a fat tree by level, with its leaves below; anything else, also a
// grid with gaps, in a circle. Empty for the names of another machine: hubs, blades and crossbars.
std::vector<Spot> SpotsOfSwitches(const std::vector<std::string>& names);

}  // namespace percs
