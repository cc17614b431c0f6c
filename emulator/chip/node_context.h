// What the blocks of one hub share.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "emulator/base/pool.h"
#include "emulator/chip/fault_tally.h"
#include "emulator/engine/event_queue.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/metrics/path_trace.h"
#include "emulator/metrics/phase_meter.h"
#include "emulator/packet/packet_state.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/topology/topology.h"
#include "emulator/wire/outbox.h"

namespace percs {

// What the nodes of one shard share: their work and their packet objects. Packets are counted where
// they are created and where they end, so a single shard's number may be negative; the sum over
// shards is what counts. A management packet is unfinished work and not resident: none waits longer
// than service_wait, so it is in no deadlock and must not hide one.
struct WorkCounters {
  std::int64_t unfinished = 0;
  std::int64_t resident = 0;
  // There are so many nodes that what they will touch is better fetched into the cache in advance.
  bool fetches = false;
  EventNodes events;
  // Instead of these, if set, for nodes that are made from now on. Those of a supernode have theirs
  // close together in memory: what is spread over gigabytes costs ten times as much to reach,
  // because the processor has to look for the addresses of its pages, too.
  EventNodes* events_apart = nullptr;
  Pool<Packet> packets;  // of all nodes of the shard: a packet crosses between them without a copy
};

// One packet that reached its window; what the digest folds.
struct Delivery {
  Time time = 0;
  NodeId source = 0;
  std::uint64_t sequence = 0;
  int flits = 0;
  std::uint64_t path = 0;
};
using DeliveryObserver = std::function<void(NodeId, const Delivery&)>;

struct NodeContext {
  NodeContext(NodeId node, const Topology& topology, const P7ihParameters& parameters,
              WorkCounters* work, const DeliveryObserver* on_delivery)
      : node(node),
        topology(&topology),
        parameters(&parameters),
        work(work),
        packets(work->packets),
        on_delivery(on_delivery),
        queue(work->events_apart ? work->events_apart : &work->events) {}

  const NodeId node;
  const Topology* const topology;
  const P7ihParameters* const parameters;
  WorkCounters* const work;
  Pool<Packet>& packets;
  const DeliveryObserver* const on_delivery;
  Time now = 0;
  Time last_event = 0;  // of the last thing that a result shows
  EventQueue queue;
  NodeStats stats;
  // What should never be, checked at the end of the run; not in the digest.
  std::uint64_t flits_out_of_order =
      0;  // runs of flits that do not continue where their packet was
  std::uint64_t flits_without_credit = 0;  // runs of flits that came in without a free slot
  std::uint64_t vcs_out_of_place = 0;      // packets on another VC than rule 10 has

  std::vector<bool> windows_down;  // by window; empty while all work
  bool WindowDown(WindowId window) const { return !windows_down.empty() && windows_down[window]; }

  // By place, for the tallies of faults; made with the first loss.
  std::unique_ptr<LossesByPlace> losses;
  [[gnu::cold]] void CountLoss(int place, PacketKind kind) {
    if (!losses) losses = std::make_unique<LossesByPlace>();
    Losses& here = (*losses)[static_cast<std::size_t>(place)];
    ++here.lost;
    if (kind == PacketKind::kData || kind == PacketKind::kOperation) ++here.resent;
  }

  std::unique_ptr<PhaseMeter> phase;  // null: the scenario measures no phase

  // Records of traced packets; made when the first one is met, or chosen here.
  std::unique_ptr<PathTracer> tracer;
  PathTracer& Tracer() {
    if (!tracer) tracer = std::make_unique<PathTracer>(node);
    return *tracer;
  }

  void CountDrop(DropReason reason, int flits, int tails) {
    NoteDrop(reason, flits, tails);
    work->resident -= tails;
  }
  void CountServiceDrop(DropReason reason) {
    NoteDrop(reason, 1, 1);
    --work->unfinished;
  }
  void CountMode(RouteMode mode) {
    if (mode != RouteMode::kHwDirect) ++stats.packets_by_mode[static_cast<int>(mode)];
  }
  void Release(Packet* p) {
    p->header.payload.Clear();
    if (p->header.kind != PacketKind::kRaw) p->header.ClearMessage();  // raw packets never have one
    packets.Give(p);
  }

 private:
  void NoteDrop(DropReason reason, int flits, int tails) {
    stats.flits_dropped[static_cast<int>(reason)] += static_cast<std::uint64_t>(flits);
    stats.packets_dropped[static_cast<int>(reason)] += static_cast<std::uint64_t>(tails);
    last_event = std::max(last_event, now);
  }
};

// Events of a hub, in the detail field of their key where class and port do not tell.
enum class FlitEvent : std::uint64_t { kMark = 0, kRun = 1, kService = 2 };
// Low byte; kInput: output above.
enum class TimerEvent : std::uint64_t {
  kInput = 0,
  kOutputFree = 1,
  kWireEmpty = 2,
  kServiceWait = 3
};
// Likewise of class kCommand: operations of programs outside, after other commands of the instant.
inline constexpr int kOutside = 209;
// Ports above 55 in keys of class kHfi: what is not tied to a port.
inline constexpr int kRetransmit = 202, kTask = 203, kCau = 205, kServiceArrival = 206,
                     kServiceTimer = 207, kWindows = 208, kRawMessages = 209;

}  // namespace percs
