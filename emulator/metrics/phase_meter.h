// What a node sees of a measurement phase beside its counters: latencies by batch and by path, and
// bytes. None of it is in the digest; every delivery already is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/metrics/histogram.h"
#include "emulator/metrics/latency_batches.h"
#include "emulator/topology/topology.h"

namespace percs {

// Latencies of packets by where they went and by the links they crossed.
struct PathLatencies {
  enum Class : std::uint8_t {
    kDrawer,     // to a hub of the own drawer, or to another window of the own hub
    kSupernode,  // to another drawer of the own supernode
    kDirect,     // to another supernode
    kIndirect,   // to another supernode, over a middle one
    kEdge,       // to or from what is no hub, or to a multicast group
    kSwitches,   // in a network of switches, which has none of these groups
  };
  static constexpr int kClasses = kSwitches + 1;
  static constexpr int kHops = 17;  // 0 to 16 links; more count as the most
  struct Cell {
    std::uint64_t count = 0, sum_ps = 0, max_ps = 0;
    bool operator==(const Cell&) const = default;
  };
  std::array<std::array<Cell, kHops>, kClasses> cells{};

  static const char* ClassText(Class path);
  void Add(Class path, int hops, Time latency) {
    Cell& cell = cells[path][static_cast<std::size_t>(hops < kHops ? hops : kHops - 1)];
    const auto ps = static_cast<std::uint64_t>(latency);
    ++cell.count;
    cell.sum_ps += ps;
    if (ps > cell.max_ps) cell.max_ps = ps;
  }
  void Merge(const PathLatencies& other);
  bool operator==(const PathLatencies&) const = default;
};

// The class of a packet that arrives at one node.
class PathClassifier {
 public:
  PathClassifier(const Topology& topology, NodeId node);
  PathLatencies::Class Of(NodeId source, NodeId destination, bool indirect) const {
    if (destination != node_ || source >= hubs_) [[unlikely]]
      return PathLatencies::kEdge;
    // What is before the first one wraps around, and is large then.
    if (source - drawer_ < drawer_hubs_) return near_;
    if (source - supernode_ < supernode_hubs_) return PathLatencies::kSupernode;
    return indirect ? PathLatencies::kIndirect : PathLatencies::kDirect;
  }

 private:
  NodeId node_, hubs_ = 0;             // of the machine; 0 at a node that is no hub
  NodeId drawer_ = 0, supernode_ = 0;  // first hubs of those the node is in
  NodeId drawer_hubs_ = 0, supernode_hubs_ = 0;
  PathLatencies::Class near_ = PathLatencies::kDrawer;
};

// A part of a phase.
struct PhasePart {
  LatencyBatches batches;  // of the part
  PathLatencies paths;
  std::uint64_t offered = 0, accepted = 0;  // bytes of the pattern, offered and arrived here
  std::uint64_t injected = 0;               // bytes of raw packets and messages that left the HFIs
  Histogram latency;                        // of a phase with several parts; else in the counters

  void Merge(const PhasePart& other);
  // All numbers, in the order in which they cross between processes.
  template <typename F>
  void Visit(bool with_histogram, F&& f) {
    for (std::size_t i = 0; i < LatencyBatches::kBatches; ++i)
      f(batches.count[i]), f(batches.sum_ps[i]);
    for (auto& row : paths.cells) {
      for (PathLatencies::Cell& cell : row) f(cell.count), f(cell.sum_ps), f(cell.max_ps);
    }
    f(offered), f(accepted), f(injected);
    if (!with_histogram) return;
    f(latency.count), f(latency.sum), f(latency.max);
    for (std::uint64_t& bucket : latency.buckets.all()) f(bucket);
  }
};

// A phase that finds the end of its own warm-up has six parts, each other one.
class PhaseMeter {
 public:
  // REQUIRES: begin < end; parts is 1 or kPhaseParts.
  PhaseMeter(Time begin, Time end, int parts, const PathClassifier& classifier)
      : classifier_(classifier),
        begin_(begin),
        end_(end),
        parts_(static_cast<std::size_t>(parts)) {}

  // Of a packet that was created in the phase, and arrived at the node of the classifier.
  void Delivered(NodeId source, NodeId destination, bool indirect, int hops, Time created,
                 Time latency) {
    const PathLatencies::Class path = classifier_.Of(source, destination, indirect);
    if (several()) return DeliveredInPart(path, hops, created, latency);
    parts_[0].batches.Add(created - begin_, end_ - begin_, latency);
    parts_[0].paths.Add(path, hops, latency);
  }
  // Only of a phase with several parts; the counters have those of a whole phase.
  void Offered(Time now, std::uint64_t bytes) {
    if (Holds(now)) Part(now).offered += bytes;
  }
  void Accepted(Time now, std::uint64_t bytes) {
    if (Holds(now)) Part(now).accepted += bytes;
  }
  void Injected(Time now, std::uint64_t bytes) {
    if (Holds(now)) Part(now).injected += bytes;
  }
  bool several() const { return parts_.size() > 1; }
  // `offered` and `accepted`: bytes in the whole phase, which are those of its only part.
  std::vector<PhasePart> Parts(std::uint64_t offered, std::uint64_t accepted) const {
    std::vector<PhasePart> parts = parts_;
    if (!several()) parts[0].offered = offered, parts[0].accepted = accepted;
    return parts;
  }

 private:
  void DeliveredInPart(PathLatencies::Class path, int hops, Time created, Time latency);
  bool Holds(Time at) const { return at >= begin_ && at < end_; }
  // Part i begins at begin + ceil(i x length / parts).
  std::size_t IndexOf(Time at) const {
    return static_cast<std::size_t>((at - begin_) * static_cast<Time>(parts_.size()) /
                                    (end_ - begin_));
  }
  Time BeginOf(std::size_t part) const {
    const Time parts = static_cast<Time>(parts_.size());
    return begin_ + (static_cast<Time>(part) * (end_ - begin_) + parts - 1) / parts;
  }
  PhasePart& Part(Time at) { return several() ? parts_[IndexOf(at)] : parts_[0]; }

  const PathClassifier classifier_;
  const Time begin_, end_;
  std::vector<PhasePart> parts_;
};

}  // namespace percs
