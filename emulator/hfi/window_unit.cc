#include "emulator/hfi/window_unit.h"

#include <algorithm>

#include "fmt/format.h"

namespace percs {
namespace {

std::vector<PcieDevice> DevicesOf(const Topology& topology, NodeId hub) {
  std::vector<PcieDevice> devices = topology.spec().pcie;
  std::erase_if(devices, [hub](const PcieDevice& device) { return device.hub != hub; });
  return devices;
}

}  // namespace

WindowUnit::WindowUnit(NodeContext& context, Hfi& hfi, MessageLayer& messages,
                       std::uint32_t first_request)
    : context_(context),
      hfi_(hfi),
      messages_(messages),
      parameters_(context.parameters->windows),
      nmmu_(parameters_, context.stats),
      pcie_(DevicesOf(*context.topology, context.node), parameters_.pcie_flit_time, context.stats),
      atomics_(parameters_, nmmu_),
      windows_(static_cast<std::size_t>(kHfisPerHub * context.parameters->windows_per_hfi)),
      immediate_used_(kHfisPerHub),
      listeners_(1),
      next_request_(first_request) {}

// --- Events --------------------------------------------------------------------------------------

ListenerId WindowUnit::IdOf(WindowListener* listener) {
  if (!listener) return 0;  // no listener
  const auto [at, is_new] =
      listener_ids_.try_emplace(listener, static_cast<ListenerId>(listeners_.size()));
  if (is_new) listeners_.push_back(listener);
  return at->second;
}

void WindowUnit::Forget(WindowListener* listener) {
  const auto found = listener_ids_.find(listener);
  if (found == listener_ids_.end()) return;
  const ListenerId id = found->second;
  listener_ids_.erase(found);
  listeners_[id] = nullptr;
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (windows_[w].reserved && windows_[w].listener == id) Release(static_cast<WindowId>(w));
  }
}

void WindowUnit::Schedule(Time at, Deferred&& what) {
  Deferred* d = deferred_.Take();
  *d = std::move(what);
  context_.queue.Push(at, EventKey(EventClass::kHfi, kWindows, 0, next_event_++), EventData(d));
}

void WindowUnit::Tell(Time at, ListenerId listener, bool counted, WindowEvent&& event) {
  // The run is not over until the event has been delivered: whether it is must not depend on where
  // windows of time end.
  if (!counted) ++context_.work->unfinished;
  Deferred d;
  d.listener = listener;
  if (event.window < windows_.size()) d.reservation = windows_[event.window].reservation;
  d.event = std::move(event);
  Schedule(at, std::move(d));
}

void WindowUnit::OnEvent(const Event& event) {
  auto* place = event.object<Deferred>();
  Deferred d = std::move(*place);
  deferred_.Give(place);
  switch (d.kind) {
    case Deferred::Kind::kPump:
      if (windows_[d.window].pump_at != context_.now) return;
      windows_[d.window].pump_at = kNever;
      return Pump(d.window);
    case Deferred::Kind::kTimeout:
      if (windows_[d.window].timeout_at != context_.now) return;
      windows_[d.window].timeout_at = kNever;
      return OnTimeout(d.window);
    case Deferred::Kind::kServe:
      return Serve(d.header, d.part);
    case Deferred::Kind::kAssembly:
      return OnAssemblyTimeout();
    case Deferred::Kind::kTell:
      break;
  }
  context_.last_event = context_.now;
  --context_.work->unfinished;
  d.event.at = context_.now;
  if (d.event.kind == WindowEvent::Kind::kReceived) {
    Window& window = windows_[d.event.window];
    if (window.reservation != d.reservation) return;  // that FIFO is gone
    ++window.visible;
    ++Count(d.event.window, HfiCounter::kReceiveIndicated);
  }
  if (WindowListener* listener = listeners_[d.listener]) listener->OnWindowEvent(d.event);
}

// --- Issue ---------------------------------------------------------------------------------------

void WindowUnit::Issue(WindowOperation operation, WindowListener* listener) {
  const ListenerId id = IdOf(listener);
  WindowEvent completion;
  completion.node = context_.node;
  completion.window = operation.window;
  completion.id = operation.id;
  completion.op = operation.op;
  const bool work = operation.op != WindowOp::kIpReceive;
  if (work) ++context_.work->unfinished;
  const std::optional<WindowStatus> status = Begin(operation, id, &completion);
  if (!status) return;
  completion.status = *status;
  Tell(context_.now, id, work, std::move(completion));
}

WindowStatus WindowUnit::Owned(const WindowOperation& asked, Window** window) {
  *window = Find(asked.window);
  if (!*window) return WindowStatus::kNoSuchWindow;
  if (!(*window)->reserved) return WindowStatus::kWindowClosed;
  return (*window)->job == asked.job ? WindowStatus::kOk : WindowStatus::kWrongKey;
}

std::optional<WindowStatus> WindowUnit::Begin(WindowOperation& asked, ListenerId listener,
                                              WindowEvent* completion) {
  if (static_cast<int>(asked.op) >= kWindowOps) return WindowStatus::kInvalid;
  if (asked.op == WindowOp::kReserve) return Reserve(asked, listener, completion);
  Window* window = nullptr;
  if (const WindowStatus status = Owned(asked, &window); status != WindowStatus::kOk) return status;
  if (asked.op <= WindowOp::kReadMemory || asked.op == WindowOp::kReturnSpace ||
      asked.op == WindowOp::kJoin || asked.op == WindowOp::kLeave) {
    return Local(asked, *window, listener, completion);
  }
  if (window->operations >= parameters_.operations) return WindowStatus::kTooManyOperations;
  if (asked.op == WindowOp::kIpReceive) {
    std::uint64_t bytes = 0;
    const WindowStatus status = CheckSegments(asked, true, &bytes);
    if (status != WindowStatus::kOk) return status;
    OperationState& op = Add(std::move(asked), listener);
    op.bytes = bytes;
    op.work = false;
    op.queued = false;
    window->ip_receives.push_back(&op);
    return std::nullopt;
  }
  if (const WindowStatus status = CheckSend(asked, *window); status != WindowStatus::kOk)
    return status;
  OperationState& op = Add(std::move(asked), listener);
  Queue(op, context_.now + IssueTime(op));
  return std::nullopt;
}

std::optional<WindowStatus> WindowUnit::Local(WindowOperation& asked, Window& window,
                                              ListenerId listener, WindowEvent* completion) {
  switch (asked.op) {
    case WindowOp::kConfigure:
      return Configure(asked, window);
    case WindowOp::kRelease:
      Release(asked.window);
      return WindowStatus::kOk;
    case WindowOp::kReturnSpace:
      return ReturnSpace(window, asked.count);
    case WindowOp::kJoin:
    case WindowOp::kLeave:
      return Join(asked, window);
    default:
      return Memory(asked, completion);
  }
}

WindowStatus WindowUnit::Reserve(const WindowOperation& asked, ListenerId listener,
                                 WindowEvent* completion) {
  WindowId id = asked.window;
  if (id == kAnyWindow) {
    // kAnyWindow is not the number of a window.
    const auto end = windows_.begin() + std::min<std::ptrdiff_t>(kAnyWindow, std::ssize(windows_));
    const auto free =
        std::find_if(windows_.begin(), end, [](const Window& w) { return !w.reserved; });
    if (free == end) return WindowStatus::kNoWindowFree;
    id = static_cast<WindowId>(free - windows_.begin());
  } else if (!Find(id)) {
    return WindowStatus::kNoSuchWindow;
  } else if (windows_[id].reserved) {
    return WindowStatus::kWindowTaken;
  }
  Window& window = windows_[id];
  window.reserved = true;
  window.job = asked.job;
  window.listener = listener;
  completion->window = id;
  return WindowStatus::kOk;
}

WindowStatus WindowUnit::Configure(const WindowOperation& asked, Window& window) {
  if (window.operations > 0 || window.receive.used() > 0) return WindowStatus::kInvalid;  // in use
  for (const bool receive : {false, true}) {
    const FifoPlace& place = receive ? asked.receive_fifo : asked.send_fifo;
    if (place.slots == 0) continue;
    const WindowStatus status = nmmu_.Check(asked.context, asked.job, place.address,
                                            PacketFifo::BytesOf(place.slots), receive);
    if (status != WindowStatus::kOk) return status;
  }
  window.context = asked.context;
  window.send.Place(asked.send_fifo);
  window.receive.Place(asked.receive_fifo);
  return WindowStatus::kOk;
}

// Operations under way end; packets that are in the fabric find no window. When a job has no window
// left on this hub, its memory is not registered any more either.
void WindowUnit::Release(WindowId id) {
  Window& window = windows_[id];
  DropAssemblies(id);
  for (OperationState* op : OperationsOf(id)) {
    const bool holds_buffer = op->queued && !op->ended && op->asked.op == WindowOp::kImmediateSend;
    if (holds_buffer) --ImmediateUsed(id);
    op->queued = false;
    if (op->ended) {
      EraseIfOver(*op);
    } else {
      End(*op, WindowStatus::kWindowClosed);
    }
  }
  const JobKey job = window.job;
  const std::uint32_t reservation = window.reservation + 1;
  const Time pump_at = window.pump_at, timeout_at = window.timeout_at, free_at = window.free_at;
  window = Window();
  window.reservation = reservation;
  window.pump_at = pump_at;
  window.timeout_at = timeout_at;
  window.free_at = free_at;
  const bool last = std::none_of(windows_.begin(), windows_.end(),
                                 [job](const Window& w) { return w.reserved && w.job == job; });
  if (last) nmmu_.DropJob(job);
}

// The program's own accesses take no virtual time: what a processor does is not modelled here.
WindowStatus WindowUnit::Memory(WindowOperation& asked, WindowEvent* completion) {
  switch (asked.op) {
    case WindowOp::kRegister: {
      const MemoryPlace place{asked.device, asked.device_offset};
      const bool on_device = place.port != MemoryPlace().port;
      const auto status =
          on_device ? pcie_.CheckRange(place.port, place.offset, asked.bytes) : WindowStatus::kOk;
      if (status != WindowStatus::kOk) return status;
      return nmmu_.Register(asked.context, asked.job, asked.address, asked.bytes, asked.writable,
                            place);
    }
    case WindowOp::kDeregister:
      return nmmu_.Deregister(asked.context, asked.job, asked.address);
    case WindowOp::kWriteMemory: {
      if (asked.data.empty()) return WindowStatus::kEmpty;
      MemoryPlace place;
      const WindowStatus status = CheckOwn(asked, asked.data.size(), false, &place);
      if (status != WindowStatus::kOk) return status;
      if (place.on_device()) {
        pcie_.Write(place.port, place.offset, asked.data.data(), asked.data.size());
      } else {
        nmmu_.Write(asked.context, asked.address, asked.data.data(), asked.data.size());
      }
      return status;
    }
    case WindowOp::kReadMemory: {
      if (asked.bytes == 0) return WindowStatus::kEmpty;
      MemoryPlace place;
      const WindowStatus status = CheckOwn(asked, asked.bytes, false, &place);
      if (status != WindowStatus::kOk) return status;
      completion->data.resize(asked.bytes);
      if (place.on_device()) {
        pcie_.Read(place.port, place.offset, completion->data.data(), asked.bytes);
      } else {
        nmmu_.Read(asked.context, asked.address, completion->data.data(), asked.bytes);
      }
      return status;
    }
    default:
      return WindowStatus::kInvalid;
  }
}

// Memory of the own side of an operation, and what has its bytes.
WindowStatus WindowUnit::CheckOwn(const WindowOperation& asked, std::uint64_t bytes, bool write,
                                  MemoryPlace* place) {
  const WindowStatus status =
      nmmu_.Check(asked.context, asked.job, asked.address, bytes, write, place);
  return status == WindowStatus::kOk && place->on_device() ? pcie_.CheckThere(place->port) : status;
}

WindowStatus WindowUnit::ReturnSpace(Window& window, std::uint32_t count) {
  if (!window.receive.exists()) return WindowStatus::kNotConfigured;
  if (count > window.visible) return WindowStatus::kReceiveFifoFull;
  window.receive.Return(count);
  window.visible -= count;
  return WindowStatus::kOk;
}

WindowStatus WindowUnit::Join(const WindowOperation& asked, Window& window) {
  if (asked.node >= context_.topology->destinations() || !context_.topology->is_group(asked.node)) {
    return WindowStatus::kNoSuchNode;
  }
  if (asked.op == WindowOp::kLeave) {
    std::erase(window.groups, asked.node);
  } else if (!window.joined(asked.node)) {
    window.groups.push_back(asked.node);
  }
  return WindowStatus::kOk;
}

// --- Completion ----------------------------------------------------------------------------------

WindowEvent WindowUnit::CompletionOf(const OperationState& op, WindowStatus status) const {
  WindowEvent event;
  event.node = context_.node;
  event.window = op.asked.window;
  event.id = op.asked.id;
  event.op = op.asked.op;
  event.status = status;
  event.bytes = op.bytes;
  return event;
}

void WindowUnit::End(OperationState& op, WindowEvent&& completion, Time at) {
  if (op.ended) return;
  op.ended = true;
  Window& window = windows_[op.asked.window];
  if (op.asked.op <= WindowOp::kIpSend) ++Count(op.asked.window, HfiCounter::kSendIndicated);
  if (op.has_slot) window.send.Done(op.slot);
  --window.operations;
  if (op.begun) {
    window.writes -= op.counts_write;
    window.reads -= op.counts_read;
  }
  Tell(at, op.listener, op.work, std::move(completion));
  if (!window.queue.empty()) PumpAt(op.asked.window, context_.now);
  EraseIfOver(op);
}

// An operation with packets in flight stays until they arrive, so that they are not taken for those
// of another operation.
void WindowUnit::EraseIfOver(OperationState& op) {
  if (op.ended && !op.queued && op.under_way == 0) operations_.erase(op.request);
}

OperationState* WindowUnit::Operation(std::uint32_t request) {
  const auto found = operations_.find(request);
  return found == operations_.end() ? nullptr : found->second.get();
}

// Those of its present reservation, in the order of their issue, not in that of a hash.
std::vector<OperationState*> WindowUnit::OperationsOf(WindowId window) {
  std::vector<OperationState*> found;
  for (const auto& [request, op] : operations_) {
    if (op->asked.window == window && op->reservation == windows_[window].reservation)
      found.push_back(op.get());
  }
  std::sort(found.begin(), found.end(),
            [](const auto* a, const auto* b) { return a->request < b->request; });
  return found;
}

// Longer than the target repeats its answer.
Time WindowUnit::AnswerTimeout() const {
  return 2 *
         (context_.parameters->retransmit_timeout << (context_.parameters->retransmit_tries + 1));
}

void WindowUnit::OnTimeout(WindowId id) {
  Time next = kNever;
  for (OperationState* op : OperationsOf(id)) {
    if (op->ended || !op->begun || op->asked.op < WindowOp::kRdmaWrite) continue;
    const Time until = op->progress + AnswerTimeout();
    if (until > context_.now) {
      next = std::min(next, until);
    } else {
      End(*op, WindowStatus::kNoAnswer);
    }
  }
  if (next == kNever || next >= windows_[id].timeout_at) return;
  windows_[id].timeout_at = next;
  Deferred d;
  d.kind = Deferred::Kind::kTimeout;
  d.window = id;
  Schedule(next, std::move(d));
}

std::vector<std::string> WindowUnit::Blocked() const {
  std::vector<const OperationState*> open;
  for (const auto& [request, op] : operations_) {
    if (!op->ended && op->work) open.push_back(op.get());
  }
  std::sort(open.begin(), open.end(),
            [](const auto* a, const auto* b) { return a->request < b->request; });
  std::vector<std::string> lines;
  for (const OperationState* op : open) {
    lines.push_back(fmt::format("window {} of {} has not ended its {} ({} of {} bytes sent)",
                                op->asked.window, context_.topology->NodeName(context_.node),
                                WindowOpName(op->asked.op), op->sent, op->bytes));
  }
  return lines;
}

}  // namespace percs
