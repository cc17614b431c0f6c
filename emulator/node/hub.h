// One PERCS Hub chip as a partition of virtual time: ISR, HFIs, message layer and its part of the
// workload, driven by one event queue. Run() states the order of an instant.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "emulator/cau/cau.h"
#include "emulator/chip/fault_tally.h"
#include "emulator/clock/hub_clock.h"
#include "emulator/hfi/message_layer.h"
#include "emulator/hfi/window_unit.h"
#include "emulator/isr/congestion.h"
#include "emulator/management/active_faults.h"
#include "emulator/management/loss.h"
#include "emulator/node/node_result.h"
#include "emulator/node/raw_messages.h"
#include "emulator/node/repeated_workload.h"
#include "emulator/node/service_agent.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

// The shortest time in which anything gets to another process, and in which a flit does.
struct OutputDelays {
  Time any = kNever, flit = kNever;
};

// WIDE: the blocks of a hub are members, and most methods pass what one block says on to another.
class Hub final : public HfiListener, public MessageListener, public HubServices {
 public:
  Hub(NodeId node, const Scenario& scenario, const Topology& topology, WorkCounters* work,
      const DeliveryObserver* on_delivery);

  absl::Status MakeWorkload(const Scenario& scenario, const Topology& topology);
  void SetWorkload(std::unique_ptr<HubWorkload> workload) {
    workload_ = std::move(workload);
    takes_payload_ = workload_ && workload_->takes_payload();
    checks_payload_ = workload_ && workload_->checks_payload();
  }
  RankLog* rank_log() const { return workload_ ? workload_->rank_log() : nullptr; }
  void Start();  // the workload's first actions, at time 0
  // Instead of Start: takes the place of a hub that was lost, with tables and no workload, all its
  // links down. The packets of each incarnation have numbers of their own.
  void Rejoin(const RejoinedHubs& rejoined);

  bool has_clock() const { return clock_ != nullptr; }
  bool hears_congestion() const { return congestion_ != nullptr; }
  Isr& isr() { return isr_; }
  // How what this hub sends gets to another one: straight there if the same thread runs both, else
  // by an outbox.
  struct WayTo {
    Isr* local = nullptr;
    Outbox* outbox = nullptr;
  };
  void SetWays(std::function<WayTo(NodeId)> ways) { ways_ = std::move(ways); }
  CauPort* cau() override { return has_cau_ ? &cau_ : nullptr; }
  std::vector<TreeInFlight> TreesInFlight() const { return cau_.InFlight(); }
  // Of network management: a tree that is there from the start. Errors as Cau::SetUp.
  absl::Status AddTree(const std::shared_ptr<const TreePlan>& plan);
  NodeContext& context() override { return context_; }
  // Up to date, between two windows.
  const NodeStats& stats() {
    isr_.FoldCounters();
    return context_.stats;
  }
  Time next_time() const { return std::min(next_foreground(), next_background()); }
  // Without what only keeps the clock or tells of congestion.
  Time next_foreground() const { return std::min(next_instant(), hfi_.next_delivery()); }

  // If nothing arrives from another process, nothing of this hub reaches one before this. Null:
  // with any event of this process it may, as an output waits for credits, say. `here`: whether a
  // node is in this process. REQUIRES: a topology of supernodes, of which no hub was lost.
  std::optional<Time> EarliestOutput(const OutputDelays& delays,
                                     absl::FunctionRef<bool(NodeId)> here) const;

  // Calls f(port, packet) for packets that arrive or have been injected there before `end`, as far
  // as that is known.
  template <typename F>
  void ForEachComing(Time end, F&& f) const {
    context_.queue.ForEachBefore(end, [&f](const Event& event) {
      if (event.key.event_class() != EventClass::kFlit) return;
      const PortId port = static_cast<PortId>(event.key.port());
      if (IsHfi(port) || event.key.detail() == static_cast<std::uint64_t>(FlitEvent::kRun))
        f(port, event.object<const Packet>());
    });
  }
  // Runs every event before `end`.
  void Run(Time end) {
    if (clock_ || congestion_) [[unlikely]]
      RunBackground(end);
    RunForeground(end);
  }
  void Receive(const ControlItem& item);
  void Stop() {
    if (workload_) workload_->Stop();
  }
  std::vector<std::string> Blocked() const {
    std::vector<std::string> lines = workload_ ? workload_->Blocked() : std::vector<std::string>();
    if (!windows_) return lines;
    for (std::string& line : windows_->Blocked()) lines.push_back(std::move(line));
    return lines;
  }
  // A command of a program outside for the windows of this hub, at `at`, which is not before the
  // next event; those of one instant in the order of the calls. REQUIRES: a hub, not a blade.
  void Issue(Time at, WindowOperation operation, WindowListener* listener);
  // Likewise for its CAU. REQUIRES: it has one.
  void UseCau(Time at, std::function<void(CauPort& cau)> use);
  // Where control items of this hub go.
  void SetControlOutbox(std::function<void(ControlItem&&)> send) {
    send_control_ = std::move(send);
  }

  NodeResult Result();
  // Between two windows: the scenario's workload runs again from `at`, before which nothing is
  // to happen any more; the packets of this hub are numbered from 1 again. UNIMPLEMENTED for
  // workloads that cannot.
  absl::Status Repeat(const Scenario& scenario, const Topology& topology, Time at);
  // What faults have cost here, by their numbers.
  std::vector<FaultTally> Tallies();

  // HubServices
  void SendRaw(NodeId destination, WindowId source_window, WindowId destination_window,
               std::uint64_t bytes, bool verified, const RouteSetting* route) override;
  void Expect(NodeId destination, WindowId source_window, int others) override {
    hfi_.Expect(destination, source_window, others);
  }
  void SendMessage(const MessageRequest& request) override { messages_.Send(request); }
  void SetTimer(Time at, std::uint64_t token) override;
  std::size_t backlog() const override { return hfi_.backlog() + raw_messages_.waiting_packets(); }
  WindowPort* windows() override { return has_cau_ ? &Windows() : nullptr; }

  // HfiListener
  void OnEnteredIsr(const PacketHeader& header) override {
    if (header.kind == PacketKind::kCau) return cau_.OnEnteredIsr(header);
    if (header.kind == PacketKind::kWindow) return windows_->OnEnteredIsr(header);
    messages_.OnEnteredIsr(header);
  }
  void OnDelivered(Packet* packet) override;
  void OnBacklogShrunk() override {
    if (raw_messages_.waiting()) [[unlikely]]
      raw_messages_.Continue();
    if (workload_) workload_->OnBacklogShrunk();
  }
  // MessageListener
  void OnMessage(const DeliveredMessage& message) override {
    if (workload_) workload_->OnMessage(message);
  }
  void OnMessageDone(NodeId destination, std::uint32_t message, bool delivered) override {
    if (workload_) workload_->OnMessageDone(destination, message, delivered);
  }
  void OnOperationDone(WindowId, std::uint64_t word, std::uint32_t tag, bool delivered,
                       bool refused) override {
    windows_->OnOperationDone(word, tag, delivered, refused);
  }

 private:
  // At which something happens that others of this hub may notice.
  Time next_instant() const {
    return std::min({context_.queue.next_time(), hfi_.next_time(), timer_at_});
  }
  // Of a program outside, until its time has come: of a window, or of the CAU.
  struct OutsideOperation {
    WindowOperation operation;
    WindowListener* listener = nullptr;
    std::function<void(CauPort& cau)> use;
  };
  void PushOutside(Time at, OutsideOperation* outside);
  void RunForeground(Time end);
  Time next_background() const {
    const Time clock = clock_ ? clock_->next_time() : kNever;
    return congestion_ ? std::min(clock, congestion_->next_time()) : clock;
  }
  void RunBackground(Time end);
  [[gnu::always_inline]] inline void Dispatch(const Event& event);
  [[gnu::noinline]] void DispatchOther(Event event);
  // Of this instant.
  [[gnu::noinline]] void DispatchTimers();
  inline void DispatchTimer(const Event& event);
  void OnControl(ControlItem* item);
  void OnOutside(OutsideOperation* outside);
  // hub_faults.cc
  Losses LossesAt(int place);
  void Tally(const FaultAction& action, PortId port);
  void ResetArbiters();
  void FoldWorkload(NodeResult* result);
  static std::pair<EventClass, int> OrderOf(const FaultAction& action);
  void OnFault(const FaultAction& action, PortId port);
  void OnFaultOfHub(const FaultAction& action);
  // hub_rejoin.cc
  void OnPeerAnew(NodeId peer);
  [[gnu::cold]] bool IsOld(const PacketHeader& header) const;
  void Rewire(const FaultAction& action);
  void TellWiring(PortId port, std::uint64_t found, bool right);
  void TellLink(PortId port);
  void FollowLink(PortId port);
  void DeclareLost(PortId port, Time at);
  void OnTreeControl(const ControlItem& item);
  void Alert(ControlItem::Kind kind, PortId port, bool up);
  void RaiseAlert(ControlItem alert);
  void Answer(ControlItem answer);
  [[gnu::always_inline]] inline void Deliver(const PacketHeader& header);
  [[gnu::cold]] void OnServicePacket(Packet* packet);
  // Made when the first operation is issued here, or the first packet of one comes.
  WindowUnit& Windows() {
    if (!windows_)
      windows_ = std::make_unique<WindowUnit>(context_, hfi_, messages_, first_request_);
    return *windows_;
  }
  [[gnu::cold]] void Trace(const Packet& packet, std::optional<DropReason> drop);

  NodeContext context_;
  Isr isr_;
  Hfi hfi_;
  RawMessages raw_messages_{context_, &hfi_};
  MessageLayer messages_;
  Cau cau_;
  const bool has_cau_;
  std::unique_ptr<HubClock> clock_;                // null: no clock is distributed
  std::unique_ptr<CongestionReports> congestion_;  // null: no route depends on any
  std::unique_ptr<ServiceAgent> service_;          // null: nothing uses the service ports
  std::unique_ptr<WindowUnit> windows_;            // null: nothing uses the windows
  std::uint32_t first_request_ =
      1;  // of its windows; others keep for a while what earlier incarnations asked
  std::unique_ptr<HubWorkload> workload_;
  bool takes_payload_ = false, checks_payload_ = false;  // what the workload does with it
  // One timer of the workload stays beside the queue: open-loop traffic never has another.
  Time timer_at_ = kNever;
  std::uint64_t timer_token_ = 0;
  std::function<void(ControlItem&&)> send_control_;
  std::function<WayTo(NodeId)> ways_;
  std::uint64_t actions_ = 0;                // of faults, received
  std::unique_ptr<ActiveFaults> faults_;     // made with the first of them
  PortMask told_down_ = 0;                   // links that network management was last told are down
  std::unique_ptr<FaultTallies> tallies_;    // likewise
  std::unique_ptr<RepeatedWorkload> again_;  // made by Repeat
  Pool<ControlItem> control_;
  Pool<OutsideOperation> outside_;
  std::uint64_t outside_count_ = 0;
  DigestStream digest_;
  // Packets created before have another incarnation at one of their ends (docs/semantics.md rule
  // 21): all, from a hub, and the latest of these times.
  Time anew_since_ = 0, anew_last_ = 0;
  absl::flat_hash_map<NodeId, Time> peers_anew_;
  Time measure_from_ = 0, measure_to_ = kNever;  // packets created then count for latency
  std::shared_ptr<const HubTables> prepared_;
  Epoch prepared_epoch_ = 0;
  bool prepared_rewrites_ = false;  // they came with the prepare, so every entry is written
};

}  // namespace percs
