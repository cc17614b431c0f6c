// The two Host Fabric Interfaces of a hub: injection through send queues and W, ejection through W
// (paper 000 section IV-B; docs/semantics.md rule 15, B.3 and B.6).
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "emulator/base/ring.h"
#include "emulator/isr/isr.h"
#include "emulator/node/node_context.h"

namespace percs {

class HfiListener {
 public:
  virtual ~HfiListener() = default;
  // The tail of an injected packet has entered the ISR.
  virtual void OnEnteredIsr(const PacketHeader& header) = 0;
  // A whole packet reached its window, or (poisoned) only part of it.
  virtual void OnDelivered(Packet* packet) = 0;
  // Fewer packets wait in the send queues than before.
  virtual void OnBacklogShrunk() = 0;
};

class Hfi : public IsrListener {
 public:
  Hfi(NodeContext& context, HfiListener& listener) : context_(context), listener_(listener) {}
  void SetIsr(Isr* isr) { isr_ = isr; }

  // Gives a packet (header filled) to the HFI, now; `verified` fills its payload. False: no route,
  // dropped and counted.
  bool Send(PacketHeader&& header, bool verified);
  std::size_t backlog() const { return backlog_; }

  // --- Events, at context.now.
  void OnInjected(PortId port, Packet* packet);
  void OnTailArrived(PortId port, Packet* packet);
  // What waits for W needs no place in the event queue: each direction serves in order. OnW runs at
  // next_time(), after the tails and before the timers of that instant.
  Time next_time() const { return next_; }
  void OnW();
  void OnEjected(PortId port, Packet* packet, Time arrival) override;
  void OnQueueRoom() override { pending_ = true; }

  // After everything else of an instant.
  bool pending() const { return pending_; }
  void HandOver();

 private:
  struct SendQueue {
    Packet* head = nullptr;
    Packet* tail = nullptr;
    Packet* last_reply = nullptr;  // replies go ahead of data: behind it they would look lost
    void Push(Packet* p);
    Packet* Pop();
  };
  struct Port {
    std::vector<SendQueue> queues;  // by output; made when first used
    PortMask waiting = 0;           // outputs with a packet in their send queue
    Time free_at = 0;
    int last_output = -1;
  };
  struct Deferred {
    Time at = 0;
    Packet* packet = nullptr;
  };
  inline int ServedOutput(PortId hfi_port, Port& port);
  inline void Start(PortId hfi_port, Port& port, PortId output);
  void WakeWhenWIsFree() {
    w_wake_ = w_in_free_;
    next_ = std::min(next_, w_wake_);
  }
  void Deliver(Packet* packet);

  NodeContext& context_;
  HfiListener& listener_;
  Isr* isr_ = nullptr;
  std::array<Port, kHfiPorts> ports_;
  unsigned waiting_ports_ = 0;  // bit i: ports_[i] has a packet in a send queue
  Time w_in_free_ = 0, w_out_free_ = 0;
  Time w_wake_ = kNever;     // hand-overs wait for W until then
  Ring<Deferred> deferred_;  // tails that wait for W, each for its own time
  Time next_ = kNever;       // the earlier of the two
  int last_port_ = -1;
  std::size_t backlog_ = 0;
  std::uint64_t next_sequence_ = 1;
  bool pending_ = false;
};

}  // namespace percs
