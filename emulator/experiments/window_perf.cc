#include "emulator/experiments/window_perf.h"

#include <algorithm>

#include "emulator/hfi/packet_fifo.h"
#include "fmt/format.h"

namespace percs {
namespace {

constexpr Address kFifos = 1 << 20, kSource = Address{1} << 32, kTarget = Address{2} << 32;
constexpr std::uint64_t kRoundBytes = 4 << 20;
constexpr Time kOpened = 10 * kMicrosecond;  // when both have their windows

std::uint64_t PacketsOf(PerfFormat format, std::uint64_t bytes) {
  if (format != PerfFormat::kFifo || bytes == 0) return 1;
  return (bytes + kPacketBytesMax - 1) / kPacketBytesMax;
}

// One of the two programs.
class Side {
 public:
  Side(NodeId node, NodeId peer, std::uint64_t bytes, std::uint64_t in_flight, PerfFormat format)
      : peer_(peer), bytes_(bytes), packets_(PacketsOf(format, bytes)), format_(format) {
    program_.node = node;
    program_.name = fmt::format("perf of node {}", node);
    Add(WindowOp::kReserve).window = 0;
    const auto slots =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(packets_ * in_flight, 2) + 2);
    WindowOperation& fifos = Add(WindowOp::kRegister);
    fifos.address = kFifos;
    fifos.bytes = 2 * PacketFifo::BytesOf(slots);
    WindowOperation& configure = Add(WindowOp::kConfigure);
    configure.send_fifo = {kFifos, slots};
    configure.receive_fifo = {kFifos + PacketFifo::BytesOf(slots), slots};
    if (format == PerfFormat::kRdma) {
      for (const Address address : {kSource, kTarget}) {
        WindowOperation& memory = Add(WindowOp::kRegister);
        memory.address = address;
        memory.bytes = bytes;
      }
      WindowOperation& fill = Add(WindowOp::kWriteMemory);
      fill.address = kSource;
      fill.data = PatternBytes(bytes, node);
    }
    Step(WindowStep::Kind::kAt).time = kOpened;
  }

  WindowStep& Step(WindowStep::Kind kind, std::uint64_t count = 1) {
    program_.steps.push_back({});
    program_.steps.back().kind = kind;
    program_.steps.back().count = count;
    return program_.steps.back();
  }
  void Mark() { Step(WindowStep::Kind::kMark); }
  void Repeat(std::uint64_t steps, std::uint64_t times) {
    Step(WindowStep::Kind::kRepeat, times).steps = steps;
  }

  // One message, not waited for.
  void Message(bool notify) {
    if (format_ == PerfFormat::kRdma) {
      WindowOperation& put = Add(WindowOp::kRdmaWrite);
      put.node = peer_;
      put.bytes = bytes_;
      put.address = kSource;
      put.peer_address = kTarget;
      put.notify = notify;
      program_.steps.back().wait = false;
      return;
    }
    for (std::uint64_t done = 0, i = 0; i < packets_; ++i) {
      const std::uint64_t piece = std::min<std::uint64_t>(bytes_ - done, kPacketBytesMax);
      WindowOperation& send =
          Add(format_ == PerfFormat::kFifo ? WindowOp::kFifoSend : WindowOp::kImmediateSend);
      send.node = peer_;
      send.data = PatternBytes(piece, i);
      program_.steps.back().wait = false;
      done += piece;
    }
  }
  void AwaitMessages(std::uint64_t count) {
    const bool rdma = format_ == PerfFormat::kRdma;
    Step(rdma ? WindowStep::Kind::kAwaitNotified : WindowStep::Kind::kAwaitReceived,
         rdma ? count : count * packets_);
  }
  void AwaitAll() { Step(WindowStep::Kind::kAwaitAll); }
  void Acknowledge() {
    Add(WindowOp::kImmediateSend).node = peer_;
    program_.steps.back().wait = false;
  }
  void AwaitAcknowledgement() { Step(WindowStep::Kind::kAwaitReceived); }
  std::uint64_t size() const { return program_.steps.size(); }
  const WindowProgram& program() const { return program_; }

 private:
  WindowOperation& Add(WindowOp op) {
    WindowOperation& operation = Step(WindowStep::Kind::kOperation).operation;
    operation.op = op;
    return operation;
  }

  WindowProgram program_;
  NodeId peer_;
  std::uint64_t bytes_, packets_;
  PerfFormat format_;
};

absl::StatusOr<std::vector<Time>> Play(const Scenario& machine, const Side& a, const Side& b) {
  Scenario scenario = machine;
  scenario.workload = WindowWorkload{{a.program(), b.program()}};
  const auto result = RunScenario(scenario, {});
  if (!result.ok()) return result.status();
  for (const WindowProgramResult& program : result->window_programs) {
    if (program.wrong > 0)
      return absl::InternalError(fmt::format("{}: {}", program.name, program.problem));
  }
  return result->window_programs[0].marks;
}

absl::Status Check(const Scenario& machine, NodeId from, NodeId to, std::uint64_t bytes,
                   PerfFormat format) {
  const auto topology = Topology::Create(machine.topology);
  if (!topology.ok()) return topology.status();
  if (from >= topology->hubs() || to >= topology->hubs() || from == to) {
    return absl::InvalidArgumentError(fmt::format(
        "node {} to node {}; choose two of the hubs 0..{}", from, to, topology->hubs() - 1));
  }
  if (bytes > PerfBytesMax(format)) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes is too large for {}, whose messages have at most {}", bytes,
                    PerfFormatName(format), PerfBytesMax(format)));
  }
  if (bytes == 0 && format == PerfFormat::kRdma)
    return absl::InvalidArgumentError("RDMA of 0 bytes; write at least 1");
  return absl::OkStatus();
}

}  // namespace

const char* PerfFormatName(PerfFormat format) {
  constexpr const char* kNames[kPerfFormats] = {"immediate", "fifo", "rdma"};
  return kNames[static_cast<int>(format)];
}

std::uint64_t PerfBytesMax(PerfFormat format) {
  switch (format) {
    case PerfFormat::kImmediate:
      return kImmediateBytesMax;
    case PerfFormat::kFifo:
      return 64 * 1024;
    case PerfFormat::kRdma:
      return 4 << 20;
  }
  return 0;
}

absl::StatusOr<std::vector<Time>> PingWindows(const Scenario& machine, NodeId from, NodeId to,
                                              std::uint64_t bytes, std::uint64_t count, Time period,
                                              PerfFormat format) {
  if (absl::Status status = Check(machine, from, to, bytes, format); !status.ok()) return status;
  if (count == 0) return absl::InvalidArgumentError("0 round trips; write at least 1");
  Side a(from, to, bytes, 1, format), b(to, from, bytes, 1, format);
  const std::uint64_t first = a.size();
  a.Mark();
  a.Message(true);
  a.AwaitMessages(1);
  a.Mark();
  if (period > 0) a.Step(WindowStep::Kind::kCompute).time = period;
  a.Repeat(a.size() - first, count);
  const std::uint64_t second = b.size();
  b.AwaitMessages(1);
  b.Message(true);
  b.Repeat(b.size() - second, count);
  b.AwaitAll();
  const auto marks = Play(machine, a, b);
  if (!marks.ok()) return marks.status();
  std::vector<Time> trips;
  for (std::size_t i = 0; i + 1 < marks->size(); i += 2)
    trips.push_back((*marks)[i + 1] - (*marks)[i]);
  return trips;
}

// Several messages, which must all arrive. For RDMA the sender knows it by itself; for packets the
// receiver reports it by an immediate send. The first round warms up.
static absl::StatusOr<double> Stream(const Scenario& machine, NodeId from, NodeId to,
                                     std::uint64_t bytes, const PerfOptions& options, bool both) {
  const std::uint64_t room = static_cast<std::uint64_t>(machine.parameters.windows.operations) - 2;
  std::uint64_t in_flight = std::min(options.in_flight, room / PacketsOf(options.format, bytes));
  if (options.format == PerfFormat::kImmediate) {
    in_flight = std::min(
        in_flight, static_cast<std::uint64_t>(machine.parameters.windows.immediate_buffers) / 2);
  }
  // For long messages two in flight are as good as 64.
  if (bytes > 0) in_flight = std::min(in_flight, std::max<std::uint64_t>(kRoundBytes / bytes, 2));
  in_flight = std::max<std::uint64_t>(in_flight, 1);
  Side a(from, to, bytes, in_flight, options.format), b(to, from, bytes, in_flight, options.format);
  for (Side* side : {&a, &b}) {
    const bool sends = both || side == &a, receives = both || side == &b;
    const std::uint64_t first = side->size();
    side->Mark();
    if (sends) {
      const std::uint64_t message = side->size();
      side->Message(false);
      side->Repeat(side->size() - message, in_flight);
    }
    if (options.format == PerfFormat::kRdma) {
      side->AwaitAll();
    } else {
      if (receives) {
        side->AwaitMessages(in_flight);
        side->Acknowledge();
      }
      if (sends) side->AwaitAcknowledgement();
      side->AwaitAll();
    }
    side->Repeat(side->size() - first, options.iterations + 1);
    side->Mark();
  }
  const auto marks = Play(machine, a, b);
  if (!marks.ok()) return marks.status();
  const Time time = marks->back() - (*marks)[1];
  const double moved = static_cast<double>(bytes * in_flight * options.iterations);
  const double messages = static_cast<double>(in_flight * options.iterations);
  return (both         ? 2 * moved
          : bytes == 0 ? messages
                       : moved) /
         (static_cast<double>(time) / static_cast<double>(kSecond));
}

absl::StatusOr<PerfPoint> MeasurePoint(const Scenario& machine, NodeId from, NodeId to,
                                       std::uint64_t bytes, const PerfOptions& options) {
  const auto trips =
      PingWindows(machine, from, to, bytes, options.iterations + 1, 0, options.format);
  if (!trips.ok()) return trips.status();
  if (options.iterations == 0) return absl::InvalidArgumentError("0 iterations; write at least 1");
  PerfPoint point;
  point.bytes = bytes;
  point.latency_min = kNever;
  for (std::size_t i = 1; i < trips->size(); ++i) {
    point.latency += (*trips)[i];
    point.latency_min = std::min(point.latency_min, (*trips)[i] / 2);
    point.latency_max = std::max(point.latency_max, (*trips)[i] / 2);
  }
  point.latency /= 2 * static_cast<Time>(options.iterations);
  const auto one = Stream(machine, from, to, bytes, options, false);
  if (!one.ok()) return one.status();
  const auto both = Stream(machine, from, to, bytes, options, true);
  if (!both.ok()) return both.status();
  point.rate = bytes == 0 ? *one : *one / static_cast<double>(bytes);
  point.bandwidth = bytes == 0 ? 0 : *one;
  point.bidirectional = bytes == 0 ? 0 : *both;
  return point;
}

}  // namespace percs
