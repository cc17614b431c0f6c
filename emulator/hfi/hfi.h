// The two Host Fabric Interfaces of a hub: injection through send queues and W, ejection through W
// (paper 000 section IV-B; docs/semantics.md rule 15, B.3 and B.6).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "emulator/base/prefetch.h"
#include "emulator/base/ring.h"
#include "emulator/chip/node_context.h"
#include "emulator/isr/isr.h"

namespace percs {

class HfiListener {
 public:
  virtual ~HfiListener() = default;
  // The tail of an injected packet has entered the ISR.
  virtual void OnEnteredIsr(const PacketHeader& header) = 0;
  // A packet reached its window; its tail's marks say what is wrong with it.
  virtual void OnDelivered(Packet* packet) = 0;
  // Fewer packets wait in the send queues than before.
  virtual void OnBacklogShrunk() = 0;
};

class Hfi final : public IsrListener {
 public:
  Hfi(NodeContext& context, HfiListener& listener) : context_(context), listener_(listener) {}
  void SetIsr(Isr* isr) { isr_ = isr; }

  void SetRouting(const RoutingSettings& routing) { routing_ = routing; }
  // How traffic is routed: the workload's, or that of a class.
  const RouteSetting& route() const { return routing_.of(routing_.workload); }
  const RouteSetting& route(TrafficClass traffic) const { return routing_.of(traffic); }

  // A packet whose header the caller fills in and then gives to Send.
  Packet* NewPacket() {
    Packet* p = context_.packets.Take();
    p->ResetState();
    p->header.ResetRaw();
    return p;
  }
  // Gives a packet to the HFI, now; `verified` fills its payload. False: no route, or its window
  // does not work; dropped and counted.
  bool Send(Packet* p, bool verified, const RouteSetting& route);
  // A packet for `destination` will be sent after `others` more.
  void Expect(NodeId destination, WindowId source_window, int others) {
    const PortId in = isr_->router().WindowPort(source_window);
    if (others > 1) return isr_->router().FetchGuess(destination, in);
    const PortId out = isr_->router().Guess(destination, in);
    if (out == kNoPort) return;
    if (others == 1) {
      isr_->FetchQueue(in, out);
      isr_->Fetch(out);
    } else if (const Packet* last = isr_->Queue(in, out).waiting.tail) {
      FetchLine(last);
    }
  }
  std::size_t backlog() const { return backlog_; }
  void ResetArbiters() {
    last_port_ = -1;
    for (Port& port : ports_) port.last_output = -1;
  }
  void NumberAnew(std::uint64_t first = 1) { next_sequence_ = first; }

  // --- Events, at context.now.
  void OnInjected(PortId port, Packet* packet) {
    if (packet->header.kind != PacketKind::kRaw) listener_.OnEnteredIsr(packet->header);
    isr_->OnInjected(packet);
    if (ports_[static_cast<std::size_t>(port - kHfiFirst)].waiting) pending_ = true;
  }
  // What waits for W needs no place in the event queue: each direction serves in order. OnW runs at
  // next_time(), before the timers of that instant.
  Time next_time() const { return next_; }
  void OnW();
  // Delivers what is due before `limit`, to which every tail that arrives before it is known. A raw
  // packet's delivery changes nothing on its hub but credits, so it need not be seen at its very
  // instant: the end of the window is soon enough, or the moment at which an output lacks a credit.
  void DeliverBefore(Time limit);
  // Of the next delivery; kNever if none is known.
  Time next_delivery() const {
    return tails_.empty() ? kNever : std::max(tails_.front().arrival, w_out_free_);
  }
  // Calls f(packet, time) for those that are to be delivered, each not before that time.
  template <typename F>
  void ForEachDelivery(F&& f) const {
    for (std::size_t i = 0; i < tails_.size(); ++i)
      f(*tails_[i].packet, std::max(tails_[i].arrival, w_out_free_));
  }
  void OnEjected(PortId port, Packet* packet, Time arrival) override;
  void OnQueueRoom() override { pending_ = true; }
  void OnCreditsWanted() override { DeliverBefore(context_.now); }
  void OnEjectionStall(bool stalled) override {
    awaited_ += stalled ? 1 : -1;
    Refresh();
  }

  // After everything else of an instant.
  bool pending() const { return pending_; }
  void HandOver();

 private:
  struct Port {
    PortMask waiting = 0;  // outputs with a packet in their send queue
    Time free_at = 0;
    int last_output = -1;
    // The first one waiting whose turn it is. REQUIRES: one does.
    PortId next_output() const {
      const int first = last_output + 1;
      return static_cast<PortId>((first + std::countr_zero(std::rotr(waiting, first))) & 63);
    }
  };
  struct Tail {
    Time arrival = 0;
    PortId port = 0;
    Packet* packet = nullptr;
    bool operator<(const Tail& other) const {
      return arrival < other.arrival || (arrival == other.arrival && port < other.port);
    }
  };
  [[gnu::cold]] void Trace(Packet* p, PortId out);  // follows it if it is chosen
  inline HfiQueue* ServedQueue(PortId hfi_port, Port& port);
  [[gnu::always_inline]] inline void Start(PortId hfi_port, Port& port, HfiQueue& queue);
  void FetchHandOvers(PortId hfi_port, const Port& port) const;
  void WakeWhenWIsFree() {
    w_wake_ = w_in_free_;
    next_ = std::min(next_, w_wake_);
  }
  void Refresh() { next_ = awaited_ > 0 ? std::min(w_wake_, next_delivery()) : w_wake_; }

  NodeContext& context_;
  HfiListener& listener_;
  Isr* isr_ = nullptr;
  RoutingSettings routing_;
  std::array<Port, kHfiPorts> ports_;
  QueuedFlits queued_{};
  unsigned waiting_ports_ = 0;  // bit i: ports_[i] has a packet in a send queue
  Time w_in_free_ = 0, w_out_free_ = 0;
  Time w_wake_ = kNever;  // hand-overs wait for W until then
  Ring<Tail> tails_;      // on their way to the HFI or waiting for W, in order of arrival
  int awaited_ = 0;  // reasons to deliver on time: tails that are not raw, outputs short of credits
  Time next_ = kNever;  // w_wake_, or the next delivery if it is awaited
  int last_port_ = -1;
  std::size_t backlog_ = 0;
  std::uint64_t next_sequence_ = 1;
  bool pending_ = false;
};

}  // namespace percs
