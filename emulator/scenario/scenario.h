// A scenario as the machine understands it. The proto message percs.v1.Scenario is its public face;
// proto/scenario/build.cc is the one translation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/cell/blade_parameters.h"
#include "emulator/metrics/latency_batches.h"
#include "emulator/packet/route_mode.h"
#include "emulator/routing/route_tables.h"
#include "emulator/routing/tree_plan.h"
#include "emulator/scenario/fault_spec.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/p7ih.h"
#include "emulator/scenario/window_program.h"
#include "emulator/topology/topology.h"

namespace percs {

enum class Pattern : std::uint8_t {
  kUniform,
  kHotspot,
  kNeighbor,
  kTornado,
  kTranspose,
  kBitcomp,
  kRandperm,
  kSupernodePair,
  kMulticast,
  kBitrev,
  kShuffle,
  kAdversarial,
  kStencil,
  kPermutation,
  kDiagonal,
  kAsymmetric,
};
// When an open-loop source offers messages.
enum class Injection : std::uint8_t {
  kPoisson,    // gaps of exponential distribution
  kBernoulli,  // in each flit time of W, or not, with one probability
};
enum class Schedule : std::uint8_t { kSpread, kLinear };
enum class PayloadMode : std::uint8_t {
  kLengths,
  kVerified
};  // verified: real bytes, checked on arrival

// Every hub sends `bytes` to every other hub, once.
struct AllToAllWorkload {
  std::uint64_t bytes = 65536;  // per pair
  Schedule schedule = Schedule::kSpread;
  bool reliable = true;  // message layer; otherwise raw packets
  PayloadMode payload = PayloadMode::kVerified;
};

// Synthetic traffic: each hub draws inter-arrival times and destinations from its own stream.
struct PatternWorkload {
  Pattern pattern = Pattern::kUniform;
  std::uint64_t message_bytes = 2048;
  // Either a fixed count per hub (count > 0, offered back to back or at `load`), or phases.
  std::uint64_t count = 0;
  double load = 0.5;  // of 96 GB/s per hub; 0 = as fast as the HFI takes them (with count)
  Time warm_up = 0,
       measure = 0;  // phases; drain follows. measure == 0 and count == 0: until stopped
  // Raw packets: hubs go on sending, unmeasured, for this long after `measure`, so that the last
  // packets of the phase meet the same load as the first; the run is to stop then. 0: they do not.
  Time drain = 0;
  // The end of the warm-up is found in the batches of the phase
  // (emulator/metrics/latency_batches.h).
  bool auto_warm_up = false;
  int parts() const { return auto_warm_up ? SteadyPart::kParts : 1; }
  bool reliable = false;
  PayloadMode payload = PayloadMode::kLengths;
  std::vector<NodeId> permutation = {};  // kPermutation: by place, where it sends; kNoNode: silent
  NodeId hotspot = 0;                    // kHotspot
  double hotspot_fraction = 0.2;  // kHotspot: this share goes to `hotspot`, the rest is uniform
  int source_supernode = 0, destination_supernode = 1;  // kSupernodePair
  int supernode_offset = 1;          // kAdversarial: supernode s sends to s + supernode_offset
  double uniform_fraction = 0;       // kAdversarial: this share is uniform
  std::uint64_t burst_messages = 1;  // mean length of a burst; 1: no bursts
  double burst_load = 1;             // within a burst, of 96 GB/s per hub
  Injection injection = Injection::kPoisson;
  // With `reliable`, in place of a load: a hub offers its next message as soon as fewer than this
  // are not known to be delivered; 0: open loop.
  std::uint64_t outstanding = 0;
};

// Packets at given times; tests compare the engine with the reference router on these.
struct ScriptedPacket {
  Time at = 0;
  NodeId source = 0, destination = 0;
  WindowId source_window = 0, destination_window = 0;
  int bytes = 2048;
  std::optional<RouteSetting> route = std::nullopt;  // else as the workload's traffic
};
struct ScriptedWorkload {
  std::vector<ScriptedPacket> packets;  // raw; any order
};

// One operation of a GOAL rank.
struct GoalOp {
  enum class Kind : std::uint8_t { kCalc, kSend, kRecv };
  Kind kind = Kind::kCalc;
  std::uint32_t peer = 0, tag = 0;
  std::uint32_t cpu = 0, nic = 0;
  std::uint64_t size = 0;                   // bytes, or nanoseconds of calc
  std::vector<std::uint32_t> after_finish;  // operations that require this one's end
  std::vector<std::uint32_t> after_start;   // operations that irequire this one's start
  std::uint32_t dependencies = 0;           // of this operation, both kinds
};
struct GoalTrace {
  std::vector<std::vector<GoalOp>> ranks;
};
enum class RankMapping : std::uint8_t { kBlock, kRoundRobin };  // over hubs
struct TraceWorkload {
  GoalTrace trace;
  RankMapping mapping = RankMapping::kRoundRobin;
  double calc_scale = 1.0;
};

// Participants of trees run the same steps again and again, all at once on several trees, and
// compare every result with a serial reference.
enum class CauStep : std::uint8_t { kReduce, kMulticast, kBarrier, kAllreduce };
struct CauWorkload {
  std::vector<CauTreeId> trees;                        // empty: all of the scenario
  std::vector<CauStep> steps = {CauStep::kAllreduce};  // of one iteration
  std::uint64_t iterations = 1000;
  ReduceOp op = ReduceOp::kSum;
  OperandType type = OperandType::kDouble;
  int operands = 1;         // 1..64 bytes of them
  bool rotate_root = true;  // to the next participant with every step
  int in_flight = 1;        // steps a participant may have begun
  Time compute_max = 0;     // drawn between its steps, at most this
};

// SPEs 0..spes-1 of a blade call one collective again and again.
enum class CollectiveOperation : std::uint8_t { kBarrier, kBroadcast, kReduce };
struct CollectiveProgram {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  std::string algorithm = "auto";
  int spes = cell::kSpes;
  std::uint32_t bytes = 128;  // broadcast and reduce
  std::uint64_t iterations = 1000;
};

// A blade and `peer` send each other one message per round: SPEs fill their parts, a PPE sends the
// whole and waits for the peer's, SPEs check every byte of that. A hub answers by itself; a blade
// has to run the same exchange with this one.
struct ExchangeProgram {
  NodeId peer = 0;
  int spes = cell::kSpes;
  std::uint32_t bytes = cell::kDmaBytesMax;  // part of each SPE
  std::uint64_t rounds = 10;
};
using BladeProgram = std::variant<CollectiveProgram, ExchangeProgram>;

struct BladeConfig {
  std::string type = "QS20";
  std::vector<BladeProgram> programs;  // one after the other
};

struct BladeFault {
  enum class Kind : std::uint8_t { kSpeDown, kChipLinkDegraded, kRingLost };
  Kind kind = Kind::kSpeDown;
  Time at = 0;
  NodeId node = 0;
  int unit = 0;      // kSpeDown: SPE; kRingLost: Cell
  int ring = 0;      // kRingLost
  double share = 1;  // kChipLinkDegraded: what is left of the rate
};

class HubServices;
class HubWorkload;
// A workload of which nobody but itself needs to know what it is: it makes its part for a hub
// (emulator/workload/ticks.h is one).
using OtherWorkload = std::function<std::unique_ptr<HubWorkload>(HubServices&)>;

using Workload =
    std::variant<std::monostate, AllToAllWorkload, PatternWorkload, ScriptedWorkload, TraceWorkload,
                 CollectiveWorkload, CauWorkload, WindowWorkload, OtherWorkload>;

// What the service software of hubs asks others for over the service ports (docs/semantics.md
// B.10). Every request is answered by the hub that gets it.
struct ServicePing {
  NodeId from = 0, to = 0;  // hubs
  Time at = 0;
  std::uint64_t count = 1;
  Time period = 10 * kMicrosecond;
};
struct ServiceTraffic {
  std::vector<ServicePing> pings;
  // Every hub asks its neighbour on every link that leads to a hub, `probe_rounds` times.
  std::uint64_t probe_rounds = 0;
  Time probe_at = 0, probe_period = 100 * kMicrosecond;
  Time timeout = 50 * kMicrosecond;  // for an answer
  int tries = 3;
  bool any() const { return !pings.empty() || probe_rounds > 0; }
};

// A link whose propagation is not that of its class.
struct Cable {
  LinkEnd link;   // either end
  Time wire = 0;  // one way
};

struct Scenario {
  std::string name = "scenario";
  std::uint64_t seed = 1;
  TopologySpec topology;
  P7ihParameters parameters;
  Workload workload;
  std::optional<PatternWorkload>
      background;  // beside the workload (emulator/workload/background.h)
  // The synthetic traffic, if any.
  const PatternWorkload* pattern() const {
    return background ? &*background : std::get_if<PatternWorkload>(&workload);
  }
  std::vector<Cable> cables;
  std::vector<FaultSpec> faults;  // created before the run starts, in this order
  std::vector<BladeConfig>
      blades;  // of topology.blades, in their order; those beyond it are default
  std::vector<BladeFault> blade_faults;
  ServiceTraffic service;
  std::vector<TreeSpec> trees;  // numbered in this order; there before the run starts
  RoutingSettings routing;
  // Hubs keep the clock, or tell each other about congestion: events that keep no run from ending.
  bool has_background() const {
    return topology.clock.has_value() || routing.reports() != CongestionReport::kNone;
  }
  // What makes a crossbar of InfiniBand, and a host adapter, of the blocks of a hub and a blade
  // (emulator/sim/infiniband.h); a fabric makes them of `parameters`.
  P7ihParameters crossbar, adapter;
  const P7ihParameters& ParametersOf(const Topology& machine, NodeId node) const {
    return !machine.in_tree(node) ? parameters : machine.is_crossbar(node) ? crossbar : adapter;
  }
  bool reroute = true;  // network management answers alerts
  Time stop_at = 0;     // 0: when everything is done
};

}  // namespace percs
