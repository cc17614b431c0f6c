#include "emulator/node/hub.h"

#include <algorithm>
#include <tuple>

#include "emulator/node/make_workload.h"
#include "emulator/packet/payload_pattern.h"

namespace percs {
Hub::Hub(NodeId node, const Scenario& scenario, const Topology& topology, WorkCounters* work,
         const DeliveryObserver* on_delivery)
    : context_(node, topology, scenario.ParametersOf(topology, node), work, on_delivery),
      isr_(context_, hfi_),
      hfi_(context_, *this),
      messages_(context_, hfi_, *this),
      cau_(context_, hfi_),
      has_cau_(node < topology.hubs()) {
  hfi_.SetIsr(&isr_);
  hfi_.SetRouting(scenario.routing);
  isr_.router().Prepare(scenario.seed,
                        [this] { Alert(ControlItem::Kind::kTableAlert, kNoPort, false); });
  isr_.Prepare(scenario.seed, [this](PortId port, Time at) { DeclareLost(port, at); });
  cau_.SetAlert([this](CauTreeId tree, std::uint32_t generation, const TreeProblem& problem) {
    ControlItem alert;
    alert.kind = ControlItem::Kind::kTreeAlert;
    alert.tree = tree;
    alert.epoch = generation;
    alert.problem = problem;
    RaiseAlert(std::move(alert));
  });
  if (topology.spec().clock && node < topology.hubs()) {
    clock_ = std::make_unique<HubClock>(
        node, *topology.spec().clock, scenario.seed, scenario.parameters, isr_,
        [this](ControlItem&& item) { send_control_(std::move(item)); });
  }
  if (const CongestionReport reports = scenario.routing.reports();
      reports != CongestionReport::kNone && node < topology.hubs()) {
    congestion_ = std::make_unique<CongestionReports>(
        node, topology, scenario.parameters, isr_, reports,
        [this](ControlItem&& item) { send_control_(std::move(item)); });
    isr_.router().SetReports(congestion_.get());
  }
  if (scenario.service.any()) isr_.EnableService();
  if (scenario.service.any() && node < topology.hubs()) {
    service_ = std::make_unique<ServiceAgent>(
        context_, isr_, scenario.service,
        [this](PortId port, std::uint64_t found, bool right) { TellWiring(port, found, right); });
  }
  if (const PatternWorkload* pattern = scenario.pattern(); pattern && pattern->measure > 0) {
    measure_from_ = pattern->warm_up;
    measure_to_ = pattern->warm_up + pattern->measure;
    context_.phase = std::make_unique<PhaseMeter>(measure_from_, measure_to_, pattern->parts(),
                                                  PathClassifier(topology, node));
  }
}

absl::Status Hub::MakeWorkload(const Scenario& scenario, const Topology& topology) {
  if (topology.is_crossbar(context_.node)) return absl::OkStatus();  // no source is there
  auto workload = MakeHubWorkload(scenario, topology, *this);
  if (!workload.ok()) return workload.status();
  SetWorkload(*std::move(workload));
  return absl::OkStatus();
}

void Hub::Start() {
  if (clock_) clock_->SetRole(isr_.router().tables()->clock, 0);
  if (workload_) workload_->Start();
  if (service_) service_->Start();
  if (hfi_.pending()) hfi_.HandOver();
}

// The order of one instant (docs/semantics.md rules 2 and 3): every input, then arbitration, then
// what software and the HFIs do, then hand-overs. Swapping the first two would let a grant overlook
// a credit of its own instant; the last two create nothing for this instant's arbitration.
void Hub::RunForeground(Time end) {
  EventQueue& queue = context_.queue;
  constexpr std::uint64_t kHfiKeys = EventKey(EventClass::kHfi, 0, 0, 0).value;
  for (Time now = next_instant(); now < end; now = next_instant()) {
    context_.now = now;
    while (queue.next_time() == now && queue.next_key() < kHfiKeys) {
      Dispatch(queue.Pop());
    }
    if (isr_.dirty()) isr_.Arbitrate();
    if (hfi_.next_time() == now) hfi_.OnW();
    if (queue.next_time() == now) DispatchTimers();
    while (timer_at_ == now) {
      timer_at_ = kNever;
      workload_->OnTimer(timer_token_);
    }
    if (hfi_.pending()) hfi_.HandOver();
  }
  hfi_.DeliverBefore(end);
}

// What comes beside the flits comes before everything else of its instant.
void Hub::RunBackground(Time end) {
  while (true) {
    if (congestion_) congestion_->Expect(next_instant());
    const Time now = next_background();
    if (now >= end) return;
    RunForeground(now);
    context_.now = now;
    if (clock_ && clock_->next_time() == now) clock_->Run();
    if (congestion_ && congestion_->next_time() == now) congestion_->Run(now);
  }
}

void Hub::Dispatch(const Event& event) {
  const PortId port = static_cast<PortId>(event.key.port());
  if (event.key.event_class() != EventClass::kFlit) return DispatchOther(event);
  if (IsHfi(port)) {
    hfi_.OnInjected(port, event.object<Packet>());
  } else if (event.key.detail() == static_cast<std::uint64_t>(FlitEvent::kRun)) {
    isr_.OnRun(event.object<Packet>());
  } else if (event.key.detail() == static_cast<std::uint64_t>(FlitEvent::kService)) {
    isr_.OnServiceRun(event.object<Packet>());
  } else {
    isr_.OnMarkEvent(event.object<PoisonMark>());
  }
}

void Hub::DispatchOther(Event event) {
  const PortId port = static_cast<PortId>(event.key.port());
  switch (event.key.event_class()) {
    case EventClass::kCredit:
      if (event.key.vc() == kServiceVc) [[unlikely]] {
        isr_.OnServiceCredits(port, static_cast<std::uint32_t>(event.key.detail()),
                              static_cast<int>(event.data));
      } else {
        isr_.OnCreditWake(port);
      }
      return;
    case EventClass::kTimer:
      switch (static_cast<TimerEvent>(event.key.detail() & 0xff)) {
        case TimerEvent::kInput:
          isr_.OnInputTimer(port, event.key.vc(), static_cast<PortId>(event.key.detail() >> 8));
          return;
        case TimerEvent::kOutputFree:
          isr_.OnOutputFree(port);
          return;
        case TimerEvent::kWireEmpty:
          --context_.work->unfinished;
          return;
        case TimerEvent::kServiceWait:
          isr_.OnServiceWait(port);
          return;
      }
      return;
    case EventClass::kCommand:
      if (event.key.port() == kOutside) [[unlikely]] {
        return OnOutside(event.object<OutsideOperation>());
      }
      [[fallthrough]];
    case EventClass::kEpoch:
    case EventClass::kLink:
      OnControl(event.object<ControlItem>());
      return;
    case EventClass::kFlit:
    case EventClass::kArbitration:
    case EventClass::kHfi:
      break;
  }
  PERCS_CHECK(false);
}

void Hub::DispatchTimers() {
  while (context_.queue.next_time() == context_.now) DispatchTimer(context_.queue.Pop());
}

void Hub::DispatchTimer(const Event& event) {
  if (event.key.port() == kRetransmit) {
    messages_.OnTimer(static_cast<NodeId>(event.key.detail()));
  } else if (event.key.port() == kCau) {
    cau_.OnEvent(event);
  } else if (event.key.port() == kServiceArrival) {
    OnServicePacket(event.object<Packet>());
  } else if (event.key.port() == kServiceTimer) {
    service_->OnTimer(event.data);
  } else if (event.key.port() == kWindows) {
    windows_->OnEvent(event);
  } else if (event.key.port() == kRawMessages) {
    raw_messages_.OnTimer();
    if (workload_) workload_->OnBacklogShrunk();
  } else {
    workload_->OnTimer(event.data);
  }
}

void Hub::SetTimer(Time at, std::uint64_t token) {
  if (timer_at_ == kNever) {
    timer_at_ = at;
    timer_token_ = token;
    return;
  }
  context_.queue.Push(at, EventKey(EventClass::kHfi, kTask, 0, token), token);
}

void Hub::SendRaw(NodeId destination, WindowId source_window, WindowId destination_window,
                  std::uint64_t bytes, bool verified, const RouteSetting* route) {
  raw_messages_.Send({destination, source_window, destination_window, bytes, verified}, route);
}

void Hub::OnDelivered(Packet* packet) {
  const PacketHeader& header = packet->header;
  context_.last_event = std::max(context_.last_event, context_.now);
  std::optional<DropReason> drop;
  if (packet->tail_marks != 0) {
    const bool poisoned = packet->tail_marks & kPoisonMark;
    drop = poisoned ? DropReason::kTruncated : DropReason::kCrc;
  } else if (header.created < anew_last_ && IsOld(header)) [[unlikely]] {
    drop = DropReason::kOldIncarnation;
  } else if (context_.WindowDown(header.destination_window)) [[unlikely]] {
    drop = DropReason::kWindowDown;
  } else if (header.kind == PacketKind::kData) {
    drop = messages_.OnData(header);
  } else if (header.kind == PacketKind::kCau) {
    drop = cau_.OnPacket(header);
  } else if (header.kind == PacketKind::kWindow) {
    drop = Windows().OnPacket(header);
  } else if (header.kind == PacketKind::kOperation) {
    drop = WindowPacket::ReadFrom(header) ? messages_.OnData(header) : DropReason::kMalformed;
  }
  if (header.traced) [[unlikely]]
    Trace(*packet, drop);
  if (drop) {
    if (*drop == DropReason::kWindowDown) context_.CountLoss(kWindowsPlace, header.kind);
    if (*drop == DropReason::kCauDown) context_.CountLoss(kCauPlace, header.kind);
    context_.CountDrop(*drop, packet->length, 1);
  } else {
    if (packet->length != header.flits) ++context_.flits_out_of_order;  // the tail came too early
    Deliver(header);
    if (takes_payload_ && header.kind == PacketKind::kData) workload_->OnPayload(header);
    if (header.kind == PacketKind::kAck) messages_.OnAck(header);
    if (header.kind == PacketKind::kRaw && workload_) workload_->OnRawDelivered(header);
    if (header.kind == PacketKind::kOperation) Windows().OnOperation(header);
  }
  // Also one that is dropped can complete messages: it says what was given up before them.
  const bool of_messages =
      header.kind == PacketKind::kData || header.kind == PacketKind::kOperation;
  if (takes_payload_ && of_messages) workload_->OnArrived();
  context_.Release(packet);
}

void Hub::Trace(const Packet& packet, std::optional<DropReason> drop) {
  if (drop) {
    context_.Tracer().Dropped(packet, context_.now, *drop, packet.length);
  } else {
    context_.Tracer().Delivered(packet, context_.now);
  }
}

// The service port has delivered it. Deliveries of the HFIs up to now come first, so that the order
// of deliveries does not depend on the windows.
void Hub::OnServicePacket(Packet* packet) {
  hfi_.DeliverBefore(context_.now + 1);
  const PacketHeader header = packet->header;
  const PortId in = packet->in;
  std::optional<DropReason> drop;
  if (packet->tail_marks != 0) {
    drop = DropReason::kCrc;
  } else if (header.created < anew_last_ && IsOld(header)) {
    drop = DropReason::kOldIncarnation;
  }
  if (header.traced) [[unlikely]]
    Trace(*packet, drop);
  context_.Release(packet);
  if (drop) return context_.CountServiceDrop(*drop);
  context_.last_event = std::max(context_.last_event, context_.now);
  --context_.work->unfinished;
  ++context_.stats.packets_delivered;
  ++context_.stats.flits_delivered;
  context_.stats.hops_delivered += header.hops;
  digest_.Add(static_cast<std::uint64_t>(context_.now));
  digest_.Add(static_cast<std::uint64_t>(header.source) << 32 | header.flits);
  digest_.Add(header.sequence);
  digest_.Add(header.path);
  if (*context_.on_delivery) {
    (*context_.on_delivery)(context_.node,
                            {context_.now, header.source, header.sequence, 1, header.path});
  }
  if (service_) service_->OnPacket(header, in);
}

void Hub::Deliver(const PacketHeader& header) {
  NodeStats& stats = context_.stats;
  --context_.work->resident;
  ++stats.packets_delivered;
  stats.flits_delivered += header.flits;
  stats.bytes_delivered += header.bytes;
  stats.hops_delivered += header.hops;
  if (header.created >= measure_from_ && header.created < measure_to_) {
    const Time latency = context_.now - header.created;
    stats.packet_latency.Add(static_cast<std::uint64_t>(latency));
    if (context_.phase) {
      context_.phase->Delivered(header.source, header.destination, IsIndirect(header.mode),
                                header.hops, header.created, latency);
    }
  }
  std::uint64_t payload_hash = 0;
  if (header.payload) {
    payload_hash = HashBytes(header.payload.bytes(), header.bytes);
    // Packets of CAUs and windows are checked by the software that gets them.
    const bool pattern = header.kind == PacketKind::kRaw || header.kind == PacketKind::kData;
    if (pattern) stats.payload_bytes_verified += header.bytes;
    if (pattern && !checks_payload_ && CheckPayload(header) >= 0) ++stats.payload_errors;
  }
  digest_.Add(static_cast<std::uint64_t>(context_.now));
  digest_.Add(static_cast<std::uint64_t>(header.source) << 32 | header.flits);
  digest_.Add(header.sequence);
  digest_.Add(header.path);
  if (payload_hash) digest_.Add(payload_hash);
  if (again_) [[unlikely]]
    again_->Deliver(context_.now, header, payload_hash);
  if (*context_.on_delivery) {
    (*context_.on_delivery)(
        context_.node, {context_.now, header.source, header.sequence, header.flits, header.path});
  }
}

// --- Commands and network management -------------------------------------------------------------

void Hub::Receive(const ControlItem& item) {
  if (item.kind == ControlItem::Kind::kClock) {
    clock_->Receive(item);
    return;
  }
  if (item.kind == ControlItem::Kind::kCongestion) {
    congestion_->Receive(item);
    return;
  }
  ControlItem* copy = control_.Take();
  *copy = item;
  // Several for one port at one instant: down, up, then what is wrong with it, in the order given.
  int order = item.up ? 1 : 0;
  std::uint64_t detail = item.epoch;
  EventClass event_class = EventClass::kCommand;
  switch (item.kind) {
    case ControlItem::Kind::kLinkLost:
      event_class = EventClass::kLink;
      break;
    case ControlItem::Kind::kFault:
      std::tie(event_class, order) = OrderOf(item.action);
      detail = ++actions_;
      break;
    case ControlItem::Kind::kCommit:
      event_class = EventClass::kEpoch;
      break;
    default:
      break;
  }
  const int port = item.port == kNoPort ? 0 : item.port;
  if (item.of_tree()) {
    detail = static_cast<std::uint64_t>(item.kind) << 32 |
             static_cast<std::uint64_t>(item.tree) << 16 | (item.epoch & 0xffff);
  }
  context_.queue.Push(item.arrival, EventKey(event_class, port, order, detail), EventData(copy));
}

void Hub::Issue(Time at, WindowOperation operation, WindowListener* listener) {
  OutsideOperation* outside = outside_.Take();
  outside->operation = std::move(operation);
  outside->listener = listener;
  PushOutside(at, outside);
}

void Hub::UseCau(Time at, std::function<void(CauPort& cau)> use) {
  OutsideOperation* outside = outside_.Take();
  outside->use = std::move(use);
  PushOutside(at, outside);
}

void Hub::PushOutside(Time at, OutsideOperation* outside) {
  ++context_.work->unfinished;  // until it begins
  context_.queue.Push(at, EventKey(EventClass::kCommand, kOutside, 0, outside_count_++),
                      EventData(outside));
}

void Hub::OnOutside(OutsideOperation* outside) {
  --context_.work->unfinished;
  WindowOperation operation = std::move(outside->operation);
  WindowListener* const listener = outside->listener;
  const std::function<void(CauPort&)> use = std::exchange(outside->use, nullptr);
  outside_.Give(outside);
  if (use) return use(cau_);
  windows()->Issue(std::move(operation), listener);
}

void Hub::OnControl(ControlItem* item) {
  switch (item->kind) {
    case ControlItem::Kind::kLinkLost:
      if (item->source == context_.node) --context_.work->unfinished;
      // Not if it went down before.
      if (isr_.output(item->port).generation != item->epoch) break;
      isr_.GiveUpLink(item->port);
      FollowLink(item->port);
      break;
    case ControlItem::Kind::kFault:
      OnFault(item->action, item->port);
      break;
    case ControlItem::Kind::kPrepare: {
      if (item->tables && item->tables->Hash() != item->hash) break;  // damaged: not acknowledged
      prepared_ = item->tables ? item->tables : isr_.router().tables();
      prepared_epoch_ = item->epoch;
      prepared_rewrites_ = item->tables != nullptr;
      ControlItem answer;
      answer.kind = ControlItem::Kind::kPrepared;
      answer.epoch = item->epoch;
      Answer(std::move(answer));
      break;
    }
    case ControlItem::Kind::kCommit:
      if (item->epoch == prepared_epoch_) {
        isr_.router().Install(prepared_, prepared_epoch_);
        if (prepared_rewrites_) isr_.router().Rewrite();
        if (clock_) clock_->SetRole(prepared_->clock, context_.now);
        ++context_.stats.tables_installed;
        context_.last_event = context_.now;
      }
      break;
    case ControlItem::Kind::kTreeSet:
    case ControlItem::Kind::kTreeReady:
    case ControlItem::Kind::kTreeDown:
      OnTreeControl(*item);
      break;
    case ControlItem::Kind::kAlert:
    case ControlItem::Kind::kTableAlert:
    case ControlItem::Kind::kWiringAlert:
    case ControlItem::Kind::kPrepared:
    case ControlItem::Kind::kTreeAnswer:
    case ControlItem::Kind::kTreeAlert:
    case ControlItem::Kind::kClock:
    case ControlItem::Kind::kCongestion:
      PERCS_CHECK(false);  // for network management, or taken by Receive
  }
  item->tables = nullptr;
  item->plan = nullptr;
  control_.Give(item);
}

absl::Status Hub::AddTree(const std::shared_ptr<const TreePlan>& plan) {
  if (absl::Status status = cau_.SetUp(plan, TreeProblem()); !status.ok()) return status;
  cau_.Start(plan->id, plan->generation);
  return absl::OkStatus();
}

void Hub::OnTreeControl(const ControlItem& item) {
  context_.last_event = context_.now;
  // Network management counted all but kTreeSet.
  if (item.kind != ControlItem::Kind::kTreeSet) --context_.work->unfinished;
  if (item.kind == ControlItem::Kind::kTreeReady) return cau_.Start(item.tree, item.epoch);
  if (item.kind == ControlItem::Kind::kTreeDown)
    return cau_.TakeDown(item.tree, item.epoch, item.problem);
  ControlItem answer;
  answer.kind = ControlItem::Kind::kTreeAnswer;
  answer.tree = item.tree;
  answer.epoch = item.plan->generation;
  if (!cau_.SetUp(item.plan, item.problem).ok()) {
    answer.problem = {TreeProblem::Code::kFull, CauOperation::kReduce, 0, context_.node};
  }
  Answer(std::move(answer));
}

NodeResult Hub::Result() {
  NodeResult result;
  result.node = context_.node;
  result.stats = stats();
  result.last_event = context_.last_event;
  result.failed = messages_.failed();
  if (workload_) {
    result.ranks = workload_->ranks();
    result.collective = workload_->collective();
    result.cau_tasks = workload_->cau_tasks();
    result.window_programs = workload_->window_programs();
  }
  if (context_.phase) {
    result.phase = context_.phase->Parts(result.stats.measured_bytes_offered,
                                         result.stats.measured_bytes_accepted);
  }
  if (clock_) result.clock = clock_->samples();
  if (tallies_) result.tallies = Tallies();
  result.first_rerouted = isr_.router().first_rerouted();
  result.credits_missing = isr_.MissingCredits();
  result.flits_out_of_order = context_.flits_out_of_order;
  result.flits_without_credit = context_.flits_without_credit;
  result.vcs_out_of_place = context_.vcs_out_of_place;
  DigestStream digest = digest_;
  FoldWorkload(&result);
  result.stats.Fold(digest);
  digest.Add(static_cast<std::uint64_t>(result.last_event));
  digest.Add(result.credits_missing);
  if (!result.collective.empty()) result.collective.Fold(digest);
  for (const WindowProgramResult& program : result.window_programs) program.Fold(digest);
  result.digest = digest.Finish();
  return result;
}

}  // namespace percs
