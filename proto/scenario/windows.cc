#include "proto/scenario/windows.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "emulator/workload/window_programs.h"
#include "fmt/format.h"

namespace percs {
namespace {

using Bytes = std::vector<std::uint8_t>;

static_assert(v1::WINDOW_STATUS_ON_DEVICE - v1::WINDOW_STATUS_OK ==
                  static_cast<int>(WindowStatus::kOnDevice) &&
              v1::WINDOW_STATUS_UNALIGNED - v1::WINDOW_STATUS_OK ==
                  static_cast<int>(WindowStatus::kUnaligned) &&
              v1::ATOMIC_OPERATION_COMPARE_SWAP - v1::ATOMIC_OPERATION_ADD ==
                  static_cast<int>(AtomicOp::kCompareSwap));

constexpr Address kDefaultAddress = 16 << 20, kDefaultFifos = 64 << 10;

// Steps of one program; every problem goes to the list.
class StepBuilder {
 public:
  StepBuilder(const Topology& topology, std::string path, ErrorList* errors,
              std::vector<WindowStep>* steps)
      : topology_(topology), path_(std::move(path)), errors_(*errors), steps_(*steps) {}

  void Build(const v1::WindowStep& message) {
    if (!OfWindow(message) && !OfPackets(message)) {
      errors_.Add(path_, "the step is empty; write for example `reserve:`");
      return;
    }
    if (message.has_repeat() || steps_.empty()) return;
    WindowStep& step = steps_.back();
    if (message.expect() != v1::WINDOW_STATUS_UNSPECIFIED) {
      step.expect = static_cast<WindowStatus>(message.expect() - v1::WINDOW_STATUS_OK);
    }
    if (message.has_wait()) step.wait = message.wait();
    step.or_ok = message.or_ok();
  }

 private:
  // The window, its memory, waiting. False: something else.
  bool OfWindow(const v1::WindowStep& message) {
    switch (message.kind_case()) {
      case v1::WindowStep::kReserve:
        Add(WindowOp::kReserve).window = message.reserve().has_window()
                                             ? static_cast<WindowId>(message.reserve().window())
                                             : kAnyWindow;
        return true;
      case v1::WindowStep::kFifos:
        Fifos(message.fifos());
        return true;
      case v1::WindowStep::kRelease:
        Add(WindowOp::kRelease);
        return true;
      case v1::WindowStep::kRegister:
        Region(WindowOp::kRegister, message.register_());
        return true;
      case v1::WindowStep::kDeregister:
        Region(WindowOp::kDeregister, message.deregister());
        return true;
      case v1::WindowStep::kWrite:
        Add(WindowOp::kWriteMemory).data = DataOf(message.write(), "write");
        Place(message.write());
        return true;
      case v1::WindowStep::kCheck:
        Check(message.check());
        return true;
      case v1::WindowStep::kAwait:
        Await(message.await());
        return true;
      case v1::WindowStep::kRepeat:
        Step(WindowStep::Kind::kRepeat).count =
            static_cast<std::uint64_t>(message.repeat().times());
        steps_.back().steps =
            message.repeat().has_steps() ? static_cast<std::uint64_t>(message.repeat().steps()) : 1;
        return true;
      default:
        return false;
    }
  }

  // Steps that send to other hubs. False: something else.
  bool OfPackets(const v1::WindowStep& message) {
    switch (message.kind_case()) {
      case v1::WindowStep::kImmediateSend:
        Send(WindowOp::kImmediateSend, message.immediate_send(), "immediate_send");
        return true;
      case v1::WindowStep::kFifoSend:
        Send(WindowOp::kFifoSend, message.fifo_send(), "fifo_send");
        return true;
      case v1::WindowStep::kIpSend:
        Send(WindowOp::kIpSend, message.ip_send(), "ip_send");
        return true;
      case v1::WindowStep::kIpReceive:
        Add(WindowOp::kIpReceive).segments = {
            {0, static_cast<Address>(message.ip_receive().address()),
             static_cast<std::uint32_t>(
                 message.ip_receive().has_bytes() ? message.ip_receive().bytes() : 64000)}};
        return true;
      case v1::WindowStep::kJoin:
        Join(WindowOp::kJoin, message.join());
        return true;
      case v1::WindowStep::kLeave:
        Join(WindowOp::kLeave, message.leave());
        return true;
      case v1::WindowStep::kRdmaWrite:
        Transfer(WindowOp::kRdmaWrite, message.rdma_write(), "rdma_write.hub");
        return true;
      case v1::WindowStep::kRdmaRead:
        Transfer(WindowOp::kRdmaRead, message.rdma_read(), "rdma_read.hub");
        return true;
      case v1::WindowStep::kAtomic:
        Atomic(message.atomic());
        return true;
      case v1::WindowStep::kFence: {
        WindowOperation& fence = Add(WindowOp::kFence);
        fence.fence_writes = !message.fence().has_writes() || message.fence().writes();
        fence.fence_reads = !message.fence().has_reads() || message.fence().reads();
        return true;
      }
      default:
        return false;
    }
  }

  WindowStep& Step(WindowStep::Kind kind) {
    steps_.push_back({});
    steps_.back().kind = kind;
    return steps_.back();
  }
  WindowOperation& Add(WindowOp op) {
    WindowOperation& operation = Step(WindowStep::Kind::kOperation).operation;
    operation.op = op;
    return operation;
  }

  NodeId Node(const std::string& name, const std::string& field) {
    const auto node = topology_.ParseDestination(name);  // a group, too
    if (!node.ok()) errors_.Add(path_ + "." + field, std::string(node.status().message()));
    return node.ok() ? *node : kNoNode;
  }

  void Join(WindowOp op, const v1::WindowGroup& message) {
    const NodeId group = Node(message.group(), "join.group");
    Add(op).node = group;
  }

  void Fifos(const v1::WindowFifos& message) {
    const auto send = static_cast<std::uint32_t>(message.has_send() ? message.send() : 16);
    const auto receive = static_cast<std::uint32_t>(message.has_receive() ? message.receive() : 16);
    const Address address =
        message.has_address() ? static_cast<Address>(message.address()) : kDefaultFifos;
    if (send + receive == 0) {
      errors_.Add(path_ + ".fifos", "a window without FIFOs needs no `fifos` step; leave it out");
      return;
    }
    WindowOperation& memory = Add(WindowOp::kRegister);
    memory.context = static_cast<ContextId>(message.context());
    memory.address = address;
    memory.bytes = (send + receive) * static_cast<std::uint64_t>(kPacketBytesMax);
    WindowOperation& configure = Add(WindowOp::kConfigure);
    configure.context = static_cast<ContextId>(message.context());
    configure.send_fifo = {address, send};
    configure.receive_fifo = {address + send * static_cast<Address>(kPacketBytesMax), receive};
  }

  void Region(WindowOp op, const v1::WindowRegion& message) {
    WindowOperation& region = Add(op);
    region.context = static_cast<ContextId>(message.context());
    region.address = static_cast<Address>(message.address());
    region.bytes = message.has_bytes() ? static_cast<std::uint64_t>(message.bytes()) : 65536;
    if (message.has_writable()) region.writable = message.writable();
    if (message.has_device()) region.device = message.device();
    region.device_offset = static_cast<std::uint64_t>(message.device_offset());
  }

  Bytes DataOf(const v1::WindowBytes& message, const char* field) {
    const std::uint64_t bytes =
        message.has_bytes() ? static_cast<std::uint64_t>(message.bytes()) : 8;
    if (!message.has_number()) {
      return message.has_pattern()
                 ? PatternBytes(bytes, static_cast<std::uint64_t>(message.pattern()))
                 : Bytes(bytes);
    }
    if (bytes > 8 || message.has_pattern()) {
      errors_.Add(path_ + "." + field, "a number has 1, 2, 4 or 8 bytes and excludes a pattern");
    }
    Bytes data(bytes);
    for (std::size_t i = 0; i < data.size() && i < 8; ++i)
      data[i] = static_cast<std::uint8_t>(message.number() >> 8 * i);
    return data;
  }

  void Place(const v1::WindowBytes& message) {
    steps_.back().operation.context = static_cast<ContextId>(message.context());
    steps_.back().operation.address = static_cast<Address>(message.address());
  }

  void Check(const v1::WindowBytes& message) {
    WindowOperation& read = Add(WindowOp::kReadMemory);
    Place(message);
    Bytes data = DataOf(message, "check");
    read.bytes = data.size();
    steps_.back().expect_data = std::move(data);
  }

  void Send(WindowOp op, const v1::WindowSend& message, const std::string& field) {
    const NodeId to = Node(message.to(), field + ".to");
    WindowOperation& send = Add(op);
    send.node = to;
    send.peer_window = static_cast<WindowId>(message.window());
    const std::uint64_t bytes =
        message.has_bytes() ? static_cast<std::uint64_t>(message.bytes()) : 64;
    if (message.has_from()) {
      if (op != WindowOp::kIpSend)
        errors_.Add(path_ + "." + field + ".from",
                    "only ip_send gathers a datagram; write ip_send");
      send.segments = {
          {0, static_cast<Address>(message.from()), static_cast<std::uint32_t>(bytes)}};
    } else {
      send.data = message.has_pattern()
                      ? PatternBytes(bytes, static_cast<std::uint64_t>(message.pattern()))
                      : Bytes(bytes);
    }
  }

  void Transfer(WindowOp op, const v1::WindowTransfer& message, const std::string& field) {
    const NodeId hub = Node(message.hub(), field);
    WindowOperation& transfer = Add(op);
    transfer.node = hub;
    transfer.peer_window = static_cast<WindowId>(message.window());
    transfer.bytes = message.has_bytes() ? static_cast<std::uint64_t>(message.bytes()) : 65536;
    transfer.context = static_cast<ContextId>(message.context());
    transfer.address =
        message.has_address() ? static_cast<Address>(message.address()) : kDefaultAddress;
    transfer.peer_context = static_cast<ContextId>(message.there_context());
    transfer.peer_address =
        message.has_there() ? static_cast<Address>(message.there()) : kDefaultAddress;
    transfer.to_fifo = message.to_fifo();
    transfer.notify = message.notify();
    transfer.cached = message.cached();
  }

  void Atomic(const v1::WindowAtomic& message) {
    const NodeId hub = Node(message.hub(), "atomic.hub");
    WindowOperation& atomic = Add(WindowOp::kAtomic);
    atomic.node = hub;
    atomic.peer_window = static_cast<WindowId>(message.window());
    atomic.peer_context = static_cast<ContextId>(message.there_context());
    atomic.notify = message.notify();
    for (const v1::AtomicUpdate& from : message.updates()) {
      AtomicUpdate update;
      if (from.operation() != v1::ATOMIC_OPERATION_UNSPECIFIED) {
        update.op = static_cast<AtomicOp>(from.operation() - v1::ATOMIC_OPERATION_ADD);
      }
      if (from.has_size()) update.size = static_cast<std::uint8_t>(from.size());
      update.fetch = !from.has_fetch() || from.fetch();
      update.address = from.has_address() ? static_cast<Address>(from.address()) : kDefaultAddress;
      update.operand = from.has_operand() ? static_cast<std::uint64_t>(from.operand()) : 1;
      update.compare = static_cast<std::uint64_t>(from.compare());
      atomic.updates.push_back(update);
    }
    for (const absl::string_view text :
         absl::StrSplit(message.expect(), ',', absl::SkipWhitespace())) {
      std::uint64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) {
        errors_.Add(path_ + ".atomic.expect",
                    fmt::format("\"{}\" is not a whole number; write for example \"0, 7\"",
                                std::string(text)));
      }
      steps_.back().expect_values.push_back(value);
    }
  }

  void Await(const v1::WindowAwait& message) {
    switch (message.kind_case()) {
      case v1::WindowAwait::kOperations:
        Step(WindowStep::Kind::kAwaitAll);
        break;
      case v1::WindowAwait::kPackets: {
        WindowStep& step = Step(WindowStep::Kind::kAwaitReceived);
        step.count = static_cast<std::uint64_t>(message.packets());
        if (message.has_pattern()) {
          const std::uint64_t bytes =
              message.has_bytes() ? static_cast<std::uint64_t>(message.bytes()) : 64;
          step.expect_data = PatternBytes(bytes, static_cast<std::uint64_t>(message.pattern()));
        }
        break;
      }
      case v1::WindowAwait::kNotifications:
        Step(WindowStep::Kind::kAwaitNotified).count =
            static_cast<std::uint64_t>(message.notifications());
        break;
      case v1::WindowAwait::kTime:
        Step(WindowStep::Kind::kCompute).time = message.time();
        break;
      case v1::WindowAwait::kUntil:
        Step(WindowStep::Kind::kAt).time = message.until();
        break;
      case v1::WindowAwait::KIND_NOT_SET:
        Step(WindowStep::Kind::kAwaitAll);
        errors_.Add(path_ + ".await",
                    "the step waits for nothing; write for example `operations: true`");
        break;
    }
  }

  const Topology& topology_;
  const std::string path_;
  ErrorList& errors_;
  std::vector<WindowStep>& steps_;
};

}  // namespace

WindowWorkload BuildWindows(const v1::WindowPrograms& message, const Topology& topology,
                            ErrorList* errors) {
  WindowWorkload workload;
  const std::string path = "workload.windows";
  for (int i = 0; i < message.programs_size(); ++i) {
    const v1::WindowProgram& from = message.programs(i);
    const std::string at = fmt::format("{}.programs[{}]", path, i);
    WindowProgram program;
    program.name = from.has_name() ? from.name() : from.hub();
    if (from.has_job()) program.job = static_cast<JobKey>(from.job());
    const auto node = topology.ParseNode(from.hub());
    if (node.ok()) {
      program.node = *node;
    } else {
      errors->Add(at + ".hub", std::string(node.status().message()));
    }
    std::vector<std::size_t> firsts;  // step of the machine that each step of the file begins with
    for (int s = 0; s < from.steps_size(); ++s) {
      firsts.push_back(program.steps.size());
      StepBuilder(topology, fmt::format("{}.steps[{}]", at, s), errors, &program.steps)
          .Build(from.steps(s));
      if (!from.steps(s).has_repeat() || program.steps.empty()) continue;
      // Steps of the file may be several of the machine.
      WindowStep& repeat = program.steps.back();
      if (repeat.steps > static_cast<std::uint64_t>(s)) {
        errors->Add(
            fmt::format("{}.steps[{}].repeat.steps", at, s),
            fmt::format("{} steps are to be repeated, but only {} precede it", repeat.steps, s));
        continue;
      }
      repeat.steps = firsts.back() - firsts[static_cast<std::size_t>(s) - repeat.steps];
    }
    workload.programs.push_back(std::move(program));
  }
  if (!errors->empty()) return workload;
  if (const absl::Status status = WindowPrograms::Check(workload, topology); !status.ok()) {
    errors->Add(path, std::string(status.message()));
  }
  return workload;
}

}  // namespace percs
