// The Integrated Switch Router: a 56-port cut-through crossbar with credits per VC (paper 000 sections
// IV-C and VI). The exact rules are docs/semantics.md part B; each method says which.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "emulator/isr/input_fifo.h"
#include "emulator/isr/output_port.h"
#include "emulator/isr/router.h"
#include "emulator/node/node_context.h"

namespace percs {

// What the switch tells the rest of its hub.
class IsrListener {
 public:
  virtual ~IsrListener() = default;
  // A tail leaves for the HFI and reaches it at `arrival`; the packet is the listener's now.
  virtual void OnEjected(PortId port, Packet* packet, Time arrival) = 0;
  // An ISR queue of an HFI port may have room again.
  virtual void OnQueueRoom() = 0;
};

class Isr {
 public:
  Isr(NodeContext& context, IsrListener& listener);

  Router& router() { return router_; }
  const OutputPort& output(PortId port) const { return outputs_[port]; }
  OutputPort& output(PortId port) { return outputs_[port]; }
  // Wires a connected link port, before the run.
  void Connect(PortId port, LinkEnd peer, Isr* local, Outbox* outbox);

  // --- Arrivals. Times are in the future of everything this hub has run.
  void ReceiveFlits(FlitRun&& run);
  void ReceiveCredits(const CreditRun& run);
  void ReceiveMark(const PoisonMark& mark);

  // --- Events, at context.now.
  void OnRun(Packet* run);                              // first flit of an announced run (B.2)
  void OnMarkEvent(PoisonMark* mark) {
    OnMark(*mark);
    marks_.Give(mark);
  }
  void OnInjected(Packet* packet);                      // B.3: all flits are in the ISR queue
  void OnFifoTimer(PortId port, int vc_or_output);      // commitment over, or flits became eligible
  void OnOutputFree(PortId port);
  void OnCreditWake(PortId port);
  void LinkDown(PortId port);
  void LinkUp(PortId port);

  bool dirty() const { return dirty_ != 0; }
  void Arbitrate();  // every output at which something changed (B.5)

  // --- HFI side.
  // Room in the queue of (HFI port, output) for one more packet; if only a departing packet is in the
  // way, OnQueueRoom is called when it has left.
  bool QueueHasRoom(PortId hfi_port, PortId output);
  void ReserveQueue(PortId hfi_port, PortId output);  // at the start of a hand-over
  void ReturnEjectionCredits(PortId port, int flits); // slots of the HFI's buffer are free (B.6)

  // --- After the run.
  std::uint64_t MissingCredits() const;
  void CollectWaits(std::vector<struct WaitEdge>* edges) const;

 private:
  InputFifo& LinkFifo(PortId port, VcId vc) { return link_fifos_[port * kMaxVcs + vc]; }
  InputFifo& QueueFifo(PortId hfi_port, PortId output);
  InputFifo& FifoOf(const Packet& p) {
    return IsHfi(p.in) ? QueueFifo(p.in, p.out) : LinkFifo(p.in, p.in_vc);
  }
  int BufferSlots(PortId port) const { return context_.parameters->link(ClassOf(port)).buffer_flits; }

  void BeginPacket(InputFifo& fifo, Packet* p);
  void ContinuePacket(InputFifo& fifo, Packet* run);
  void BecomeFront(InputFifo& fifo);      // B.4, or B.7 when it is to be dropped
  void RequestWhenEligible(InputFifo& fifo);
  Time Eligible(const Packet& p) const;   // min(e1, e2) of B.4
  void Request(InputFifo& fifo);
  void ClearRequest(InputFifo& fifo);
  void ScheduleFifo(InputFifo& fifo, Time at);

  void ArbitrateOutput(PortId port);
  void ScheduleFree(PortId port, OutputPort& out);
  bool CanContinue(OutputPort& out);
  void Commit(PortId port, OutputPort& out, InputFifo& fifo);
  int CommitmentLength(OutputPort& out, const Packet& p);
  void SendRun(PortId port, OutputPort& out, InputFifo& fifo, Packet* p, int count, bool tail);
  void ReturnCredits(InputFifo& fifo, Time first_free, Time spacing, int count);
  void NoteDeparted(InputFifo& fifo, const Packet& p, const OutputPort& out, Time tail_onward);
  void FinishFront(InputFifo& fifo);      // after the front packet left the FIFO
  void UpdateStall(PortId port, OutputPort& out, bool stalled);

  void Drain(InputFifo& fifo);            // B.7
  void DoomFront(InputFifo& fifo);        // front packet's link died
  void LoseArrivals(InputFifo& fifo, PortId port);
  void LoseAnnounced(Packet& p);
  void PoisonDeparted(InputFifo& fifo);
  void OnMark(const PoisonMark& mark);

  NodeContext& context_;
  IsrListener& listener_;
  Router router_;
  std::uint64_t dirty_ = 0;  // outputs to arbitrate at this instant
  std::vector<InputFifo> link_fifos_;
  std::array<std::vector<InputFifo>, kHfiPorts> queue_fifos_;  // made when an HFI port is first used
  std::vector<OutputPort> outputs_;
  Pool<PoisonMark> marks_;
};

}  // namespace percs
