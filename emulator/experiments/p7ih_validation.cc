#include "emulator/experiments/p7ih_validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "emulator/experiments/collective_measure.h"
#include "fmt/format.h"

namespace percs {
namespace {

using Kind = RowKind;

constexpr std::uint64_t kKib = 1024, kMib = 1024 * 1024;
// With root 0 alone every root would be a leader; later roots of the loop are not.
constexpr std::uint32_t kFirstRoot = 11;

// The paper prints the third one as 65KB.
struct Size {
  const char* name;
  std::uint64_t bytes;
};
constexpr std::array<Size, 9> kSizes{{{"1KB", kKib},
                                      {"16KB", 16 * kKib},
                                      {"64KB", 64 * kKib},
                                      {"128KB", 128 * kKib},
                                      {"512KB", 512 * kKib},
                                      {"1MB", kMib},
                                      {"2MB", 2 * kMib},
                                      {"4MB", 4 * kMib},
                                      {"8MB", 8 * kMib}}};
constexpr std::array<std::uint32_t, 8> kCores{32, 64, 128, 256, 512, 1024, 2048, 4096};
constexpr std::array<std::uint32_t, 4> kThreads{64, 128, 4096, 8192};
// Figure 13, MB/s per task: P2P and hybrid by cores; 0 where the figure is not known here.
constexpr double kFigure13[9][16] = {
    {60, 210, 47, 164, 39, 97, 34, 71, 0, 0, 24, 43, 22, 32, 0, 0},
    {278, 637, 158, 620, 139, 486, 122, 347, 0, 0, 102, 208, 98, 183, 0, 0},
    {237, 766, 164, 712, 140, 643, 121, 545, 0, 0, 95, 372, 127, 315, 0, 0},
    {281, 1573, 219, 1209, 191, 727, 172, 575, 0, 0, 140, 412, 143, 359, 0, 0},
    {431, 1791, 392, 995, 348, 675, 313, 561, 0, 0, 257, 413, 190, 370, 0, 0},
    {421, 1860, 400, 1146, 360, 719, 329, 602, 0, 0, 278, 445, 208, 391, 0, 0},
    {490, 1756, 470, 1162, 418, 726, 382, 599, 0, 0, 321, 450, 284, 396, 0, 0},
    {628, 1612, 567, 1049, 503, 696, 455, 577, 0, 0, 374, 440, 323, 386, 0, 0},
    {734, 1507, 642, 1008, 564, 691, 507, 574, 0, 0, 418, 434, 360, 382, 0, 0}};

// Cells that set a parameter; docs/collectives.md says which.
constexpr std::array<const char*, 12> kCalibratedCells{
    "fig13.p2p.1KB.32",      "fig13.p2p.16KB.32",   "fig13.p2p.128KB.32",  "fig13.p2p.1MB.32",
    "fig13.p2p.4MB.32",      "fig13.p2p.8MB.32",    "fig13.p2p.128KB.64",  "fig13.p2p.8MB.64",
    "fig13.hybrid.128KB.32", "fig13.hybrid.1MB.32", "fig13.hybrid.8MB.32", "fig13.hybrid.8MB.64"};

// Cells that contradict their neighbours; docs/fidelity.md says how.
constexpr std::array<const char*, 2> kUnexplainedCells{"fig13.p2p.64KB.2048", "fig13.p2p.1MB.2048"};

Kind KindOfCell(const std::string& id) {
  const auto among = [&id](const auto& cells) {
    return std::find(cells.begin(), cells.end(), id) != cells.end();
  };
  if (among(kUnexplainedCells)) return Kind::kUnexplained;
  return among(kCalibratedCells) ? Kind::kCalibrated : Kind::kPredicted;
}

class P7ihValidation {
 public:
  P7ihValidation(std::string only, const ShareObserver& progress, const P7ihMachine& machine)
      : only_(std::move(only)), share_(progress), machine_(machine) {}
  absl::StatusOr<std::vector<ValidationRow>> Run() {
    All();
    share_.Begin();
    rows_.clear();
    All();
    if (!status_.ok()) return status_;
    return std::move(rows_);
  }

 private:
  void All() {
    OneNode();
    OneTaskPerNode();
    Hybrids();
    Table("fig13", 1, kCores, true);
    Table("fig14b", 2, kThreads, false);
    Gains();
  }
  bool Wanted(const std::string& id) const {
    return status_.ok() && id.compare(0, only_.size(), only_) == 0;
  }
  // Nothing is published if `published` is 0.
  void Add(const std::string& id, std::string quantity, double published, double emulated,
           const char* unit, Kind kind, std::vector<std::string> other_ids = {}) {
    rows_.push_back({id, std::move(quantity),
                     published > 0 ? PublishedFigure::At(published) : PublishedFigure::None(),
                     emulated, unit, kind, std::move(other_ids)});
  }
  void AddRange(const std::string& id, std::string quantity, double from, double to,
                double emulated, const char* unit, Kind kind) {
    rows_.push_back(
        {id, std::move(quantity), PublishedFigure::Between(from, to), emulated, unit, kind, {}});
  }
  static CollectiveWorkload Loop(Operation operation, const char* algorithm, std::uint32_t nodes,
                                 std::uint32_t per_node, int smt, std::uint64_t bytes = 8) {
    CollectiveWorkload w;
    w.operation = operation;
    w.algorithm = algorithm;
    w.placement = {nodes, per_node, smt, ThreadMapping::kCore};
    w.bytes = bytes;
    w.type = OperandType::kInt64;
    w.verified = bytes <= 64;
    w.warm_up = bytes < kMib ? 6 : 1;
    w.iterations = bytes <= kKib ? 40 : bytes < kMib ? 12 : 3;
    if (w.placement.tasks() > 1024 && bytes < kMib) w.iterations = bytes <= kKib ? 16 : 6;
    return w;
  }
  static CollectiveWorkload Rotating(CollectiveWorkload w) {
    w.rotate_root = true;
    w.root = kFirstRoot % w.placement.tasks();
    return w;
  }
  static CollectiveWorkload Cell(bool hybrid, int smt, std::uint32_t tasks, std::uint64_t bytes) {
    const std::uint32_t per_node = static_cast<std::uint32_t>(kCoresPerNode * smt);
    return Rotating(Loop(Operation::kBroadcast, hybrid ? "hybrid:p2p" : "p2p", tasks / per_node,
                         per_node, 2, bytes));
  }
  // About proportional to the time that the measurement takes.
  static double Work(const CollectiveWorkload& w) {
    constexpr double kPacketBytes = 2048;
    return static_cast<double>(w.warm_up + w.iterations) * w.placement.tasks() *
           (1 + static_cast<double>(w.bytes) / kPacketBytes);
  }
  double Microseconds(CollectiveWorkload w) {
    if (!status_.ok()) return 0;
    if (share_.adds_up()) {
      share_.Part(Work(w));
      return 1;
    }
    w.host = machine_.host;
    const auto result = MeasureCollective(w, {}, machine_.parameters);
    share_.Part(Work(w));
    if (!result.ok()) {
      status_ = result.status();
      return 0;
    }
    return result->collective.Nanoseconds() / 1000;
  }
  void Latency(const std::string& id, std::string quantity, double published,
               const CollectiveWorkload& w, Kind kind, std::vector<std::string> other_ids = {}) {
    if (!Wanted(id)) return;
    Add(id, std::move(quantity), published, Microseconds(w), "us", kind, std::move(other_ids));
  }
  void Bandwidth(const std::string& id, std::string quantity, double published,
                 const CollectiveWorkload& w, Kind kind, std::vector<std::string> other_ids = {}) {
    if (!Wanted(id)) return;
    const double megabytes = static_cast<double>(w.bytes) / Microseconds(w);  // per second
    Add(id, std::move(quantity), published, megabytes, "MB/s", kind, std::move(other_ids));
  }

  void OneNode();
  void OneTaskPerNode();
  void Hybrids();
  void Gains();
  template <std::size_t kColumns>
  void Table(const char* figure, int smt, const std::array<std::uint32_t, kColumns>& columns,
             bool known);

  const std::string only_;
  WorkShare share_;
  const P7ihMachine& machine_;
  absl::Status status_;
  std::vector<ValidationRow> rows_;
};

// Section 3.5: 32 cores, four threads each.
void P7ihValidation::OneNode() {
  const auto on_cpu = [](CollectiveWorkload w) {
    w.placement.mapping = ThreadMapping::kCpu;
    return w;
  };
  const auto broadcast = [](const char* algorithm, std::uint64_t bytes = 8,
                            std::uint32_t tasks = 32) {
    return Loop(Operation::kBroadcast, algorithm, 1, tasks, 4, bytes);
  };
  Latency("P7IH-010", "shared-memory allreduce, 128 tasks", 9,
          Loop(Operation::kAllreduce, "shm:tree", 1, 128, 4), Kind::kCalibrated);
  Latency("P7IH-011", "P2P allreduce, 128 tasks of a node", 12,
          Loop(Operation::kAllreduce, "p2p", 1, 128, 4), Kind::kPredicted);
  Latency("P7IH-013", "shared-memory broadcast, two buffers, fixed root", 2.23,
          broadcast("shm:two-buffers"), Kind::kCalibrated);
  Latency("P7IH-014", "shared-memory broadcast, one buffer, fixed root", 2.65,
          broadcast("shm:one-buffer"), Kind::kCalibrated);
  Latency("P7IH-015", "P2P broadcast, 32 tasks, fixed root", 14, broadcast("p2p"),
          Kind::kPredicted);
  Latency("P7IH-016", "P2P broadcast, 32 tasks, rotating root", 14.3, Rotating(broadcast("p2p")),
          Kind::kPredicted);
  Latency("P7IH-017", "P2P broadcast, 32 tasks, rotating root, cpu mapping", 26.9,
          on_cpu(Rotating(broadcast("p2p"))), Kind::kUnexplained);
  Latency("P7IH-018", "shared-memory broadcast, one buffer, rotating root", 4.14,
          Rotating(broadcast("shm:one-buffer")), Kind::kCalibrated);
  Latency("P7IH-019", "shared-memory broadcast, one buffer, rotating root, cpu mapping", 3.58,
          on_cpu(Rotating(broadcast("shm:one-buffer"))), Kind::kCalibrated);
  Latency("P7IH-020", "shared-memory broadcast, two buffers, rotating root", 5.06,
          Rotating(broadcast("shm:two-buffers")), Kind::kUnexplained);
  Latency("P7IH-021", "shared-memory broadcast, two buffers, rotating root, cpu mapping", 3.41,
          on_cpu(Rotating(broadcast("shm:two-buffers"))), Kind::kCalibrated);
  Bandwidth("P7IH-022", "shared-memory broadcast, one buffer, 130 KB, 32 tasks", 1000,
            Rotating(broadcast("shm:one-buffer", 130'000)), Kind::kPredicted);
  Bandwidth("P7IH-023", "shared-memory broadcast, one buffer, 130 KB, 128 tasks", 800,
            Rotating(broadcast("shm:one-buffer", 130'000, 128)), Kind::kPredicted);
  if (!Wanted("P7IH-024")) return;
  Add("P7IH-024", "shared-memory broadcast of 130 KB, gain of two buffers that alternate", 2,
      Microseconds(Rotating(broadcast("shm:one-buffer", 130'000))) /
          Microseconds(Rotating(broadcast("shm:two-buffers", 130'000))),
      "x", Kind::kPredicted);
}

// Section 3.6, figure 9.
void P7ihValidation::OneTaskPerNode() {
  const auto allreduce = [](const char* algorithm, std::uint32_t nodes) {
    return Loop(Operation::kAllreduce, algorithm, nodes, 1, 1);
  };
  Latency("P7IH-025", "P2P allreduce, 2 nodes", 1.83, allreduce("p2p", 2), Kind::kCalibrated);
  Latency("P7IH-026", "P2P allreduce, 128 nodes", 11.39, allreduce("p2p", 128), Kind::kCalibrated);
  Latency("P7IH-027", "CAU allreduce, 2 nodes", 3.78, allreduce("cau", 2), Kind::kCalibrated);
  Latency("P7IH-028", "CAU allreduce, 128 nodes", 7.66, allreduce("cau", 128), Kind::kCalibrated);
  CollectiveWorkload broadcast = Loop(Operation::kBroadcast, "cau", 128, 1, 1);
  broadcast.iterations = 128;  // every root
  Latency("P7IH-029", "CAU broadcast, fixed root, 128 nodes", 2.24, broadcast, Kind::kPredicted);
  Latency("P7IH-030", "CAU broadcast, rotating root, 128 nodes", 3.6, Rotating(broadcast),
          Kind::kUnexplained);
  if (Wanted("P7IH-032")) {
    const double two = Microseconds(allreduce("p2p", 2)), all = Microseconds(allreduce("p2p", 128));
    Add("P7IH-032", "P2P allreduce, per phase beyond the first", 1.593, (all - two) / 6, "us",
        Kind::kRestated);
    Add("P7IH-033", "P2P allreduce, mean phase on 128 nodes", 1.627, all / 7, "us",
        Kind::kRestated);
  }
  if (Wanted("P7IH-034")) {
    std::uint32_t nodes = 2;
    while (nodes < 128 &&
           Microseconds(allreduce("cau", nodes)) > Microseconds(allreduce("p2p", nodes)))
      nodes *= 2;
    AddRange("P7IH-034", "allreduce: nodes from which the CAU is ahead, in powers of two", 4, 8,
             nodes, "nodes", Kind::kPredicted);
  }
  Latency("fig9b.p2p.128", "P2P broadcast, rotating root, 128 nodes", 0,
          Rotating(Loop(Operation::kBroadcast, "p2p", 128, 1, 1)), Kind::kPredicted, {"P7IH-031"});
}

// Sections 5.1 and 5.3, figures 12 and 14(a).
void P7ihValidation::Hybrids() {
  const auto broadcast = [](const char* algorithm, std::uint32_t per_node) {
    CollectiveWorkload w = Loop(Operation::kBroadcast, algorithm, 128, per_node, 2);
    if (w.algorithm != "p2p") w.iterations = 4 * kCoresPerNode;  // roots on several nodes
    return Rotating(w);
  };
  CollectiveWorkload hybrid = Loop(Operation::kAllreduce, "hybrid:cau", 64, 32, 2);
  hybrid.iterations = 100;
  Latency("P7IH-035", "hybrid allreduce, 2048 tasks, as the paper adds it up", 16, hybrid,
          Kind::kRestated);
  hybrid.placement.nodes = 128;
  Latency("fig12a.hybrid.4096", "hybrid allreduce, shared memory and CAU, 4096 cores", 0, hybrid,
          Kind::kPredicted);
  if (Wanted("P7IH-037") || Wanted("P7IH-038")) {
    // As the paper does: the broadcast is that of its figure 7(b), and the reduce is the time of
    // the allreduce of figure 7(a) minus that.
    const double term = Microseconds(Loop(Operation::kBroadcast, "shm:two-buffers", 1, 32, 4));
    const double both = Microseconds(Loop(Operation::kAllreduce, "shm:tree", 1, 32, 4));
    if (Wanted("P7IH-037")) {
      Add("P7IH-037", "shared-memory reduce of the hybrid, 32 tasks", 6, both - term, "us",
          Kind::kPredicted);
    }
    if (Wanted("P7IH-038")) {
      Add("P7IH-038", "shared-memory broadcast of the hybrid, 32 tasks", 2, term, "us",
          Kind::kPredicted);
    }
  }
  if (Wanted("P7IH-039")) {
    AddRange("P7IH-039", "CAU allreduce of the hybrid, 128 nodes", 7, 8,
             Microseconds(Loop(Operation::kAllreduce, "cau", 128, 1, 1)), "us", Kind::kRestated);
  }
  Latency("P7IH-041", "P2P allreduce, 4096 cores", 24,
          Loop(Operation::kAllreduce, "p2p", 128, 32, 2), Kind::kPredicted);
  Latency("P7IH-043", "P2P broadcast, 4096 cores", 40, broadcast("p2p", 32), Kind::kPredicted);
  Latency("P7IH-046", "P2P broadcast, 8192 threads", 68, broadcast("p2p", 64), Kind::kCalibrated);
  Latency("fig12b.shm-p2p.4096", "short broadcast, shared memory and P2P, 4096 cores", 0,
          broadcast("hybrid:p2p", 32), Kind::kPredicted, {"P7IH-044"});
  Latency("fig12b.shm-cau.4096", "short broadcast, shared memory and CAU, 4096 cores", 0,
          broadcast("hybrid:cau", 32), Kind::kPredicted, {"P7IH-045"});
  Latency("fig14a.shm-p2p.8192", "short broadcast, shared memory and P2P, 8192 threads", 0,
          broadcast("hybrid:p2p", 64), Kind::kPredicted, {"P7IH-047"});
  Latency("fig14a.shm-cau.8192", "short broadcast, shared memory and CAU, 8192 threads", 0,
          broadcast("hybrid:cau", 64), Kind::kPredicted, {"P7IH-048"});
}

// How far the hybrid is ahead of P2P on one node: sections 5.2 and 5.3.
void P7ihValidation::Gains() {
  const struct {
    const char *id, *what;
    int smt;
    double least, most;  // published; 0: not known here
  } kGains[] = {{"P7IH-049", "32 cores", 1, 2.05, 5.60}, {"fig14b.gain.64", "64 threads", 2, 0, 0}};
  for (const auto& gain : kGains) {
    if (!Wanted(gain.id)) continue;
    // Arithmetic on the column of 32 cores, if that is known.
    const Kind kind = gain.least > 0 ? Kind::kRestated : Kind::kPredicted;
    double least = 1e9, most = 0;
    for (const Size& size : kSizes) {
      if (gain.smt == 2 && size.bytes == 16 * kKib) continue;
      const std::uint32_t tasks = static_cast<std::uint32_t>(kCoresPerNode * gain.smt);
      const double ahead = Microseconds(Cell(false, gain.smt, tasks, size.bytes)) /
                           Microseconds(Cell(true, gain.smt, tasks, size.bytes));
      least = std::min(least, ahead);
      most = std::max(most, ahead);
    }
    Add(fmt::format("{}.least", gain.id),
        fmt::format("hybrid broadcast ahead of P2P, {}: least", gain.what), gain.least, least, "x",
        kind);
    Add(fmt::format("{}.most", gain.id),
        fmt::format("hybrid broadcast ahead of P2P, {}: most", gain.what), gain.most, most, "x",
        kind);
  }
}

template <std::size_t kColumns>
void P7ihValidation::Table(const char* figure, int smt,
                           const std::array<std::uint32_t, kColumns>& columns, bool known) {
  int number = known ? 53 : 197;  // of the figure in the list of all published figures
  for (std::size_t s = 0; s < kSizes.size(); ++s) {
    if (!known && kSizes[s].bytes == 16 * kKib) continue;  // figure 14 has no such row
    for (std::size_t c = 0; c < kColumns; ++c) {
      for (const bool hybrid : {false, true}) {
        const std::string id = fmt::format("{}.{}.{}.{}", figure, hybrid ? "hybrid" : "p2p",
                                           kSizes[s].name, columns[c]);
        const CollectiveWorkload w = Cell(hybrid, smt, columns[c], kSizes[s].bytes);
        Bandwidth(id,
                  fmt::format("{} broadcast of {} on {} {}", hybrid ? "hybrid" : "P2P",
                              kSizes[s].name, columns[c], smt == 1 ? "cores" : "threads"),
                  known ? kFigure13[s][2 * c + hybrid] : 0, w, KindOfCell(id),
                  {fmt::format("P7IH-{:03}", number++)});
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<ValidationRow>> ValidateP7ih(const std::string& only,
                                                        const ShareObserver& progress,
                                                        const P7ihMachine& machine) {
  return P7ihValidation(only, progress, machine).Run();
}

}  // namespace percs
