// The Integrated Switch Router: a 56-port cut-through crossbar with credits per VC (paper 000
// sections IV-C and VI). The exact rules are docs/semantics.md part B; each method says which.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/base/prefetch.h"
#include "emulator/chip/node_context.h"
#include "emulator/isr/input_buffer.h"
#include "emulator/isr/link_level.h"
#include "emulator/isr/output_port.h"
#include "emulator/isr/router.h"
#include "emulator/isr/service_port.h"

namespace percs {

// What the switch tells the rest of its hub.
class IsrListener {
 public:
  virtual ~IsrListener() = default;
  // A tail leaves for the HFI and reaches it at `arrival`; the packet is the listener's now.
  virtual void OnEjected(PortId port, Packet* packet, Time arrival) = 0;
  // An ISR queue of an HFI port may have room again.
  virtual void OnQueueRoom() = 0;
  // An HFI output runs short of credits: now is the time to return those of what was delivered
  // before.
  virtual void OnCreditsWanted() = 0;
  // An HFI output waits for credits, or no longer.
  virtual void OnEjectionStall(bool stalled) = 0;
};

// WIDE: one path for a flit, which the compiler inlines from its arrival to its departure. What is
// not on that path (errors, traces, copies, management) looks at the same buffers and outputs.
class Isr {
 public:
  Isr(NodeContext& context, IsrListener& listener);

  Router& router() { return router_; }
  const Router& router() const { return router_; }
  const OutputPort& output(PortId port) const { return outputs_[port]; }
  OutputPort& output(PortId port) { return outputs_[port]; }
  // Outputs that wait for credits now.
  int stalled_outputs() const { return stalled_outputs_; }
  // Errors follow from this seed. `on_replay_exhausted` is called when a flit cannot be sent: its
  // link is to be declared down at the time given, unless that has happened before.
  void Prepare(std::uint64_t seed, std::function<void(PortId, Time)> on_replay_exhausted) {
    seed_ = seed;
    on_replay_exhausted_ = std::move(on_replay_exhausted);
  }
  // Wires a connected link port, before the run.
  void Connect(PortId port, LinkEnd peer, Isr* local, Outbox* outbox);

  // How what leaves by this port gets to the hub at its other end: straight there if `local` is
  // set, else by the outbox.
  void SetWay(PortId port, Isr* local, Outbox* outbox);

  // --- Arrivals. Times are in the future of everything this hub has run.
  void ReceiveFlits(FlitRun&& run);
  void ReceivePacket(const PacketRun& run) {
    PushRun(context_.queue, run.arrival, run.port, run.vc, run.packet);
  }
  void ReceiveCredits(const CreditRun& run);
  void ReceiveMark(const PoisonMark& mark);

  // --- Service port, service_port.cc (B.10).
  void EnableService();  // before the run, where management packets may come
  void EnterService(Packet* p, PortId out);
  void OnServiceRun(Packet* p);
  void OnServiceWait(PortId out);
  void OnServiceCredits(PortId port, std::uint32_t generation, int count);

  // --- Events, at context.now.
  void OnRun(Packet* run);  // first flit of an announced run (B.2)
  void OnMarkEvent(PoisonMark* mark) {
    OnMark(*mark);
    marks_.Give(mark);
  }
  void OnInjected(Packet* packet);  // B.3: all flits are in the ISR queue
  // VC that a packet which starts here takes on the link of `out`.
  VcId FirstVc(NodeId destination, PortId out) const {
    if (!graph_ || out >= kLinkPorts || context_.parameters->vc_policy == VcPolicy::kSingle)
      return 0;
    return graph_->NextVc(context_.node, kNoPort, 0, out, router_.tables()->Detours(destination));
  }
  void OnInputTimer(PortId port, int vc,
                    PortId output);  // a packet for `output` may request or be dropped
  void OnOutputFree(PortId port);
  void OnCreditWake(PortId port);
  void LinkDown(PortId port);
  void LinkUp(PortId port);
  // The cable of this port, which is down, leads to another hub from now on. `swapped`: it is not
  // the wiring of the topology. Both ends get the same `generation`, above all that either had.
  void Rewire(PortId port, LinkEnd peer, Isr* local, Outbox* outbox, bool swapped,
              std::uint32_t generation);
  // The link of this port, which is down, has another hub at one of its ends. Both get the same
  // `generation`.
  void BeginGeneration(PortId port, std::uint32_t generation);
  bool swapped(PortId port) const { return (swapped_ & PortBit(port)) != 0; }
  void ResetArbiters();
  // What goes wrong on the link of this port, all in all (B.8); of lanes and latency in the
  // direction in which this hub sends, or in the other one.
  void SetErrorRate(PortId port, double flit_error_rate);
  void CorruptNext(PortId port, std::uint32_t transmissions);  // 0 calls off what is left of them
  void SetLanesLost(PortId port, bool out_going, std::uint32_t lanes);
  void SetLatency(PortId port, bool out_going, Time latency);
  // A link is up unless a fault holds it down, replay has taken it down, or it lacks lanes.
  void HoldLink(PortId port, bool down) { Mark(&held_down_, port, down); }
  void GiveUpLink(PortId port) { Mark(&given_up_, port, true); }
  void Retrain(PortId port) { Mark(&given_up_, port, false); }
  // With swapped cables the two ends have different states, so only what they send each other
  // counts.
  bool LinkMayBeUp(PortId port) const {
    const PortMask told = held_down_ | lanes_short_;
    return (((told & ~swapped_) | given_up_) & PortBit(port)) == 0;
  }

  bool dirty() const { return dirty_ != 0; }
  void Arbitrate();  // every output at which something changed (B.5)

  // --- HFI side.
  // Packets from an HFI port for one output; those given to the HFI and not handed over yet are in
  // `waiting`.
  HfiQueue& Queue(PortId hfi_port, PortId output) {
    std::vector<HfiQueue>& queues = queues_[static_cast<std::size_t>(hfi_port - kHfiFirst)];
    if (queues.empty()) MakeQueues(hfi_port);
    return queues[output];
  }
  // Room in a queue for one more packet; if only a departing packet is in the way, OnQueueRoom is
  // called when it has left.
  bool HasRoom(HfiQueue& queue) {
    // The packet whose tail was committed last holds its place until the tail has left.
    const bool leaving = queue.tail_leaves > context_.now;
    if (queue.packets + (leaving ? 1 : 0) < context_.parameters->hfi_queue_packets) return true;
    if (leaving && !queue.queue.room_wanted) Wake(queue, queue.queue.output, queue.tail_leaves);
    queue.queue.room_wanted = true;
    return false;
  }
  void ReturnEjectionCredits(PortId port, int flits);  // slots of the HFI's buffer are free (B.6)

  // Has a queue fetched into the cache that a packet is about to join: they are many, and seldom
  // used.
  void FetchQueue(PortId hfi_port, PortId output) { FetchLine(&Queue(hfi_port, output)); }
  // Has an output fetched into the cache that a packet is about to want.
  void Fetch(PortId output, VcId vc = 0) const {
    FetchLine(&outputs_[output]);
    FetchLine(&outputs_[output].unfinished);
    FetchLine(&outputs_[output].vc[vc]);
  }
  // Likewise what a commitment there looks at beside it. Both read the output.
  void FetchCredits(PortId output, VcId vc, int wanted) const {
    const OutputPort& out = outputs_[output];
    out.vc[vc].credits.FetchFor(wanted);
    if (out.requested_vcs != 0) FetchLine(&out.requesters[2]);
  }
  // Likewise what credits that come back to it look at.
  void FetchReturn(PortId output, VcId vc) const {
    const CreditCounter& credits = outputs_[output].vc[vc].credits;
    credits.FetchNext();
    if (credits.full()) FetchLine(&context_.now);
  }
  void FetchPeer(PortId output) const {
    if (outputs_[output].local) outputs_[output].queue->Fetch();
  }
  // An event to come of a packet that arrives or has been injected, and where it may go then.
  struct Coming {
    const Packet* packet = nullptr;
    PortId out = kNoPort;
    VcId out_vc = 0;
  };
  // Have all of that fetched for such an event: each reads what the one before had fetched.
  void FetchArrival(const Coming& coming);
  void FetchDeparture(Coming* coming) const;
  void FetchCredits(const Coming& coming) const;
  void FetchPeer(const Coming& coming) const {
    if (coming.out < kQueueOutputs) FetchPeer(coming.out);
  }

  // Brings the counters of ports in the node's statistics up to date.
  void FoldCounters();
  // The flits that they count: over links and into HFIs.
  std::uint64_t flits_sent() const { return flits_sent_; }

  // Flits announced and neither committed nor dropped, of packets that go out by a D port and are
  // not being dropped.
  void CountWaiting(QueuedForD* by_d_port) const;

  // --- After the run.
  std::uint64_t MissingCredits() const;
  void CollectWaits(std::vector<struct WaitEdge>* edges) const;

 private:
  InputBuffer& LinkBuffer(PortId port, VcId vc) { return link_buffers_[port * kMaxVcs + vc]; }
  Departed& DepartedFrom(const InputBuffer& buffer) {
    if (departed_.empty()) departed_.resize(link_buffers_.size());
    return departed_[buffer.port * kMaxVcs + buffer.vc];
  }
  void MakeQueues(PortId hfi_port);
  int BufferSlots(PortId port) const {
    return context_.parameters->link(ClassOf(port)).buffer_flits;
  }

  PortId RouteInTransit(PacketHeader& header, PortId in);
  [[gnu::always_inline]] inline void BeginPacket(InputBuffer& buffer, Packet* p);
  inline void ContinuePacket(InputBuffer& buffer, Packet* run);
  inline void CheckPosition(const InputBuffer& buffer, PacketHeader& header);
  Position NextInGraph(const InputBuffer& buffer, const Packet& p) const;
  void Advance(InputBuffer& buffer,
               Packet* p);                      // p is a front: it requests as soon as it may (B.4)
  inline Time Eligible(const Packet& p) const;  // min(e1, e2) of B.4
  inline void Request(InputBuffer& buffer, Packet* p);
  // p is not linked into its buffer yet. `queue`: the buffer is one.
  template <bool queue>
  [[gnu::always_inline]] inline void RequestOrCommit(InputBuffer& buffer, Packet* p);
  void ClearRequest(InputBuffer& buffer, Packet* p);
  void Wake(InputBuffer& buffer, PortId output, Time at);

  // One path of isr.cc, in pieces for the reader: `inline` lets the compiler join them again.
  [[gnu::always_inline]] inline void ArbitrateOutput(PortId port);
  void ScheduleFree(PortId port, OutputPort& out);
  [[gnu::always_inline]] inline int Arbitrated(PortId port,
                                               OutputPort& out);  // winner's index, -1 if none
  inline bool CanContinue(OutputPort& out);
  inline void CollectEjectionCredits(PortId port, OutputPort& out);
  inline bool HasCredit(PortId port, OutputPort& out, OutputVc& vc);
  // Commits `count` flits. Whole: all of a packet that is not linked into its buffer; then the
  // compiler leaves out what only a packet in several runs needs. `queue`: the buffer is one.
  template <bool whole>
  [[gnu::always_inline]] inline void Commit(PortId port, OutputPort& out, InputBuffer& buffer,
                                            Packet* p, int count, bool queue);
  void CommitPart(PortId port, OutputPort& out, InputBuffer& buffer, Packet* p, int count);
  inline int FlitsInTime(const OutputPort& out, const Packet& p) const;
  inline void CountCommitment(PortId port, OutputPort& out, const Packet& p, int sent, int count,
                              bool tail);
  [[gnu::always_inline]] inline void SendRun(PortId port, OutputPort& out, InputBuffer& buffer,
                                             Packet* p, Time start, int sent, int count, bool tail,
                                             bool queue);
  [[gnu::always_inline]] inline void SendPacket(const OutputPort& out, Packet* p, Time arrival,
                                                int sent, int count, bool tail);
  static void PushRun(EventQueue& queue, Time arrival, PortId port, VcId vc, Packet* run) {
    queue.Push(arrival,
               EventKey(EventClass::kFlit, port, vc, static_cast<std::uint64_t>(FlitEvent::kRun)),
               EventData(run));
  }
  [[gnu::always_inline]] inline void AnnounceCredits(PortId port, VcId vc, Time start, Time spacing,
                                                     int count, std::uint32_t generation);
  void ReturnCredits(InputBuffer& buffer, Time first_free, Time spacing, int count);
  [[gnu::always_inline]] inline void SendCredits(const InputBuffer& buffer, Time first_free,
                                                 Time spacing, int count);
  void NoteDeparted(InputBuffer& buffer, const Packet& p, const OutputPort& out, Time tail_onward);
  // Bit v: VC v lacks nothing but a credit, and nothing can be granted.
  void SetStall(PortId port, OutputPort& out, unsigned stalled_vcs) {
    if (stalled_vcs != out.stalled_vcs) ChangeStall(port, out, stalled_vcs);
  }
  void ChangeStall(PortId port, OutputPort& out, unsigned stalled_vcs);
  void CountLosses(PortId port, OutputPort& out, int winner);

  // link_level.cc (B.8).
  static void Mark(PortMask* ports, PortId port, bool set) {
    *ports = set ? *ports | PortBit(port) : *ports & ~PortBit(port);
  }
  LinkLevel& LevelOf(PortId port);
  void SetLanes(PortId port, LinkLevel& level);
  void SetFlitTime(PortId port, Time flit_time);
  Time CommittedFlitTime(PortId port) const;  // of the last commitment
  // The next three for outputs whose `errors` is set.
  Time ReplayRound(PortId port) const;
  int FlitsBeforeError(PortId port, int wanted) const;
  // Puts `count` flits of p on the wire; returns the start of the first one's transmission that
  // arrives.
  Time Transmit(PortId port, OutputPort& out, Packet* p, int count);

  // isr_trace.cc: traced packets only, never in the way of others.
  [[gnu::cold]] void TraceArrival(const Packet& p, bool front);
  [[gnu::cold]] void TraceEntry(const Packet& p);
  [[gnu::cold]] void TraceService(Packet* p, bool entered);
  [[gnu::cold]] void TraceServiceWait(PortId out, Wait wait);
  [[gnu::cold]] void TraceFront(const Packet& p);
  [[gnu::cold]] void TraceRequest(const Packet& p);
  [[gnu::cold]] void TraceGrant(PortId port, const OutputPort& out, const Packet& p, Time start,
                                int sent, int count, bool tail);
  [[gnu::cold]] void ExplainWaits(PortId port, bool granted);  // of those that request it

  // multicast.cc (B.9).
  [[gnu::cold]] void Replicate(InputBuffer& buffer, Packet* p);
  [[gnu::cold]] bool StartBranch(InputBuffer& buffer, std::uint16_t replica, const Packet& whole,
                                 PortId out);
  std::uint16_t FreeReplica(const InputBuffer& buffer) const;
  [[gnu::cold]] void EndBranch(InputBuffer& buffer, const Packet& p, Time leaves);
  [[gnu::cold]] void OnReplicationTimer(InputBuffer& buffer);
  void ReleaseReplicas(InputBuffer& buffer);
  [[gnu::cold]] void FreeSlots(InputBuffer& buffer, int slots);

  // service_port.cc (B.10).
  bool ServiceWaits(PortId out) const { return service_waiting_ & PortBit(out); }
  [[gnu::cold]] bool GrantService(PortId port, OutputPort& out);
  bool DataCanBeGranted(OutputPort& out);
  PortId RouteService(const Packet& p, bool entered, DropReason* reason);
  void DropService(Packet* p, DropReason reason);
  Packet* TakeService(PortId out);
  void SendService(const OutputPort& out, Packet* p, Time arrival);
  void FreeServiceSlot(PortId in);
  void ReturnServiceCredits(PortId in, int count);
  void AnnounceServiceCredits(const CreditRun& run);
  void ServiceDown(PortId port);
  void ServiceUp(PortId port);
  std::uint64_t MissingServiceCredits(PortId port) const;

  void DoomPackets(InputBuffer& buffer, PortId port);  // of a port that died
  void Doom(InputBuffer& buffer, Packet* p);
  void AwaitWire(PortId port, Time sent);
  void Drain(InputBuffer& buffer, Packet* p);  // B.7
  void LoseArrivals(InputBuffer& buffer);
  void LoseAnnounced(Packet& p);
  void PoisonDeparted(InputBuffer& buffer);
  void OnMark(const PoisonMark& mark);
  void RegrantCredits(InputBuffer& buffer);

  NodeContext& context_;
  IsrListener& listener_;
  Router router_;
  const SwitchGraph* graph_;  // null: VCs are by position
  std::uint64_t dirty_ = 0;   // outputs to arbitrate at this instant
  int stalled_outputs_ = 0;
  std::uint64_t flits_sent_ = 0;
  PortMask watched_ = 0;  // outputs that a traced packet requests
  std::array<InputBuffer, kLinkPorts * kMaxVcs> link_buffers_;
  std::vector<Departed> departed_;  // beside each of link_buffers_, made when first needed
  std::array<std::vector<HfiQueue>, kHfiPorts> queues_;  // made when an HFI port is first used
  std::array<OutputPort, kQueueOutputs> outputs_;        // kReplication's never sends
  std::vector<Replica> replicas_;
  Pool<PoisonMark> marks_;
  std::uint64_t seed_ = 0;
  std::function<void(PortId, Time)> on_replay_exhausted_;
  std::array<std::unique_ptr<LinkLevel>, kLinkPorts>
      link_levels_;  // made when something first goes wrong
  PortMask held_down_ = 0, given_up_ = 0, lanes_short_ = 0, swapped_ = 0;
  PortMask service_waiting_ = 0;  // outputs that a management packet waits for
  std::unique_ptr<ServiceLanes> service_;
};

}  // namespace percs
