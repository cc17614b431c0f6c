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

using Role = ValidationRole;
using Holds = ValidationRow::Holds;
constexpr AlgorithmSpec kAto{Algorithm::kAllToOne, 2}, kAtoB{Algorithm::kAllToOneBlade, 2},
    kTt2{Algorithm::kTree, 2}, kTtB2{Algorithm::kTreeBlade, 2}, kTtB3{Algorithm::kTreeBlade, 3},
    kPe{Algorithm::kPairwise, 2};
constexpr double kTie = 1.01;  // two algorithms within 1 % are equally good

class CellValidation {
 public:
  explicit CellValidation(BladeParameters parameters) : p_(std::move(parameters)) {}

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
  void Add(std::string id, std::string quantity, std::string published, double emulated,
           std::string unit, Role role, Holds holds) {
    rows_.push_back({std::move(id), std::move(quantity), std::move(published), emulated,
                     std::move(unit), role, holds});
  }
  static Holds If(bool holds) { return holds ? Holds::kYes : Holds::kNo; }
  // Within `share` of the published value.
  void Near(std::string id, std::string quantity, double published, double emulated,
            std::string unit, Role role, double share) {
    Add(std::move(id), std::move(quantity), fmt::format("{:g}", published), emulated,
        std::move(unit), role, If(std::abs(emulated - published) <= share * published + 1e-9));
  }
  void Equal(std::string id, std::string quantity, double published, double emulated,
             std::string unit) {
    Near(std::move(id), std::move(quantity), published, emulated, std::move(unit), Role::kSpecified,
         0);
  }

  CollectiveTiming Measure(Collective collective, AlgorithmSpec spec, int spes,
                           std::uint32_t bytes = 0) {
    CollectiveLoop loop;
    loop.collective = collective;
    loop.spec = spec;
    loop.spes = spes;
    loop.bytes = std::max(bytes, 1u);
    loop.elements = std::max(bytes / 4, 1u);
    loop.iterations = bytes > 4096 ? kValidationIterations / 10 : kValidationIterations;
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
  absl::Status status_;
  std::vector<ValidationRow> rows_;
};

void CellValidation::Structure() {
  Equal("CELL-001", "SPEs per Cell", 8, kSpesPerCell, "SPEs");
  Equal("CELL-002", "SPEs per blade", 16, kSpes, "SPEs");
  Equal("CELL-003", "Cell clock", 3.2, 2000.0 / static_cast<double>(p_.eib.cycle), "GHz");
  Equal("CELL-007", "DMA in flight on a Cell", 128, kSpesPerCell * CommandsBeforeWaiting(p_),
        "transfers");
  Equal("CELL-008", "atomic width", 32, 8 * sizeof(Operation::operand), "bit");
  Equal("CELL-009", "mailbox width", 32, 8 * sizeof(Operation::operand), "bit");
  Equal("CELL-010", "inbound mailbox depth", 4, MessagesBeforeWaiting(p_), "entries");
  Equal("CELL-011", "outbound mailboxes per SPE", 2, OutboundMessages(p_), "mailboxes");
  Equal("CELL-012", "signal registers per SPE", 2, SignalRegisters(p_), "registers");
  Equal("CELL-013", "half of the register that a call uses", 16, kSpes, "bit");
  Equal("CELL-042", "collective buffer per SPE", 16384, kCollectiveBufferBytes, "B");
  Equal("CELL-043", "ATO reduce element limit", 512, ElementLimit(kAtoB), "elements");
  Equal("CELL-044", "TT reduce element limit", 2048, ElementLimit(kTtB2), "elements");
  Add("CELL-045", "iterations per experiment; the emulated loop is stable after a few", "1000000",
      kValidationIterations, "iterations", Role::kSpecified, Holds::kUnknown);
  Equal("CELL-046", "blade memory", 1, static_cast<double>(p_.memory_bytes >> 30), "GB");
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
  Equal("CELL-005", "largest DMA", 16384, LargestDma(p_), "B");
  const double peak = StreamRate(p_, {{0, 1}}, kDmaBytesMax);
  int alignment = 16;
  while (alignment < 128 &&
         StreamRate(p_, {{0, 1}}, 1024, static_cast<std::uint32_t>(alignment)) < 0.95 * peak) {
    alignment *= 2;
  }
  Equal("CELL-006", "DMA alignment for peak", 128, alignment, "B");
  const double issue = static_cast<double>(p_.issue) / 1000;
  Add("CELL-047", "SPE DMA issue time", "<4", issue, "ns", Role::kCalibrated, If(issue < 4));
  const double line = DmaTime(p_, 128);
  Add("CELL-048", "DMA of one cache line", "<100", line, "ns", Role::kCalibrated, If(line < 100));
  Near("CELL-049", "SPE point-to-point DMA bandwidth, batches of 4 KB", 25.6,
       StreamRate(p_, {{0, 1}}, 4096), "GB/s", Role::kCalibrated, 0.02);
  std::uint32_t near_peak = 128;
  while (near_peak < kDmaBytesMax && StreamRate(p_, {{0, 1}}, near_peak) < 0.9 * peak)
    near_peak *= 2;
  Add("CELL-062", "SPE to SPE near-peak DMA size", ">=1024", near_peak, "B", Role::kCalibrated,
      If(near_peak >= 1024 && near_peak <= 2048));
}

void CellValidation::Bus() {
  const double cycle_ns = static_cast<double>(p_.eib.cycle) / 1000;
  Equal("CELL-051", "EIB participants", 12, kUnits, "units");
  Equal("CELL-052", "EIB rings", 4, kRings, "rings");
  Equal("CELL-053", "EIB concurrent transfers per ring", 3, p_.eib.transfers_per_ring, "transfers");
  Equal("CELL-054", "EIB clock", 1.6, 1 / cycle_ns, "GHz");
  Equal("CELL-055", "EIB ring start interval", 3, p_.eib.start_interval, "bus cycles");
  Equal("CELL-056", "EIB transfer length", 8, kLineBytes / kBeatBytes, "beats");
  Equal("CELL-057", "EIB maximum path", 6, p_.eib.hops_max, "hops");
  Equal("CELL-059", "EIB aggregate peak (one command per cycle)", 204.8, kLineBytes / cycle_ns,
        "GB/s");
  Equal("CELL-060", "EIB raw data-ring peak", 307.2,
        kRings * p_.eib.transfers_per_ring * kBeatBytes / cycle_ns, "GB/s");
  const double pairs = StreamRate(
      p_, {{0, 2}, {2, 0}, {4, 6}, {6, 4}, {1, 3}, {3, 1}, {5, 7}, {7, 5}}, kDmaBytesMax);
  Near("CELL-050", "EIB aggregate of eight neighbours", 200, pairs, "GB/s", Role::kPredicted, 0.05);
  const double memory = MemoryRateAgainstSpes(p_) / StreamRate(p_, {{0, 1}}, kDmaBytesMax);
  Add("CELL-058", "share of a port that memory gets against two SPEs", "MIC first", memory, "share",
      Role::kSpecified, If(memory > 0.95));
  Add("CELL-061", "share of the command limit that neighbours reach", "limiter",
      pairs / (kLineBytes / cycle_ns), "share", Role::kPredicted,
      If(pairs > 0.95 * kLineBytes / cycle_ns));
  Near("CELL-004", "inter-Cell coherent interface, each direction", 20,
       StreamRate(p_, {{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}}, kDmaBytesMax), "GB/s",
       Role::kSpecified, 0.02);
}

void CellValidation::Signals() {
  const double near = SignalRoundTrip(p_, 1), far = SignalRoundTrip(p_, kSpesPerCell);
  Near("CELL-014", "signal round trip intra-chip", 160.1, near, "ns", Role::kCalibrated, 0.001);
  Near("CELL-015", "signal round trip inter-chip", 619.4, far, "ns", Role::kCalibrated, 0.001);
  Near("CELL-016", "signal one-way intra-chip", 80.05, near / 2, "ns", Role::kCalibrated, 0.001);
  Near("CELL-017", "signal one-way inter-chip", 309.7, far / 2, "ns", Role::kCalibrated, 0.001);
  Near("CELL-018", "inter/intra signal RTT ratio", 3.869, far / near, "x", Role::kCalibrated,
       0.001);
}

void CellValidation::Barriers() {
  const std::array<AlgorithmSpec, 7> all = {
      kAto, kAtoB, kTt2, kTtB2, AlgorithmSpec{Algorithm::kTree, 3}, kTtB3, kPe};
  std::array<std::array<double, 7>, kSpes + 1> t{};
  for (int n = 2; n <= kSpes; ++n) {
    for (std::size_t a = 0; a < all.size(); ++a) t[n][a] = Barrier(all[a], n);
    for (std::size_t a = 0; a < all.size(); ++a) {
      Add(fmt::format("CELL-barrier-{:02}-{}", n, NameOf(Collective::kBarrier, all[a])),
          "barrier latency, Fig. 5", "", t[n][a], "ns", Role::kPredicted, Holds::kUnknown);
    }
  }
  const auto best = [&t](int n) { return *std::min_element(t[n].begin(), t[n].end()); };
  int crossover = 2;  // at 2 and 4 the section has pairwise exchange as the shortest
  while (crossover <= kSpes &&
         (crossover == 2 || crossover == 4 || t[crossover][0] <= kTie * best(crossover))) {
    ++crossover;
  }
  Near("CELL-026", "ATOBar best below (powers of two are pairwise exchange's)", 8, crossover,
       "SPEs", Role::kPredicted, 0);
  int same = 2;
  while (same < kSpes && std::abs(t[same + 1][1] / t[same + 1][0] - 1) < 0.001) ++same;
  Near("CELL-027", "ATOBarB = ATOBar up to", 8, same, "SPEs", Role::kPredicted, 0);
  const double growth = t[16][1] / t[10][1];
  Add("CELL-028", "ATOBarB at 16 over 10 SPEs (flat: at most 1.2)", ">9 flat", growth, "x",
      Role::kPredicted, If(growth <= 1.2));
  double margin = 1e9;
  for (const int n : {2, 4, 8, 16}) {
    margin = std::min(margin, *std::min_element(t[n].begin(), t[n].end() - 1) / t[n][6]);
  }
  Add("CELL-shape-pebar", "next best over PEBar at powers of two, least", ">1", margin, "x",
      Role::kPredicted, If(margin > 1));
  Add("CELL-withheld-barrier", "best barrier with 16 SPEs", "", best(16), "ns", Role::kPredicted,
      Holds::kUnknown);
  const CollectiveTiming blade = Measure(Collective::kBarrier, kAtoB, kSpes);
  const BladeStats& stats = blade.blade.stats;
  Equal("CELL-040", "inter-Cell signals in ATOBarB", 2,
        static_cast<double>(stats.link_signals[0] + stats.link_signals[1]) / kValidationIterations,
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
  return static_cast<int>(timing->nanoseconds / (SignalRoundTrip(p, 1) / 2) + 0.5);
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
  const auto formula = [this](const char* id, const char* what, const char* published, int excess) {
    Add(id, what, published, excess, "steps more", Role::kSpecified, If(excess <= 0));
  };
  formula("CELL-032", "TTBar D2 against its formula, worst of 2-16 SPEs", "2*ceil(log_d N)", most);
  formula("CELL-033", "TTBarB D2 against its formula, worst of 9-16 SPEs", "2*ceil(log_d(N/2))+1",
          most_b);
  formula("CELL-034", "PEBar against its formula, worst of 2-16 SPEs", "log2 N | floor(log2 N)+2",
          most_pe);
  Equal("CELL-035", "TTBar steps, d=2, N=8", 6, Steps(kTt2, 8), "steps");
  Equal("CELL-036", "PEBar steps, N=8", 3, Steps(kPe, 8), "steps");
  Equal("CELL-037", "TTBar steps, d=2, N=16", 8, Steps(kTt2, 16), "steps");
  Equal("CELL-038", "PEBar steps, N=16", 4, Steps(kPe, 16), "steps");
  Equal("CELL-039", "TTBarB steps, d=2, N=16", 7, Steps(kTtB2, 16), "steps");
}

void CellValidation::Broadcasts() {
  const double tt = Measure(Collective::kBroadcast, kTtB2, kSpes, 16384).gigabytes_per_second;
  const double ato = Measure(Collective::kBroadcast, kAtoB, kSpes, 16384).gigabytes_per_second;
  Near("CELL-020", "broadcast bandwidth TTBcastB_Opt D2, 16 KB, 16 SPEs", 38.33, tt, "GB/s",
       Role::kCalibrated, 0.05);
  Near("CELL-021", "broadcast bandwidth ATOBcastB_Opt, 16 KB, 16 SPEs", 25, ato, "GB/s",
       Role::kCalibrated, 0.05);
  Near("CELL-022", "broadcast bandwidth ratio TT D2 / ATO", 1.533, tt / ato, "x", Role::kCalibrated,
       0.05);
  int last_ato = 2, last_ato_long = 2;  // more than 1 % ahead of the tree
  for (int n = 3; n <= kSpes; ++n) {
    const double ato_time = Broadcast(kAtoB, n, 128), tree = Broadcast(kTtB2, n, 128);
    if (kTie * ato_time < tree) last_ato = n;
    if (kTie * Broadcast(kAtoB, n, 16384) < Broadcast(kTtB2, n, 16384)) last_ato_long = n;
    Add(fmt::format("CELL-bcast-{:02}-ATO", n), "ATOBcastB_Opt latency, 128 bytes, Fig. 6", "",
        ato_time, "ns", Role::kPredicted, Holds::kUnknown);
    Add(fmt::format("CELL-bcast-{:02}-TT2", n), "TTBcastB_Opt D2 latency, 128 bytes, Fig. 6", "",
        tree, "ns", Role::kPredicted, Holds::kUnknown);
  }
  Near("CELL-029", "TTBcastB_Opt D2 wins at 128 B above", 6, last_ato, "SPEs", Role::kPredicted, 0);
  Near("CELL-030", "TTBcastB_Opt D2 wins or ties at 16 KB from", 3, last_ato_long + 1, "SPEs",
       Role::kPredicted, 0);
  const BladeStats stats = Measure(Collective::kBroadcast, kTtB2, kSpes, 128).blade.stats;
  const double messages = static_cast<double>(stats.link_dmas[0] + stats.link_dmas[1]);
  const double signals = static_cast<double>(stats.link_signals[0] + stats.link_signals[1]);
  Add("CELL-041", "inter-Cell messages and signals in a broadcast for blades", "1+2",
      (messages + signals) / kValidationIterations, "crossings", Role::kSpecified,
      If(messages == kValidationIterations && signals == 2 * kValidationIterations));
}

void CellValidation::Reductions() {
  int from = 2;  // the tree wins from here on
  double least = 1e9, sum = 0;
  int counted = 0;
  for (int n = 3; n <= kSpes; ++n) {
    const double ato = Reduce(kAtoB, n), tree = Reduce(kTtB2, n), three = Reduce(kTtB3, n);
    if (kTie * ato < tree) from = n + 1;
    if (n >= 6) {  // below, a tree of degree 3 is all but all-to-one, which is best there
      least = std::min(least, three / tree);
      sum += three / tree;
      ++counted;
    }
    const auto add = [&](const char* name, double ns) {
      Add(fmt::format("CELL-reduce-{:02}-{}", n, name), "reduce latency, 32 floats, Fig. 8", "", ns,
          "ns", Role::kPredicted, Holds::kUnknown);
    };
    add("ATO", ato);
    add("TT2", tree);
    add("TT3", three);
  }
  Add("CELL-025", "reduce D3 over D2, mean of 6-16 SPEs", ">1", sum / counted, "x",
      Role::kPredicted, If(sum / counted > 1 && least * kTie >= 1));
  Near("CELL-031", "ATORedB_Opt best when SPEs are fewer than", 6, from, "SPEs", Role::kPredicted,
       0);
  const double ato = Reduce(kAtoB, kSpes), tree = Reduce(kTtB2, kSpes);
  Add("CELL-withheld-reduce", "TTRedB_Opt D2 with 32 floats, 16 SPEs", "", tree, "ns",
      Role::kPredicted, Holds::kUnknown);
  Add("CELL-shape-reduce", "ATORedB_Opt over TTRedB_Opt D2, 16 SPEs (1.7 to 2)", "almost 2",
      ato / tree, "x", Role::kPredicted, If(ato / tree >= 1.7 && ato / tree <= 2));
}

}  // namespace

absl::StatusOr<std::vector<ValidationRow>> ValidateCell() {
  const auto parameters = ParametersOfBlade("QS20");
  if (!parameters.ok()) return parameters.status();
  return CellValidation(*parameters).Run();
}

}  // namespace percs::cell
