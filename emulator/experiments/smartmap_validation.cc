#include "emulator/experiments/smartmap_validation.h"

#include <algorithm>
#include <utility>

#include "emulator/collectives/smartmap_collective.h"
#include "emulator/experiments/collective_measure.h"
#include "fmt/format.h"

namespace percs {
namespace {

// 8 bytes take 850 ns between two Opterons of one core each (Loh, RFC: sm Latency, Open MPI's
// mailing list `devel`, January 2009: V20z). Two lines come over for that, the entry of the FIFO
// and the fragment behind it, in 85 to 94 ns each (De Gelas, AMD's Quad-Core Barcelona, AnandTech,
// September 2007: Opteron 880, two chips). Of the rest each end has one half.
constexpr Time kSoftware = (850 - 2 * 90) * kNanosecond;

// Portals takes 5.4 us one way for a message without data: "under six", of which software is the
// most (Brightwell et al., Implementation and Performance of Portals 3.3 on the Cray XT3, 2005).
// Open MPI's own software comes on top of it.
P7ihParameters SeaStar() {
  P7ihParameters parameters;
  parameters.send_overhead = parameters.receive_overhead = 2'500 * kNanosecond + kSoftware / 2;
  return parameters;
}

class SmartmapValidation {
 public:
  SmartmapValidation(std::string only, const ShareObserver& progress, const HostParameters& host)
      : only_(std::move(only)), share_(progress), host_(host) {}
  absl::StatusOr<std::vector<ValidationRow>> Run() {
    All();
    if (rows_.empty()) return std::move(rows_);  // `only` is no row
    share_.Begin();
    rows_.clear();
    All();
    if (!status_.ok()) return status_;
    return std::move(rows_);
  }

 private:
  void All() {
    OneNode();
    Hierarchical();
  }
  enum class Layer { kTwoCopies, kOneCopy, kDirect };
  double Time(Operation operation, Layer layer, std::uint64_t bytes,
              const char* direct = "smartmap") {
    CollectiveWorkload w;
    w.operation = operation;
    w.placement = {1, 4, 1, ThreadMapping::kCore};
    w.bytes = bytes;
    w.host = host_;
    w.iterations = 20;
    w.rotate_root = true;  // as the Intel MPI Benchmarks do
    w.algorithm = layer == Layer::kDirect ? direct : "p2p:openmpi";
    if (layer == Layer::kOneCopy) {  // by the receiver, once it has asked for it
      w.host.eager_limit = w.host.local_fragment = 0;
    }
    return Nanoseconds(w, {});
  }
  double HierarchicalTime(Operation operation, const char* algorithm, std::uint64_t bytes) {
    CollectiveWorkload w;
    w.operation = operation;
    w.algorithm = algorithm;
    w.placement = {32, 4, 1, ThreadMapping::kCore};
    w.bytes = bytes;
    w.host = host_;
    w.verified = false;
    w.iterations = bytes >= (1u << 19) ? 4 : 10;
    w.warm_up = 2;
    w.rotate_root = true;
    return Nanoseconds(w, SeaStar());
  }
  // About proportional to the time that the measurement takes: steps of software, of which tasks
  // that check their data can fill, move and check kContentBytes in the time of one, and packets.
  static double Work(const CollectiveWorkload& w) {
    constexpr double kContentBytes = 400, kPacketBytes = 4096;
    const double bytes = static_cast<double>(w.bytes);
    const double of_task =
        w.operation == Operation::kAlltoall ? bytes * w.placement.tasks() : bytes;
    return static_cast<double>(w.warm_up + w.iterations) * w.placement.tasks() *
           (1 + (w.verified ? of_task / kContentBytes : 0) +
            (w.placement.nodes > 1 ? 3 + bytes / kPacketBytes : 0));
  }
  double Nanoseconds(const CollectiveWorkload& w, const P7ihParameters& parameters) {
    if (share_.adds_up() || !status_.ok()) {
      share_.Part(Work(w));
      return 1;
    }
    const auto result = MeasureCollective(w, {}, parameters);
    share_.Part(Work(w));
    status_ = result.status();
    return result.ok() ? result->collective.Nanoseconds() : 1;
  }
  double Gain(Operation operation, std::uint64_t bytes) {
    return Time(operation, Layer::kTwoCopies, bytes) / Time(operation, Layer::kDirect, bytes);
  }
  void OneNode();
  void Hierarchical();
  void Add(std::string id, std::string quantity, PublishedFigure published, double emulated,
           const char* unit, RowKind kind = RowKind::kPredicted) {
    if (id.compare(0, only_.size(), only_) != 0) return;
    rows_.push_back(
        {std::move(id), std::move(quantity), std::move(published), emulated, unit, kind, {}});
  }
  // Whether a search continues beyond `bytes`. If it only estimates work, it ends at the published
  // figure.
  bool GoesOn(std::uint64_t bytes, std::uint64_t published) const {
    return bytes < (share_.adds_up() ? published : 1u << 20);
  }
  // Last power of two up to which two copies are faster than one.
  double AheadUpTo(Operation operation, std::uint64_t published) {
    std::uint64_t last = 4;
    while (GoesOn(2 * last, 2 * published) && Time(operation, Layer::kTwoCopies, 2 * last) <=
                                                  Time(operation, Layer::kOneCopy, 2 * last))
      last *= 2;
    return static_cast<double>(last);
  }

  const std::string only_;
  WorkShare share_;
  const HostParameters host_;
  absl::Status status_;
  std::vector<ValidationRow> rows_;
};

// Four tasks of a node.
void SmartmapValidation::OneNode() {
  constexpr std::uint64_t kThreshold = 1024, kAhead = 1024, kFewHundred = 500;
  // Serial and parallel take the same time below the threshold, and only there.
  std::uint64_t threshold = 8;
  while (GoesOn(threshold, kThreshold) &&
         Time(Operation::kReduce, Layer::kDirect, threshold, "smartmap:auto") ==
             Time(Operation::kReduce, Layer::kDirect, threshold, "smartmap:serial")) {
    threshold += 8;
  }
  Add("SMAP-008", "reduce is parallel from", PublishedFigure::At(kThreshold),
      static_cast<double>(threshold), "B", RowKind::kRestated);
  const double about = AheadUpTo(Operation::kReduce, kAhead);
  Add("SMAP-009", "reduce by messages: two copies are ahead up to about",
      PublishedFigure::At(kAhead), about, "B");
  const double reduce = Gain(Operation::kReduce, 32768);
  Add("SMAP-010", "reduce of 32 KB, direct ahead of two copies by more than",
      PublishedFigure::AtLeast(700), 100 * (reduce - 1), "%");
  Add("SMAP-011", "reduce of 32 KB, direct against two copies: as much as", PublishedFigure::At(7),
      reduce, "x");
  const double broadcast = Gain(Operation::kBroadcast, 8192);
  Add("SMAP-012", "broadcast of 8 KB, direct against two copies: nearly", PublishedFigure::At(10),
      broadcast, "x");
  double least = 1e9, most = 0;
  for (std::uint64_t bytes = 1024; bytes <= (1u << 19); bytes *= 8) {
    const double gain = Gain(Operation::kAllreduce, bytes);
    least = std::min(least, gain);
    most = std::max(most, gain);
  }
  Add("SMAP-013", "allreduce, 1 KB to nearly 1 MB, direct against two copies: least",
      PublishedFigure::Between(2, 3), least, "x");
  Add("SMAP-013.most", "the same: most", PublishedFigure::Between(2, 3), most, "x");
  double alltoall = 1e9;
  for (std::uint64_t bytes = 4096; bytes <= 131072; bytes *= 2) {
    alltoall = std::min(alltoall, Gain(Operation::kAlltoall, bytes));
  }
  Add("SMAP-014", "all-to-all of 4 KB to 128 KB, direct ahead of two copies by more than",
      PublishedFigure::AtLeast(500), 100 * (alltoall - 1), "%");
  const double few = AheadUpTo(Operation::kAlltoall, kFewHundred);
  Add("SMAP-015", "all-to-all by messages: two copies are ahead up to a few hundred bytes",
      PublishedFigure::Between(200, kFewHundred), few, "B");
}

// 32 quad-core nodes; their network is that of the hubs here, with a SeaStar's latency and rate.
void SmartmapValidation::Hierarchical() {
  const auto ahead = [this](Operation operation, std::uint64_t bytes) {  // percent
    const double copies = HierarchicalTime(operation, "hierarchical:p2p", bytes);
    return 100 * (copies / HierarchicalTime(operation, "hierarchical:smartmap", bytes) - 1);
  };
  const double reduce = ahead(Operation::kReduce, 2 << 20);
  Add("SMAP-016", "reduce over 32 nodes, 2 MB, direct ahead of two copies by almost",
      PublishedFigure::At(30), reduce, "%");
  double least = 1e9, most = 0;
  for (std::uint64_t bytes = 4096; bytes <= (1u << 19); bytes *= 4) {
    const double gain = ahead(Operation::kBroadcast, bytes);
    least = std::min(least, gain);
    most = std::max(most, gain);
  }
  Add("SMAP-017", "broadcast over 32 nodes, 4 KB to 512 KB, direct ahead of two copies: least",
      PublishedFigure::Between(5, 20), least, "%");
  Add("SMAP-017.most", "the same: most", PublishedFigure::Between(5, 20), most, "%");
}
}  // namespace

// A 2.2 GHz quad-core Opteron with Open MPI: what others have measured of its parts, and middles of
// ranges where nobody has. No figure of paper 002 sets anything.
HostParameters OpteronHost() {
  constexpr std::uint64_t kHeader = 56;  // of Open MPI's `ob1` layer, within the limits
  HostParameters host;
  // A line goes from a core to another and back in 152 ns (De Gelas, AMD's Quad-Core Barcelona,
  // AnandTech, September 2007: Opteron 2350).
  constexpr Time kLine = 76 * kNanosecond;
  host.line_same_core = host.line_same_chip = host.line_other_chip = kLine;
  host.write_per_kib = host.copy_per_kib = host.memory_per_kib = 341 * kNanosecond;  // 3 GB/s
  // 8.8 GB/s: 128 bits per clock go between L1 and L2 (iXBT Labs, Detailed Platform Analysis in
  // RightMark Memory Analyzer, part 15, February 2008). For a line copied two come out of L2 and,
  // as it has nothing that L1 has, two go back. L1, L2 and a quarter of L3.
  host.own_per_kib = 116 * kNanosecond;
  host.own_cache = (64 + 512 + 512) * 1024;
  // A float in two clocks: a compiled loop of six instructions, of which three issue at once, and
  // of which four access memory, two at once (ompi/mca/op/base/op_base_functions.c of April 2009,
  // which reads the count again for each).
  host.combine_per_kib = 233 * kNanosecond;
  host.shared_entry = host.collective_entry = 150 * kNanosecond;
  host.shared_step = 50 * kNanosecond;
  // A message's second line is a part of its receiver's time.
  host.local_send = kSoftware / 2;
  host.local_receive = kSoftware / 2 + kLine;
  host.registration = 0;  // direct access needs none
  // Its `sm` component.
  host.eager_limit = 4096 - kHeader;
  host.local_fragment = 32 * 1024;
  // Between nodes its `portals` component, whose eager_limit is 32 KiB: the SeaStar reads and
  // writes the tasks' own memory, at 2.0 GB/s (Brightwell et al., Performance Impact of the Red
  // Storm Upgrade, 2006).
  host.leader_eager_limit = 32 * 1024 - kHeader;
  host.network_registration = 0;
  host.rdma_per_kib = host.fifo_per_kib = 500 * kNanosecond;
  return host;
}

absl::StatusOr<std::vector<ValidationRow>> ValidateSmartmap(const std::string& only,
                                                            const ShareObserver& progress,
                                                            const HostParameters& host) {
  return SmartmapValidation(only, progress, host).Run();
}

}  // namespace percs
