#include "emulator/experiments/roadrunner_validation.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "emulator/experiments/roadrunner_perf.h"
#include "emulator/roadrunner/accelerator.h"
#include "fmt/format.h"

namespace percs::roadrunner {
namespace {

using Kind = RowKind;

class Validation {
 public:
  Validation(const RoadrunnerParameters& parameters, const ShareObserver& progress)
      : p_(parameters), progress_(progress) {}
  absl::StatusOr<std::vector<ValidationRow>> Run(const std::string& only) {
    const auto wanted = [&only](std::initializer_list<const char*> ids) {
      return std::any_of(ids.begin(), ids.end(), [&only](const std::string& id) {
        return id.rfind(only, 0) == 0 || only.rfind(id, 0) == 0;
      });
    };
    Structure();
    Layers();
    Messages();
    if (wanted({"RR-048", "RR-049", "RR-050", "RR-051"})) OneCell();
    if (wanted({"RR-052", "RR-053"})) FullScale();
    rows_.erase(
        std::remove_if(rows_.begin(), rows_.end(),
                       [&only](const ValidationRow& row) { return row.id.rfind(only, 0) != 0; }),
        rows_.end());
    if (!status_.ok()) return status_;
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const ValidationRow& a, const ValidationRow& b) { return a.id < b.id; });
    return std::move(rows_);
  }

 private:
  void At(std::string id, std::string quantity, double published, double emulated, std::string unit,
          Kind kind) {
    rows_.push_back({std::move(id),
                     std::move(quantity),
                     PublishedFigure::At(published),
                     emulated,
                     std::move(unit),
                     kind,
                     {}});
  }
  // The machine is built so.
  void Built(std::string id, std::string quantity, double published, double emulated,
             std::string unit) {
    At(std::move(id), std::move(quantity), published, emulated, std::move(unit), Kind::kRestated);
  }
  void Unpublished(std::string id, std::string quantity, PublishedFigure words, double emulated,
                   std::string unit) {
    rows_.push_back({std::move(id),
                     std::move(quantity),
                     std::move(words),
                     emulated,
                     std::move(unit),
                     Kind::kPredicted,
                     {}});
  }
  template <typename T>
  T Take(absl::StatusOr<T> value) {
    if (value.ok()) return *std::move(value);
    if (status_.ok()) status_ = value.status();
    return T{};
  }
  double Microseconds(Rank a, Rank b, std::uint32_t bytes) {
    return static_cast<double>(Take(MeasurePerf(p_, a, b, bytes)).half_round_trip) * 1e-6;
  }
  double Gigabytes(Rank a, Rank b) {
    return Take(MeasurePerf(p_, a, b, kPerfBytesMax)).gigabytes_per_second;
  }

  void Structure();
  void Layers();
  void Messages();
  double Latencies(Protocol protocol);
  void OneCell();
  void FullScale();

  const RoadrunnerParameters p_;
  const ShareObserver& progress_;  // nearly all of the time is that of FullScale
  absl::Status status_;
  std::vector<ValidationRow> rows_;
};

void Validation::Structure() {
  auto built = IbTree::WithTriblades(3060);
  if (!built.ok()) {
    status_ = built.status();
    return;
  }
  const IbTree& tree = *built;
  Built("RR-001", "compute nodes", 3060, tree.triblades(), "nodes");
  Built("RR-002", "compute units", 17, tree.cus(), "CUs");
  int in_first = 0, external = 0, uplinks = 0;
  for (int t = 0; t < tree.triblades(); ++t) in_first += tree.cu_of(t) == 0;
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    for (int port = 0; port < kCrossbarPorts; ++port) {
      const int peer = tree.Peer(leaf, port);
      const bool spine = peer >= 0 && peer < kCrossbarsPerSwitch;
      external += !spine;
      uplinks += !spine && peer >= 0;
    }
  }
  Built("RR-003", "nodes per CU", 180, in_first, "nodes");
  Built("RR-004", "ports of a CU's switch", 288, external, "ports");
  const int inter_cu = tree.crossbars() / kCrossbarsPerSwitch - tree.cus();
  Built("RR-005", "inter-CU switches", 8, inter_cu, "switches");
  const bool more = IbTree::Create(std::vector<int>(25, 180)).ok();
  Built("RR-006", "CUs supported", 24,
        IbTree::Create(std::vector<int>(24, 180)).ok() && !more ? 24 : 0, "CUs");
  Built("RR-007", "crossbars per switch", 36, kCrossbarsPerSwitch, "chips");
  Built("RR-030", "SPEs in the system", kFullScaleRanks, tree.triblades() * kSpesPerTriblade,
        "SPEs");
  Built("RR-031", "total cores", 122'400,
        tree.triblades() * (kSpesPerTriblade + 2 * kCellsPerTriblade), "cores");
  Built("RR-032", "uplinks per CU", 96, uplinks, "links");
  Built("RR-033", "MPI functions", 14, kMpiFunctions, "functions");
  SpeProgramImage image;
  const auto control = Link(image);
  image.functions = {"MPI_Init", "MPI_Finalize", "MPI_Send", "MPI_Recv"};
  const auto four = Link(image);
  Built("RR-034", "local store of init, finalise and point to point", 5,
        (four->cml_bytes - control->cml_bytes) / 1024.0, "KB");
  Built("RR-035", "message descriptor", 64, sizeof(Descriptor), "B");
  // The paper's Sweep3D: text, data and bss as they are in its executable, CML's part among them.
  SpeProgramImage sweep;
  const auto kilobytes = [](double kb) { return static_cast<std::uint32_t>(kb * 1024); };
  sweep.text = kilobytes(49.8) - (four->cml_bytes - control->cml_bytes);
  sweep.data = kilobytes(0.8);
  sweep.bss = kilobytes(4.4);
  sweep.stack = 0;
  sweep.functions = image.functions;
  const auto linked = Link(sweep);
  const double used = (cell::kLocalStoreBytes - kControlBytes - linked->free_bytes) / 1024.0;
  Built("RR-055", "Sweep3D's executable in the local store", 55, used, "KB");
  Built("RR-056", "... and what is left of 256 KB for data, CML's control block among it", 201,
        256 - used, "KB");
  Built("RR-036", "largest message that the PPE copies", 128, p_.cml.copy_bytes_max, "B");
  Built("RR-046", "largest benchmark message that fits", 128,
        Link(FullImage(kPerfBytesMax)).ok() && !Link(FullImage(2 * kPerfBytesMax)).ok() ? 128 : 0,
        "KB");
}

// Slope of each layer over bytes: two empty machines, one message each.
void Validation::Layers() {
  constexpr std::uint64_t kBytes = 1'000'000;
  const auto path = [this] { return HostPath(p_, *IbTree::WithTriblades(2)); };
  const auto rate = [](Time with, Time without) {
    return static_cast<double>(kBytes) * 1000 / static_cast<double>(with - without);
  };
  Built("RR-025", "PCIe x8, each way", 2, rate(path().DacsUp(0, kBytes, 0), path().DacsUp(0, 0, 0)),
        "GB/s");
  Built("RR-027", "InfiniBand 4X DDR, each way", 2,
        rate(*path().Mpi(0, 4, kBytes, 0), *path().Mpi(0, 4, 0, 0)), "GB/s");
  HostPath legs = path();
  const Time up = legs.DacsUp(0, 0, p_.dacs.overhead);
  const Time down = legs.DacsDown(0, 4, 0, *legs.Mpi(0, 4, 0, up)) + p_.dacs.overhead;
  Built("RR-038", "two DaCS and one MPI transfer: their latencies are set so", 9.24,
        static_cast<double>(down) * 1e-6, "us");
}

void Validation::Messages() {
  const double network = Microseconds(0, 32, 0);
  Built("RR-037", "CML latency between triblades: ppe_handle is set so", 11.77, network, "us");
  Built("RR-039", "of which not DaCS or MPI", 2.53, network - 9.24, "us");
  Built("RR-040", "share of DaCS and MPI", 78.5, 9.24 / network * 100, "%");
  rows_.push_back({"RR-041",
                   "DMA put initiation: less than",
                   PublishedFigure::AtMost(100),
                   static_cast<double>(p_.blade.issue + p_.blade.command) * 3.2e-3,
                   "cycles",
                   Kind::kRestated,
                   {}});
  At("RR-043", "CML bandwidth on a chip, 128 KB: near", 25.6, Gigabytes(0, 1), "GB/s",
     Kind::kPredicted);
  At("RR-043.blade", "CML bandwidth on a blade, 128 KB: near", 6.25, Gigabytes(0, 8), "GB/s",
     Kind::kPredicted);
  Unpublished("RR-044", "CML bandwidth between blades of a triblade, 128 KB",
              PublishedFigure::Words("less than 2"), Gigabytes(0, 16), "GB/s");
  // Three transfers of 2 GB/s, one after another: what the parameters say.
  Built("RR-045", "CML bandwidth between triblades, 128 KB: at most", 0.667, Gigabytes(0, 32),
        "GB/s");
  Built("RR-059", "latencies of a message that the receiver begins", 2,
        Latencies(Protocol::kReceiverInitiated), "latencies");
  Built("RR-059.sender", "... and of one that the sender begins", 3,
        Latencies(Protocol::kSenderInitiated), "latencies");
  const auto latency = [this](std::string id, std::string quantity, Rank to) {
    Unpublished(std::move(id), std::move(quantity), PublishedFigure::None(), Microseconds(0, to, 0),
                "us");
  };
  latency("RR-047", "CML latency on a chip", 1);
  latency("RR-047.blade", "CML latency on a blade", 8);
  latency("RR-047.node", "CML latency in a triblade", 16);
}

// By how much a longer wire delays an empty message across the chip link of a blade.
double Validation::Latencies(Protocol protocol) {
  constexpr Time kLonger = 10 * kMicrosecond;
  const auto run = [&](Time longer) {
    RoadrunnerParameters p = p_;
    p.blade.link.latency += longer;
    ClusterOptions options;
    options.protocol = protocol;
    const auto cluster = Take(Cluster::Create(p, options));
    Time over = 0;
    const auto program = [&over](Cml& mpi) -> Task<> {
      co_await mpi.Init();
      if (mpi.rank() == 0) {
        co_await mpi.Send(mpi.heap(), 0, cell::kSpesPerCell, 0);
      } else {
        co_await mpi.Recv(mpi.heap(), 16, 0, 0);
        over = mpi.spe().time();
      }
      co_await mpi.Finalize();
    };
    if (!status_.ok()) return over;
    if (absl::Status s = cluster->Launch({0, cell::kSpesPerCell}, FullImage(1024), program);
        !s.ok())
      status_ = s;
    if (const ClusterResult result = cluster->Run(); !result.status.ok()) status_ = result.status;
    return over;
  };
  return static_cast<double>(run(kLonger) - run(0)) / static_cast<double>(kLonger);
}

void Validation::OneCell() {
  const SweepProblem problem = OneCellProblem();
  const auto sweep = SweepTiming(p_, problem, cell::kSpesPerCell, false);
  if (!sweep.ok()) {
    status_ = sweep.status();
    return;
  }
  const double reverse = static_cast<double>(sweep->time) * 1e-12;
  Built("RR-049", "Sweep3D on one Cell, reverse acceleration: cell_angle is set so", 0.37, reverse,
        "s");
  // All iterations take the same time.
  SweepProblem one = problem;
  one.iterations = 1;
  const auto farm = SweepOnAccelerator(*cell::ParametersOfBlade("QS20"), one);
  if (!farm.ok()) {
    status_ = farm.status();
    return;
  }
  const double total = static_cast<double>(farm->time) * 1e-12 * problem.iterations;
  At("RR-048", "Sweep3D on one Cell, accelerator model", 1.3, total, "s", Kind::kUnexplained);
  Built("RR-050", "run-time reduction", 72, (1 - reverse / total) * 100, "%");
  At("RR-051", "accelerator model, time of DMA", 0.7,
     static_cast<double>(farm->dma) * 1e-12 * problem.iterations, "s", Kind::kUnexplained);
}

void Validation::FullScale() {
  const auto point = MeasureScaling(p_, 17, 20, 3, progress_);
  if (!point.ok()) {
    status_ = point.status();
    return;
  }
  const auto share =
      static_cast<double>(point->real.computation) / static_cast<double>(point->real.time);
  At("RR-052", "Sweep3D efficiency on 97,920 SPEs: computation over run time", 20, share * 100, "%",
     Kind::kUnexplained);
  Built("RR-053", "its inverse: gain of a network in which nothing but computation takes time", 5,
        1 / share, "x");
}

}  // namespace

SweepProblem OneCellProblem() {
  SweepProblem p;
  p.i = p.j = p.k = 50;
  p.k_block = 10;
  p.iterations = 10;
  return p;
}

absl::StatusOr<ScalingPoint> MeasureScaling(const RoadrunnerParameters& parameters, int cus,
                                            int k_block, int angle_block,
                                            const ShareObserver& progress) {
  const int ranks = cus * kTribladesPerCu * kSpesPerTriblade;
  const auto grid = RankGrid::ForRanks(ranks);
  if (!grid.ok()) return grid.status();
  SweepProblem problem = WeakScalingProblem(*grid);
  problem.k_block = k_block;
  problem.angle_block = angle_block;
  ScalingPoint point;
  point.cus = cus;
  for (const bool ideal : {false, true}) {
    const auto half = [&progress, ideal](double share) { progress((ideal + share) / 2); };
    auto result = SweepTiming(parameters, problem, ranks, ideal,
                              progress ? ShareObserver(half) : ShareObserver());
    if (!result.ok()) return result.status();
    (ideal ? point.ideal : point.real) = *std::move(result);
  }
  return point;
}

absl::StatusOr<std::vector<ValidationRow>> ValidateRoadrunner(const std::string& only,
                                                              const ShareObserver& progress) {
  return ValidateRoadrunner(only, DefaultParameters(), progress);
}

absl::StatusOr<std::vector<ValidationRow>> ValidateRoadrunner(
    const std::string& only, const RoadrunnerParameters& parameters,
    const ShareObserver& progress) {
  return Validation(parameters, progress).Run(only);
}

}  // namespace percs::roadrunner
