// Sweep3D (paper 004, section Sweep3D): a wavefront sweep of discrete-ordinates transport over I x
// J x K cells. I and J are split over a grid of ranks, K is done in blocks, angles in blocks;
// octant after octant a block needs the outflow of its upstream neighbours, surfaces that go from
// SPE to SPE.
//
// The arithmetic is diamond differencing with a fixed external source and isotropic scattering; a
// cell gets its additions in the same order however it is split up, so results are the same bit by
// bit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/roadrunner/cluster.h"

namespace percs::roadrunner {

// An SPE's time for one cell and angle. On the original Cell it is calibrated: 0.37 s for 10
// iterations of 50 x 50 x 50 on one Cell. There, a double-precision instruction blocks the SPE for
// 7 cycles; the PowerXCell 8i issues one in every cycle (IBM's programming handbook of each).
// Sweep3D reached 64 % of the former's peak in double precision (Petrini et al., IPDPS 2007), so
// that share of the time becomes a seventh.
inline constexpr Time kCellAngleOfCell = 42'125;
inline constexpr Time kCellAngleOfPowerXCell =
    kCellAngleOfCell * 36 / 100 + kCellAngleOfCell * 64 / 100 / 7;

struct SweepProblem {
  int i = 8, j = 8, k = 8;  // cells
  int k_block = 4;          // planes of a block, mk
  int angles = 6;           // per octant
  int angle_block = 3;      // mmi
  int iterations = 1;
  Time cell_angle = kCellAngleOfCell;

  int k_blocks() const { return k / k_block; }
  int angle_blocks() const { return angles / angle_block; }
  int steps() const { return iterations * 8 * angle_blocks() * k_blocks(); }
};

// Where a rank's tile is among Px x Py. Neighbours lie close together: a Cell is 4 x 2 ranks, a
// blade 4 x 4, a triblade 8 x 4, and triblades form a grid as square as their number allows
// (choice; the paper does not say).
struct RankGrid {
  int px = 0, py = 0;
  int x(Rank rank) const;
  int y(Rank rank) const;
  Rank At(int x, int y) const;  // -1 outside
  // Of one Cell (8), one blade (16) or whole triblades. INVALID_ARGUMENT for another number.
  static absl::StatusOr<RankGrid> ForRanks(int ranks);
};

// Cells of one direction that a part gets: the first ones get one more if it does not divide.
struct Span {
  int first = 0, size = 0;
};
Span PartOf(int cells, int parts, int part);

// Octant o: bit 0, 1, 2: against I, J, K.
struct SweepStep {
  int iteration = 0, octant = 0, angle_block = 0, k_block = 0;  // k_block in order of the sweep
};
SweepStep StepAt(const SweepProblem& problem, int step);

// INVALID_ARGUMENT if blocks do not divide, or the grid is finer than the cells.
absl::Status CheckProblem(const SweepProblem& problem, const RankGrid& grid);

using Flux = std::vector<double>;  // of every cell, [k][j][i]
Flux SerialSweep(const SweepProblem& problem);

struct SweepResult {
  Flux flux;
  Time time = 0;
  ClusterResult cluster;
};
// On SPEs with CML, real data in local stores. RESOURCE_EXHAUSTED if a tile does not fit.
absl::StatusOr<SweepResult> SweepOnCml(const RoadrunnerParameters& parameters,
                                       const SweepProblem& problem, int ranks);

// The arithmetic of one block of cells, in the order of its octant. Inflow arrays become outflow
// arrays: x [angle][k][j], y [angle][k][i], z [angle][j][i].
struct SweepBlock {
  int ni = 0, nj = 0, nk = 0;
  int octant = 0, angle_first = 0, angles = 0;
  double *x = nullptr, *y = nullptr, *z = nullptr;
  const double* source = nullptr;  // [k][j][i], from the block's first plane on
  double* flux = nullptr;
};
void Sweep(const SweepBlock& block);
// Source of the next iteration, from the flux of the last one (null: the first), at a cell of the
// whole.
double SourceAt(const SweepProblem& problem, int i, int j, int k, double flux);

}  // namespace percs::roadrunner
