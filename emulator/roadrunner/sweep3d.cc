#include "emulator/roadrunner/sweep3d.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

constexpr double kTotal = 1.0, kScatter = 0.5;  // cross sections

// Octants of one corner of the I-J plane follow each other, both ways along K; corners as in the
// real code, so that the pipeline fills and drains in 2 (Px - 1) + 4 (Py - 1) blocks (Hoisie et
// al., reference 41 of paper 004).
constexpr int kOctants[8] = {0, 4, 2, 6, 1, 5, 3, 7};

// Direction cosines over cell width, and weight, of angle m of an octant: a made-up but fixed
// quadrature.
struct Angle {
  double mu, eta, xi, weight;
};
Angle AngleAt(int m) {
  const double a = 0.2 + 0.1 * m;
  return {a, 0.9 - 0.1 * m, 0.3 + 0.05 * m, 0.125 / (1 + m)};
}

int Index(int i, int size, bool against) { return against ? size - 1 - i : i; }

}  // namespace

int RankGrid::x(Rank rank) const {
  if (px * py < kSpesPerTriblade) return rank % 4;
  const int columns = px / 8, inside = rank % kSpesPerTriblade;
  return NodeOf(rank) % columns * 8 + inside / cell::kSpes * 4 + inside % 4;
}
int RankGrid::y(Rank rank) const {
  if (px * py < kSpesPerTriblade) return rank / 4;
  return NodeOf(rank) / (px / 8) * 4 + rank % cell::kSpes / 4;
}
Rank RankGrid::At(int x, int y) const {
  if (x < 0 || y < 0 || x >= px || y >= py) return -1;
  if (px * py < kSpesPerTriblade) return y * 4 + x;
  const int node = y / 4 * (px / 8) + x / 8;
  return node * kSpesPerTriblade + x % 8 / 4 * cell::kSpes + y % 4 * 4 + x % 4;
}

absl::StatusOr<RankGrid> RankGrid::ForRanks(int ranks) {
  if (ranks == cell::kSpesPerCell) return RankGrid{4, 2};
  if (ranks == cell::kSpes) return RankGrid{4, 4};
  if (ranks < 1 || ranks % kSpesPerTriblade != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "Sweep3D on {} ranks; it takes one Cell (8), one blade (16) or whole triblades (32 each)",
        ranks));
  }
  const int nodes = ranks / kSpesPerTriblade;
  RankGrid best{8 * nodes, 4};
  for (int columns = 1; columns <= nodes; ++columns) {
    if (nodes % columns != 0) continue;
    const RankGrid grid{8 * columns, 4 * (nodes / columns)};
    if (grid.px + grid.py < best.px + best.py) best = grid;
  }
  return best;
}

Span PartOf(int cells, int parts, int part) {
  const int base = cells / parts, more = cells % parts;
  return {part * base + std::min(part, more), base + (part < more ? 1 : 0)};
}

SweepStep StepAt(const SweepProblem& p, int step) {
  SweepStep s;
  s.k_block = step % p.k_blocks();
  step /= p.k_blocks();
  s.angle_block = step % p.angle_blocks();
  step /= p.angle_blocks();
  s.octant = kOctants[step % 8];
  s.iteration = step / 8;
  return s;
}

absl::Status CheckProblem(const SweepProblem& p, const RankGrid& grid) {
  const auto bad = [](const std::string& text) { return absl::InvalidArgumentError(text); };
  if (p.i < 1 || p.j < 1 || p.k < 1 || p.iterations < 1) {
    return bad(fmt::format("{} x {} x {} cells, {} iterations; all must be above 0", p.i, p.j, p.k,
                           p.iterations));
  }
  if (p.k_block < 1 || p.k % p.k_block != 0) {
    return bad(fmt::format("{} planes in blocks of {}; blocks must divide them", p.k, p.k_block));
  }
  if (p.angle_block < 1 || p.angles < 1 || p.angles > 6 || p.angles % p.angle_block != 0) {
    return bad(
        fmt::format("{} angles in blocks of {}; there are 1 to 6, and blocks must divide them",
                    p.angles, p.angle_block));
  }
  if (grid.px > p.i || grid.py > p.j) {
    return bad(fmt::format("{} x {} ranks for {} x {} cells; every rank needs a cell", grid.px,
                           grid.py, p.i, p.j));
  }
  return absl::OkStatus();
}

double SourceAt(const SweepProblem& p, int i, int j, int k, double flux) {
  const double external = 1.0 + 0.25 * ((i * 7 + j * 3 + k) % 5) / (p.i + p.j + p.k);
  return external + kScatter * flux;
}

void Sweep(const SweepBlock& b) {
  for (int m = 0; m < b.angles; ++m) {
    const Angle a = AngleAt(b.angle_first + m);
    const double cx = 2 * a.mu, cy = 2 * a.eta, cz = 2 * a.xi;
    const double inverse = 1.0 / (kTotal + cx + cy + cz);
    for (int kk = 0; kk < b.nk; ++kk) {
      const int k = Index(kk, b.nk, b.octant & 4);
      for (int jj = 0; jj < b.nj; ++jj) {
        const int j = Index(jj, b.nj, b.octant & 2);
        double& x = b.x[(m * b.nk + k) * b.nj + j];
        for (int ii = 0; ii < b.ni; ++ii) {
          const int i = Index(ii, b.ni, b.octant & 1), cell = (k * b.nj + j) * b.ni + i;
          double& y = b.y[(m * b.nk + k) * b.ni + i];
          double& z = b.z[(m * b.nj + j) * b.ni + i];
          const double psi = (b.source[cell] + cx * x + cy * y + cz * z) * inverse;
          x = 2 * psi - x;
          y = 2 * psi - y;
          z = 2 * psi - z;
          b.flux[cell] += a.weight * psi;
        }
      }
    }
  }
}

Flux SerialSweep(const SweepProblem& p) {
  const auto cells = static_cast<std::size_t>(p.i * p.j * p.k);
  Flux flux(cells, 0.0);
  std::vector<double> source(cells);
  for (int n = 0; n < p.iterations; ++n) {
    for (int c = 0; c < p.i * p.j * p.k; ++c) {
      const auto at = static_cast<std::size_t>(c);
      source[at] = SourceAt(p, c % p.i, c / p.i % p.j, c / p.i / p.j, flux[at]);
    }
    std::fill(flux.begin(), flux.end(), 0.0);
    for (const int octant : kOctants) {
      std::vector<double> x(static_cast<std::size_t>(p.angles * p.k * p.j), 0.0);
      std::vector<double> y(static_cast<std::size_t>(p.angles * p.k * p.i), 0.0);
      std::vector<double> z(static_cast<std::size_t>(p.angles * p.j * p.i), 0.0);
      Sweep({p.i, p.j, p.k, octant, 0, p.angles, x.data(), y.data(), z.data(), source.data(),
             flux.data()});
    }
  }
  return flux;
}

namespace {

// A rank's tile in its local store, and its part of the sweep.
class SweepRank {
 public:
  SweepRank(const SweepProblem& problem, const RankGrid& grid, Rank rank)
      : p_(problem),
        grid_(grid),
        rank_(rank),
        i_(PartOf(problem.i, grid.px, grid.x(rank))),
        j_(PartOf(problem.j, grid.py, grid.y(rank))) {}

  std::uint32_t heap() const {
    return 2 * Room(i_.size * j_.size * p_.k) + Room(XCells()) + Room(YCells()) + Room(ZCells());
  }
  Task<> Run(Cml& mpi, Flux* result) {
    Place(mpi.heap());
    co_await mpi.Init();
    std::fill_n(Doubles(mpi, flux_), i_.size * j_.size * p_.k, 0.0);
    for (int step = 0; step < p_.steps(); ++step) {
      const SweepStep s = StepAt(p_, step);
      if (step % (p_.steps() / p_.iterations) == 0) NewSource(mpi);
      co_await Block(mpi, s);
    }
    co_await mpi.Finalize();
    for (int k = 0; k < p_.k; ++k) {
      for (int j = 0; j < j_.size; ++j) {
        const double* from = Doubles(mpi, flux_) + (k * j_.size + j) * i_.size;
        std::copy_n(from, i_.size, result->begin() + (k * p_.j + j_.first + j) * p_.i + i_.first);
      }
    }
  }

 private:
  static std::uint32_t Room(int doubles) {
    return (static_cast<std::uint32_t>(doubles) * 8 + 127) / 128 * 128;
  }
  int XCells() const { return p_.angle_block * p_.k_block * j_.size; }
  int YCells() const { return p_.angle_block * p_.k_block * i_.size; }
  int ZCells() const { return p_.angle_block * j_.size * i_.size; }
  static double* Doubles(Cml& mpi, LsAddress at) { return reinterpret_cast<double*>(mpi.at(at)); }
  void Place(LsAddress heap) {
    source_ = heap;
    flux_ = source_ + Room(i_.size * j_.size * p_.k);
    x_ = flux_ + Room(i_.size * j_.size * p_.k);
    y_ = x_ + Room(XCells());
    z_ = y_ + Room(YCells());
  }
  void NewSource(Cml& mpi) {
    double* const source = Doubles(mpi, source_);
    double* const flux = Doubles(mpi, flux_);
    for (int c = 0; c < i_.size * j_.size * p_.k; ++c) {
      source[c] = SourceAt(p_, i_.first + c % i_.size, j_.first + c / i_.size % j_.size,
                           c / i_.size / j_.size, flux[c]);
      flux[c] = 0;
    }
  }

  Task<> Block(Cml& mpi, const SweepStep& s) {
    const int dx = s.octant & 1 ? -1 : 1, dy = s.octant & 2 ? -1 : 1;
    const int px = grid_.x(rank_), py = grid_.y(rank_);
    const Rank from_x = grid_.At(px - dx, py), from_y = grid_.At(px, py - dy);
    const Rank to_x = grid_.At(px + dx, py), to_y = grid_.At(px, py + dy);
    const auto x_bytes = static_cast<std::uint32_t>(XCells() * 8);
    const auto y_bytes = static_cast<std::uint32_t>(YCells() * 8);
    if (s.k_block == 0) std::fill_n(Doubles(mpi, z_), ZCells(), 0.0);
    std::fill_n(Doubles(mpi, x_), XCells(), 0.0);
    std::fill_n(Doubles(mpi, y_), YCells(), 0.0);
    if (from_x >= 0) co_await mpi.Recv(x_, x_bytes, from_x, 0);
    if (from_y >= 0) co_await mpi.Recv(y_, y_bytes, from_y, 1);
    const int block = s.octant & 4 ? p_.k_blocks() - 1 - s.k_block : s.k_block;
    const int plane = block * p_.k_block * j_.size * i_.size;
    Sweep({i_.size, j_.size, p_.k_block, s.octant, s.angle_block * p_.angle_block, p_.angle_block,
           Doubles(mpi, x_), Doubles(mpi, y_), Doubles(mpi, z_), Doubles(mpi, source_) + plane,
           Doubles(mpi, flux_) + plane});
    co_await mpi.spe().Compute(p_.cell_angle * i_.size * j_.size * p_.k_block * p_.angle_block);
    if (to_x >= 0) co_await mpi.Send(x_, x_bytes, to_x, 0);
    if (to_y >= 0) co_await mpi.Send(y_, y_bytes, to_y, 1);
  }

  const SweepProblem& p_;
  const RankGrid& grid_;
  const Rank rank_;
  const Span i_, j_;
  LsAddress source_ = 0, flux_ = 0, x_ = 0, y_ = 0, z_ = 0;
};

}  // namespace

absl::StatusOr<SweepResult> SweepOnCml(const RoadrunnerParameters& parameters,
                                       const SweepProblem& problem, int ranks) {
  const auto grid = RankGrid::ForRanks(ranks);
  if (!grid.ok()) return grid.status();
  if (absl::Status s = CheckProblem(problem, *grid); !s.ok()) return s;
  auto cluster =
      Cluster::Create(parameters, {(ranks + kSpesPerTriblade - 1) / kSpesPerTriblade, ranks});
  if (!cluster.ok()) return cluster.status();
  SweepResult result;
  result.flux.resize(static_cast<std::size_t>(problem.i * problem.j * problem.k));
  std::vector<std::unique_ptr<SweepRank>> all;
  std::uint32_t heap = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_unique<SweepRank>(problem, *grid, rank));
    heap = std::max(heap, all.back()->heap());
  }
  // Footprint of the paper's executable with CML in it (RR-055).
  SpeProgramImage image;
  image.functions = {"MPI_Init", "MPI_Finalize", "MPI_Send", "MPI_Recv"};
  image.text = 49'800 - 5'120;
  image.data = 800;
  image.bss = 4'400;
  image.heap = heap;
  const absl::Status launched = (*cluster)->LaunchAll(image, [&](Cml& mpi) {
    return all[static_cast<std::size_t>(mpi.rank())]->Run(mpi, &result.flux);
  });
  if (!launched.ok()) return launched;
  result.cluster = (*cluster)->Run();
  if (!result.cluster.status.ok()) return result.cluster.status;
  result.time = result.cluster.time;
  return result;
}

}  // namespace percs::roadrunner
