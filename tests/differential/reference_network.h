// State of the reference router, named as in docs/semantics.md part B.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/base/random.h"
#include "tests/differential/reference_graph.h"
#include "tests/differential/reference_router.h"

namespace percs::reference {

struct Packet {
  ScriptedPacket script;
  RouteMode mode = RouteMode::kHwDirect;
  int middle = -1;  // supernode
  std::uint64_t sequence = 0;
  int flits = 1;
  int hops = 0;
  std::uint64_t path = 0;
};

// One flit in (or announced to) one hub. The next hub has its own Flit that points back to this
// one, so that a poison mark travels with the tail.
struct Flit {
  std::shared_ptr<Packet> packet;
  Time arrival = 0;
  Time flit_time = 0;  // of the link it came over, when it was granted
  bool tail = false;
  bool poisoned = false;   // made a poison tail at this hub
  bool corrupted = false;  // on its way to this hub, and not replayed
  bool set_aside = false;  // the added poison tail: holds no slot, returns no credit
  Time leaves = kNever;    // its slot is free
  std::shared_ptr<const Flit> from;
};

bool Poisoned(const Flit& flit);
bool Corrupted(const Flit& flit);

// A packet in one input buffer of one hub.
struct QueuedPacket {
  std::shared_ptr<Packet> packet;
  PortId output = kNoPort;
  VcId output_vc = 0;
  std::optional<DropReason> drop;            // verdict of routing, or being drained
  std::vector<std::shared_ptr<Flit>> flits;  // announced so far
  std::size_t next = 0;                      // first flit neither committed nor dropped
  Time commitment_end = 0;
  bool begun = false;
  bool truncated_here = false;
  // Multicast (B.9): a packet that waits to be whole, then for its branches, which have no slots of
  // their own.
  bool branch = false;
  std::vector<std::shared_ptr<QueuedPacket>> branches;

  bool gone(Time now) const { return all_committed() && flits.back()->leaves <= now; }
  bool complete() const { return !flits.empty() && flits.back()->tail; }
  int length() const { return complete() ? static_cast<int>(flits.size()) : packet->flits; }
  bool all_committed() const { return complete() && next == flits.size(); }
};

// Packets of one input (port, VC) in order of arrival; they queue per output. For an HFI port, one
// queue of the ISR, towards one output.
struct Buffer {
  PortId port = 0;
  int lane = 0;   // VC of a link port, output port of an HFI port
  int slots = 0;  // flits; HFI ports count packets at injection instead
  std::deque<std::shared_ptr<QueuedPacket>> packets;

  int index() const { return 3 * port + (IsHfi(port) ? lane == kReplication : lane); }
  // The packet whose flits came last; null if there is none.
  std::shared_ptr<QueuedPacket> Newest() const;
  // The oldest packet for `output` that is not being dropped; null if there is none.
  std::shared_ptr<QueuedPacket> Front(PortId output) const;
};

struct OutputVc {
  std::multiset<Time> credits;  // when each known credit exists
  QueuedPacket* owner = nullptr;
  int pointer = -1;  // round robin over input indices
};

// A management packet (B.10).
struct ServicePacket {
  NodeId source = 0, destination = 0;
  std::uint64_t sequence = 0;
  bool answer = false, directed = false;
  std::size_t request = 0;            // number, at the hub that asked
  std::pair<NodeId, int> identity{};  // of who answers
  PortId input = kServicePort, output = kNoPort;
  Time arrived = 0;
  int hops = 0;
  std::uint64_t path = 0;
  bool corrupted = false;
};

// Of one port: packets that wait for it as an output, and slots of its far end; slots in use of it
// as an input.
struct ServiceLane {
  std::deque<std::shared_ptr<ServicePacket>> waiting;
  int credits = 0, credits_under_way = 0;
  int held = 0;
};

struct ServiceRequest {
  NodeId to = 0;
  std::optional<PortId> port;  // of a probe
  int tries = 0;
  Time sent = 0;
  bool done = false;
};

struct Output {
  std::vector<OutputVc> vcs;
  bool service_last = false;  // a management packet was granted last
  Time busy_until = 0;
  Time ahead = 0;  // nothing sent later may be at the other end of the wire before this
  QueuedPacket* last = nullptr;  // packet of the last commitment, if that ended without the tail
  int last_vc = -1;              // round robin over output VCs
  Time stalled_since = kNever;   // or when that was last looked at
  std::set<int> stalled;         // VCs
};

struct HfiPort {
  Time free_at = 0;
  int last_output = -1;
  std::map<PortId, std::deque<std::shared_ptr<QueuedPacket>>> send;
  std::map<PortId, int> isr_packets;  // in the ISR queue or being handed over
};

// What a hub tells of a D link (B.12).
struct DState {
  std::uint64_t flits = 0;  // 0 unless reports have numbers
  bool congested = false;
  auto operator<=>(const DState&) const = default;
};

struct Hub {
  NodeId id = 0;
  std::map<std::pair<int, int>, Buffer> buffers;  // (input port, lane)
  std::map<PortId, Output> outputs;
  std::array<HfiPort, kHfiPorts> hfi;
  int last_hfi_port = -1;
  Time w_in_free = 0, w_out_free = 0;
  // (input port, table, supernode)
  std::map<std::tuple<int, TableKind, int>, int> route_pointers;
  std::map<std::pair<int, int>, int> middle_pointers;  // (HFI port, destination supernode)
  RandomStream routing;
  std::map<PortId, DState> d_state;  // as of the last look (B.12)
  // (L port, D port of the hub behind it): its state as told, and when that was sent
  std::map<std::pair<PortId, PortId>, std::pair<DState, Time>> told;
  std::uint64_t created = 0;
  std::array<ServiceLane, kPorts> service;
  std::vector<ServiceRequest> requests;
  std::uint64_t service_created = 0;
  Time entry_free = 0;
};

struct Link {
  std::optional<Time> wire;  // else that of its class
  bool up = true;
  bool was_down = false;
  bool held_down = false;            // by a fault
  bool given_up = false;             // by replay
  std::map<NodeId, int> lanes_lost;  // by the sending end
  std::map<NodeId, Time> latency;    // added, by the sending end
  std::uint64_t generation = 0;      // changes at every down and up
};

// Errors on the wire of one output (B.8).
struct Wire {
  RandomStream errors;
  double rate = 0;
  std::optional<std::uint64_t>
      intact;  // transmissions up to the next corrupted one; none: for ever
  std::uint64_t corrupt_next = 0;
};

// What becomes of the flits that an output could commit.
struct Transmission {
  int flits = 0;
  Time start = 0;
  std::vector<bool> corrupted;  // by flit
};

class Network {
 public:
  explicit Network(const ReferenceInput& input);
  ReferenceResult Run();

 private:
  // Order of events at one instant (rule 2); a hub settles and arbitrates after all its inputs.
  enum Class {
    kCongestion,
    kLatency,
    kFault,
    kEpoch,
    kCredit,
    kFlit,
    kSettle,
    kArbitrate,
    kEject,
    kServiceOut,
    kService,
    kCreate,
    kInject
  };
  struct Key {
    Time time;
    int order;
    NodeId node;
    int port, lane;
    std::uint64_t serial;
    auto operator<=>(const Key&) const = default;
  };

  // reference_network.cc: events, topology, start and end.
  void Schedule(Time at, Class order, NodeId node, int port, int lane,
                std::function<void()> action);
  LinkEnd LowerEnd(LinkEnd end) const;
  void ScheduleFaults(std::vector<FaultSpec> faults);
  void ScheduleRetraining(LinkEnd link, Time ended, Time replay_max);
  void Wake(NodeId node, Time at);
  void WakeInjection(NodeId node, Time at);
  void BuildHub(NodeId node);
  void ScheduleInput(const ReferenceInput& input);
  ReferenceResult Finish();
  Link& LinkAt(NodeId node, PortId port);
  bool LinkUp(NodeId node, PortId port) { return port >= kLinkPorts || LinkAt(node, port).up; }
  const LinkParameters& ClassParameters(PortId port) const;
  Time Propagation(NodeId node, PortId port);
  NodeStats& Stats(NodeId node) { return result_.nodes[node].stats; }

  // reference_hfi.cc: B.3 and B.6.
  void Create(std::size_t script_index);
  void Inject(NodeId node);
  void HandOver(Hub& hub, int hfi_port, PortId output);
  void Eject(NodeId node, PortId port, std::shared_ptr<QueuedPacket> packet);
  void Deliver(NodeId node, PortId port, const QueuedPacket& packet, bool poisoned);

  // reference_routing.cc: B.2.
  void ChooseMode(Hub& hub, PortId hfi_port, Packet& packet);
  bool IsOpen(const Hub& hub, int middle, int destination);
  int OpenFrom(const Hub& hub, int first, int destination);
  int OtherSupernode(const Hub& hub, int number, int destination);
  int IndirectCandidate(Hub& hub, PortId hfi_port, const Packet& packet,
                        const RouteSetting& setting);
  PortId BetterD(Hub& hub, PortId input, int destination);
  bool AdaptiveTakesIndirect(Hub& hub, PortId hfi_port, int destination, int middle,
                             const RouteSetting& setting);
  PortMask Entry(const Hub& hub, PortId input, TableKind table, bool intra, int index);
  PortId Choose(Hub& hub, PortId input, TableKind table, int supernode, PortMask mask, bool move);
  // reference_congestion.cc: B.12.
  void ScheduleLook(Time at);
  void Look(Hub& hub);
  static std::uint64_t WaitingFor(const Hub& hub, PortId output);
  void TellCongestion(Hub& hub, PortId port, PortId d);
  void CongestionLinkChanged(Hub& hub, PortId port, bool up);
  DState StateBehind(const Hub& hub, PortId output, int supernode) const;
  // reference_hub.cc: B.4 and B.5.
  void RoutePacket(Hub& hub, PortId input, int input_vc, QueuedPacket* packet, bool source);
  void Announce(NodeId node, PortId port, int vc, std::uint64_t generation,
                std::vector<std::shared_ptr<Flit>> flits);
  void Settle(NodeId node);
  void SettleBuffer(Hub& hub, Buffer& buffer);
  // VC that a branch of a multicast packet takes on the link of `out`; nothing: none is left.
  std::optional<int> BranchVc(const Hub& hub, const Buffer& buffer, NodeId group, PortId out);
  void Replicate(Hub& hub, Buffer& buffer, std::shared_ptr<QueuedPacket> whole);
  void ReleaseReplicated(Hub& hub, Buffer& buffer);
  void DropArrived(Hub& hub, Buffer& buffer, QueuedPacket& packet);
  Time RequestsFrom(const Hub& hub, const Buffer& buffer, const QueuedPacket& packet);
  bool Requests(Hub& hub, const Buffer& buffer, const QueuedPacket& packet);
  void Arbitrate(NodeId node);
  void ArbitrateOutput(Hub& hub, PortId port, Output& output, const std::vector<Buffer*>& occupied);
  void Grant(Hub& hub, PortId port, Output& output, Buffer& buffer, bool continued);
  int CommitmentLength(const QueuedPacket& packet, const OutputVc& vc, Time flit_time);
  void SendFlits(Hub& hub, PortId port, QueuedPacket& packet, std::shared_ptr<QueuedPacket> shared,
                 std::size_t first, const Transmission& sent);
  void SendCredits(NodeId node, PortId port, int vc, Time first_free, Time spacing, int count);
  void AddCredits(NodeId node, PortId port, int vc, Time first, Time spacing, int count);
  void UpdateStall(Hub& hub, PortId port, Output& output, const std::set<int>& stalled);
  void CountLosses(Hub& hub, PortId port,
                   const std::map<int, std::map<int, Buffer*>>& can_be_granted,
                   const Buffer& winner);
  void NoteGrant(Hub& hub, PortId port, const Output& output, const Buffer& buffer,
                 const QueuedPacket& packet, const Transmission& sent, bool continued);

  // reference_errors.cc: B.8.
  void ApplyImpairment(const FaultSpec& fault);
  void ApplyErrors(const FaultSpec& fault);
  std::vector<Time> RequestInstants(NodeId node, PortId output);
  int WorkingLanes(NodeId node, PortId port);
  Time FlitTime(NodeId node, PortId port);  // of an output, now
  void ApplyLatency(const FaultSpec& fault);
  Time ReplayMax(const std::vector<FaultSpec>& faults);
  void DrawErrors(Wire& wire);
  bool ArrivesIntact(Wire& wire);
  Transmission Transmit(Hub& hub, PortId port, int certain);

  // reference_service.cc: B.10.
  void ScheduleService(const ServiceTraffic& traffic);
  void ServiceDue(Hub& hub, std::size_t number);
  void CreateService(Hub& hub, ServicePacket packet, PortId output);
  void ServiceArrives(NodeId node, PortId port, std::uint64_t generation,
                      std::shared_ptr<ServicePacket> packet);
  void DropService(NodeId node, DropReason reason);
  void FreeServiceSlot(Hub& hub, PortId input);
  void SendServiceCredits(NodeId node, PortId port, int count);
  void ExpireService(Hub& hub);
  bool GrantService(Hub& hub, PortId port, Output& output, bool data_can_go);
  void ServiceDelivered(NodeId node, std::shared_ptr<ServicePacket> packet);
  void ServiceLinkDown(Hub& hub, PortId port);

  // reference_faults.cc: B.7.
  void UpdateLink(LinkEnd end);
  void SenderDown(Hub& hub, PortId port);
  void ReceiverDown(Hub& hub, PortId port);
  void Truncate(Hub& hub, PortId port, QueuedPacket& packet);
  void ReceiverUp(Hub& hub, PortId port);

  const Topology& topology_;
  std::optional<GraphRule> graph_;  // nothing: VCs are by position
  const P7ihParameters parameters_;
  const std::uint64_t seed_;
  const RoutingSettings routing_;
  std::vector<ScriptedPacket> packets_;
  ServiceTraffic service_;
  TableSet tables_;
  std::vector<Hub> hubs_;
  std::map<std::pair<NodeId, PortId>, Link> links_;  // by the lower (node, port) end
  std::map<std::pair<NodeId, PortId>, Wire> wires_;  // by the sending end; none: no errors
  std::map<Key, std::function<void()>> events_;
  std::uint64_t serial_ = 0;
  Time now_ = 0;
  ReferenceResult result_;
};

}  // namespace percs::reference
