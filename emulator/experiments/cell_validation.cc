#include "emulator/experiments/cell_validation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "emulator/cell/collectives/measure.h"
#include "emulator/experiments/cell_probes.h"
#include "fmt/format.h"

namespace percs::cell {
namespace {

using Kind = RowKind;
constexpr AlgorithmSpec kAto{Algorithm::kAllToOne, 2}, kAtoB{Algorithm::kAllToOneBlade, 2},
    kTt2{Algorithm::kTree, 2}, kTtB2{Algorithm::kTreeBlade, 2}, kTtB3{Algorithm::kTreeBlade, 3},
    kPe{Algorithm::kPairwise, 2};
constexpr double kTie = 1.01;  // two algorithms within 1 % are equally good

class CellValidation {
 public:
  CellValidation(BladeParameters parameters, int iterations)
      : p_(std::move(parameters)), iterations_(iterations) {}

  absl::StatusOr<std::vector<ValidationRow>> Run() {
    Structure();
    Dma();
    Bus();
    Signals();
    Barriers();
    BarrierSteps();
    Broadcasts();
    Reductions();
    if (!status_.ok()) return status_;
    std::sort(rows_.begin(), rows_.end(),
              [](const ValidationRow& a, const ValidationRow& b) { return a.id < b.id; });
    return std::move(rows_);
  }

 private:
  void Add(std::string id, std::string quantity, PublishedFigure published, double emulated,
           std::string unit, Kind kind) {
    rows_.push_back({std::move(id),
                     std::move(quantity),
                     std::move(published),
                     emulated,
                     std::move(unit),
                     kind,
                     {}});
  }
  void At(std::string id, std::string quantity, double published, double emulated, std::string unit,
          Kind kind) {
    Add(std::move(id), std::move(quantity), PublishedFigure::At(published), emulated,
        std::move(unit), kind);
  }
  // The machine is built so.
  void Built(std::string id, std::string quantity, double published, double emulated,
             std::string unit) {
    At(std::move(id), std::move(quantity), published, emulated, std::move(unit), Kind::kRestated);
  }
  // No published figure is known here.
  void Unpublished(std::string id, std::string quantity, double emulated,
                   std::vector<std::string> other_ids = {}) {
    rows_.push_back({std::move(id), std::move(quantity), PublishedFigure::None(), emulated, "ns",
                     Kind::kPredicted, std::move(other_ids)});
  }

  CollectiveTiming Measure(Collective collective, AlgorithmSpec spec, int spes,
                           std::uint32_t bytes = 0) {
    CollectiveLoop loop;
    loop.collective = collective;
    loop.spec = spec;
    loop.spes = spes;
    loop.bytes = std::max(bytes, 1u);
    loop.elements = std::max(bytes / 4, 1u);
    loop.iterations = bytes > 4096 ? iterations_ / 10 : iterations_;
    auto timing = MeasureCollective(p_, loop);
    if (timing.ok() && timing->wrong == 0) return *std::move(timing);
    if (status_.ok()) {
      status_ = !timing.ok() ? timing.status()
                             : absl::InternalError(fmt::format("{} with {} SPEs gave wrong data",
                                                               NameOf(collective, spec), spes));
    }
    return {};
  }
  double Barrier(AlgorithmSpec spec, int spes) {
    return Measure(Collective::kBarrier, spec, spes).nanoseconds;
  }
  double Broadcast(AlgorithmSpec spec, int spes, std::uint32_t bytes) {
    return Measure(Collective::kBroadcast, spec, spes, bytes).nanoseconds;
  }
  double Reduce(AlgorithmSpec spec, int spes) {
    return Measure(Collective::kReduce, spec, spes, 128).nanoseconds;  // 32 floats
  }

  void Structure();
  void Dma();
  void Bus();
  void Signals();
  void Barriers();
  void BarrierSteps();
  void Broadcasts();
  void Reductions();
  int Steps(AlgorithmSpec spec, int spes);
  std::uint32_t ElementLimit(AlgorithmSpec spec);

  const BladeParameters p_;
  const int iterations_;
  absl::Status status_;
  std::vector<ValidationRow> rows_;
};

void CellValidation::Structure() {
  Built("CELL-001", "SPEs per Cell", 8, kSpesPerCell, "SPEs");
  Built("CELL-002", "SPEs per blade", 16, kSpes, "SPEs");
  Built("CELL-003", "Cell clock", 3.2, 2000.0 / static_cast<double>(p_.eib.cycle), "GHz");
  Built("CELL-007", "DMA in flight on a Cell", 128, kSpesPerCell * CommandsBeforeWaiting(p_),
        "transfers");
  Built("CELL-008", "atomic width", 32, 8 * sizeof(Operation::operand), "bit");
  Built("CELL-009", "mailbox width", 32, 8 * sizeof(Operation::operand), "bit");
  Built("CELL-010", "inbound mailbox depth", 4, MessagesBeforeWaiting(p_), "entries");
  Built("CELL-011", "outbound mailboxes per SPE", 2, OutboundMessages(p_), "mailboxes");
  Built("CELL-012", "signal registers per SPE", 2, SignalRegisters(p_), "registers");
  Built("CELL-013", "half of the register that a call uses", 16, kSpes, "bit");
  Built("CELL-042", "collective buffer per SPE", 16384, kCollectiveBufferBytes, "B");
  Built("CELL-043", "ATO reduce element limit", 512, ElementLimit(kAtoB), "elements");
  Built("CELL-044", "TT reduce element limit", 2048, ElementLimit(kTtB2), "elements");
  Add("CELL-045", "iterations per experiment; the emulated loop is stable after a few",
      PublishedFigure::Words("1000000"), iterations_, "iterations", Kind::kRestated);
  Built("CELL-046", "blade memory", 1, static_cast<double>(p_.memory_bytes >> 30), "GB");
}

std::uint32_t CellValidation::ElementLimit(AlgorithmSpec spec) {
  std::uint32_t limit = 0;
  for (std::uint32_t elements = 512; elements <= 4096; elements *= 2) {
    CollectiveLoop loop;
    loop.collective = Collective::kReduce;
    loop.spec = spec;
    loop.elements = elements;
    loop.iterations = 2;
    const auto most = MeasureCollective(p_, loop);
    loop.elements = elements + 1;
    if (most.ok() && most->wrong == 0) limit = elements;
    if (!MeasureCollective(p_, loop).ok()) break;
  }
  return limit;
}

void CellValidation::Dma() {
  Built("CELL-005", "largest DMA", 16384, LargestDma(p_), "B");
  const double peak = StreamRate(p_, {{0, 1}}, kDmaBytesMax);
  int alignment = 16;
  while (alignment < 128 &&
         StreamRate(p_, {{0, 1}}, 1024, static_cast<std::uint32_t>(alignment)) < 0.95 * peak) {
    alignment *= 2;
  }
  Built("CELL-006", "DMA alignment for peak", 128, alignment, "B");
  Add("CELL-047", "SPE DMA issue time", PublishedFigure::AtMost(4),
      static_cast<double>(p_.issue) / 1000, "ns", Kind::kRestated);
  At("CELL-048", "DMA of one cache line: just less than", 100, DmaTime(p_, 128), "ns",
     Kind::kCalibrated);
  At("CELL-049", "SPE point-to-point DMA bandwidth, batches of 4 KB", 25.6,
     StreamRate(p_, {{0, 1}}, 4096), "GB/s", Kind::kCalibrated);
  std::uint32_t near_peak = 128;
  while (near_peak < kDmaBytesMax && StreamRate(p_, {{0, 1}}, near_peak) < 0.9 * peak)
    near_peak *= 2;
  At("CELL-062", "SPE to SPE near-peak DMA size, from", 1024, near_peak, "B", Kind::kCalibrated);
}

void CellValidation::Bus() {
  const double cycle_ns = static_cast<double>(p_.eib.cycle) / 1000;
  Built("CELL-051", "EIB participants", 12, kUnits, "units");
  Built("CELL-052", "EIB rings", 4, kRings, "rings");
  Built("CELL-053", "EIB concurrent transfers per ring", 3, p_.eib.transfers_per_ring, "transfers");
  Built("CELL-054", "EIB clock", 1.6, 1 / cycle_ns, "GHz");
  Built("CELL-055", "EIB ring start interval", 3, p_.eib.start_interval, "bus cycles");
  Built("CELL-056", "EIB transfer length", 8, int{kLineBytes / kBeatBytes}, "beats");
  Built("CELL-057", "EIB maximum path", 6, p_.eib.hops_max, "hops");
  Built("CELL-059", "EIB aggregate peak (one command per cycle)", 204.8, kLineBytes / cycle_ns,
        "GB/s");
  Built("CELL-060", "EIB raw data-ring peak", 307.2,
        kRings * p_.eib.transfers_per_ring * kBeatBytes / cycle_ns, "GB/s");
  const double pairs = StreamRate(
      p_, {{0, 2}, {2, 0}, {4, 6}, {6, 4}, {1, 3}, {3, 1}, {5, 7}, {7, 5}}, kDmaBytesMax);
  At("CELL-050", "EIB aggregate of eight neighbours", 200, pairs, "GB/s", Kind::kPredicted);
  const double memory = MemoryRateAgainstSpes(p_) / StreamRate(p_, {{0, 1}}, kDmaBytesMax);
  Built("CELL-058", "share of a port that memory, which goes first, gets against two SPEs", 1,
        memory, "share");
  At("CELL-061", "share of the command limit that neighbours reach: it is the limiter", 1,
     pairs / (kLineBytes / cycle_ns), "share", Kind::kPredicted);
  Built("CELL-004", "inter-Cell coherent interface, each direction", 20,
        StreamRate(p_, {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}}, kDmaBytesMax), "GB/s");
}

void CellValidation::Signals() {
  const double near = SignalRoundTrip(p_, 1), far = SignalRoundTrip(p_, kSpesPerCell);
  At("CELL-014", "signal round trip intra-chip", 160.1, near, "ns", Kind::kCalibrated);
  At("CELL-015", "signal round trip inter-chip", 619.4, far, "ns", Kind::kCalibrated);
  At("CELL-016", "signal one-way intra-chip", 80.05, near / 2, "ns", Kind::kRestated);
  At("CELL-017", "signal one-way inter-chip", 309.7, far / 2, "ns", Kind::kRestated);
  At("CELL-018", "inter/intra signal RTT ratio", 3.869, far / near, "x", Kind::kRestated);
}

void CellValidation::Barriers() {
  const std::array<AlgorithmSpec, 7> all = {
      kAto, kAtoB, kTt2, kTtB2, AlgorithmSpec{Algorithm::kTree, 3}, kTtB3, kPe};
  std::array<std::array<double, 7>, kSpes + 1> t{};
  for (int n = 2; n <= kSpes; ++n) {
    for (std::size_t a = 0; a < all.size(); ++a) t[n][a] = Barrier(all[a], n);
    for (std::size_t a = 0; a < all.size(); ++a) {
      Unpublished(fmt::format("CELL-barrier-{:02}-{}", n, NameOf(Collective::kBarrier, all[a])),
                  "barrier latency, Fig. 5", t[n][a]);
    }
  }
  const auto best = [&t](int n) { return *std::min_element(t[n].begin(), t[n].end()); };
  int crossover = 2;  // at 2 and 4 the section has pairwise exchange as the shortest
  while (crossover <= kSpes &&
         (crossover == 2 || crossover == 4 || t[crossover][0] <= kTie * best(crossover))) {
    ++crossover;
  }
  At("CELL-026", "ATOBar best below (powers of two are pairwise exchange's)", 8, crossover, "SPEs",
     Kind::kPredicted);
  int same = 2;
  while (same < kSpes && std::abs(t[same + 1][1] / t[same + 1][0] - 1) < 0.001) ++same;
  At("CELL-027", "ATOBarB = ATOBar up to", 8, same, "SPEs", Kind::kPredicted);
  const double growth = t[16][1] / t[10][1];
  At("CELL-028", "ATOBarB at 16 over 10 SPEs: flat", 1, growth, "x", Kind::kPredicted);
  int shortest = 0;
  for (const int n : {2, 4, 8, 16}) shortest += t[n][6] == best(n);
  At("CELL-shape-pebar", "powers of two up to 16 at which PEBar is the shortest", 4, shortest,
     "counts", Kind::kPredicted);
  Unpublished("CELL-withheld-barrier", "best barrier with 16 SPEs", best(16), {"CELL-019"});
  const CollectiveTiming blade = Measure(Collective::kBarrier, kAtoB, kSpes);
  const BladeStats& stats = blade.blade.stats;
  Built("CELL-040", "inter-Cell signals in ATOBarB", 2,
        static_cast<double>(stats.link_signals[0] + stats.link_signals[1]) / iterations_,
        "signals");
}

// The time without software over that of one signal, on a blade whose Cells are as near as
// neighbours.
int CellValidation::Steps(AlgorithmSpec spec, int spes) {
  CollectiveLoop loop;
  loop.spec = spec;
  loop.spes = spes;
  loop.iterations = 1;
  BladeParameters p = p_;
  p.software_partner = 0;
  p.link.latency = 1;
  p.link.line_time = 1;
  p.command = 1;
  const auto timing = MeasureCollective(p, loop);
  if (!timing.ok()) {
    status_ = timing.status();
    return 0;
  }
  return static_cast<int>(std::lround(timing->nanoseconds / (SignalRoundTrip(p, 1) / 2)));
}

void CellValidation::BarrierSteps() {
  const auto log_ceil = [](int d, int n) {
    int steps = 0;
    for (int reach = 1; reach < n; reach *= d) ++steps;
    return steps;
  };
  int most = -9, most_b = -9, most_pe = -9;
  for (int n = 2; n <= kSpes; ++n) {
    most = std::max(most, Steps(kTt2, n) - 2 * log_ceil(2, n));
    if (n > kSpesPerCell) most_b = std::max(most_b, Steps(kTtB2, n) - (2 * log_ceil(2, 8) + 1));
    const int floor_log = std::bit_width(static_cast<unsigned>(n)) - 1;
    const int formula = std::has_single_bit(static_cast<unsigned>(n)) ? floor_log : floor_log + 2;
    most_pe = std::max(most_pe, Steps(kPe, n) - formula);
  }
  Built("CELL-032", "TTBar D2 over 2*ceil(log_d N), worst of 2-16 SPEs", 0, most, "steps");
  Built("CELL-033", "TTBarB D2 over 2*ceil(log_d(N/2))+1, worst of 9-16 SPEs", 0, most_b, "steps");
  Built("CELL-034", "PEBar over log2 N or floor(log2 N)+2, worst of 2-16 SPEs", 0, most_pe,
        "steps");
  Built("CELL-035", "TTBar steps, d=2, N=8", 6, Steps(kTt2, 8), "steps");
  Built("CELL-036", "PEBar steps, N=8", 3, Steps(kPe, 8), "steps");
  Built("CELL-037", "TTBar steps, d=2, N=16", 8, Steps(kTt2, 16), "steps");
  Built("CELL-038", "PEBar steps, N=16", 4, Steps(kPe, 16), "steps");
  Built("CELL-039", "TTBarB steps, d=2, N=16", 7, Steps(kTtB2, 16), "steps");
}

void CellValidation::Broadcasts() {
  const double tt = Measure(Collective::kBroadcast, kTtB2, kSpes, 16384).gigabytes_per_second;
  const double ato = Measure(Collective::kBroadcast, kAtoB, kSpes, 16384).gigabytes_per_second;
  At("CELL-020", "broadcast bandwidth TTBcastB_Opt D2, 16 KB, 16 SPEs", 38.33, tt, "GB/s",
     Kind::kCalibrated);
  At("CELL-021", "broadcast bandwidth ATOBcastB_Opt, 16 KB, 16 SPEs", 25, ato, "GB/s",
     Kind::kCalibrated);
  At("CELL-022", "broadcast bandwidth ratio TT D2 / ATO", 1.533, tt / ato, "x", Kind::kRestated);
  int last_ato = 2, last_ato_long = 2;  // more than 1 % ahead of the tree
  for (int n = 3; n <= kSpes; ++n) {
    const double ato_time = Broadcast(kAtoB, n, 128), tree = Broadcast(kTtB2, n, 128);
    if (kTie * ato_time < tree) last_ato = n;
    if (kTie * Broadcast(kAtoB, n, 16384) < Broadcast(kTtB2, n, 16384)) last_ato_long = n;
    Unpublished(fmt::format("CELL-bcast-{:02}-ATO", n), "ATOBcastB_Opt latency, 128 bytes, Fig. 6",
                ato_time);
    Unpublished(fmt::format("CELL-bcast-{:02}-TT2", n),
                "TTBcastB_Opt D2 latency, 128 bytes, Fig. 6", tree);
  }
  At("CELL-029", "TTBcastB_Opt D2 wins at 128 B above", 6, last_ato, "SPEs", Kind::kPredicted);
  At("CELL-030", "TTBcastB_Opt D2 wins or ties at 16 KB from", 3, last_ato_long + 1, "SPEs",
     Kind::kPredicted);
  const BladeStats stats = Measure(Collective::kBroadcast, kTtB2, kSpes, 128).blade.stats;
  const double messages = static_cast<double>(stats.link_dmas[0] + stats.link_dmas[1]);
  const double signals = static_cast<double>(stats.link_signals[0] + stats.link_signals[1]);
  Built("CELL-041", "inter-Cell messages and signals in a broadcast for blades, 1 + 2", 3,
        (messages + signals) / iterations_, "crossings");
}

void CellValidation::Reductions() {
  int from = 2;  // the tree wins from here on
  int slower = 0;
  for (int n = 3; n <= kSpes; ++n) {
    const double ato = Reduce(kAtoB, n), tree = Reduce(kTtB2, n), three = Reduce(kTtB3, n);
    if (kTie * ato < tree) from = n + 1;
    if (n >= 6) {  // below, a tree of degree 3 is almost all-to-one
      slower += three * kTie >= tree;
    }
    const auto add = [&](const char* name, double ns) {
      Unpublished(fmt::format("CELL-reduce-{:02}-{}", n, name), "reduce latency, 32 floats, Fig. 8",
                  ns);
    };
    add("ATO", ato);
    add("TT2", tree);
    add("TT3", three);
  }
  At("CELL-025", "counts of 6-16 SPEs at which a reduce of D3 is slower than of D2, or as slow", 11,
     slower, "counts", Kind::kPredicted);
  At("CELL-031", "ATORedB_Opt best when SPEs are fewer than", 6, from, "SPEs", Kind::kPredicted);
  const double ato = Reduce(kAtoB, kSpes), tree = Reduce(kTtB2, kSpes);
  Unpublished("CELL-withheld-reduce", "TTRedB_Opt D2 reduce with 32 floats, 16 SPEs", tree,
              {"CELL-023"});
  At("CELL-shape-reduce", "ATORedB_Opt over TTRedB_Opt D2, 16 SPEs: almost", 2, ato / tree, "x",
     Kind::kPredicted);
}

}  // namespace

absl::StatusOr<std::vector<ValidationRow>> ValidateCell() {
  const auto parameters = ParametersOfBlade("QS20");
  if (!parameters.ok()) return parameters.status();
  return ValidateCell(*parameters, kValidationIterations);
}

absl::StatusOr<std::vector<ValidationRow>> ValidateCell(const BladeParameters& parameters,
                                                        int iterations) {
  return CellValidation(parameters, iterations).Run();
}

}  // namespace percs::cell
