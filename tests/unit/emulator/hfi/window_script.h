// Programs of windows, written step by step, and runs of them.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/sim/run.h"
#include "tests/support/fault_runs.h"

namespace percs::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes Pattern(std::size_t size, std::uint64_t seed) { return PatternBytes(size, seed); }

inline constexpr Address kFifos = 0x10000;     // of every scripted window: its FIFOs, send first
inline constexpr Address kMemory = 0x1000000;  // ... and its memory

class Script {
 public:
  Script(NodeId node, JobKey job, std::string name = "") {
    program_.node = node;
    program_.job = job;
    program_.name = name.empty() ? "of node " + std::to_string(node) : std::move(name);
  }
  WindowProgram program() const { return program_; }

  WindowStep& Do(WindowOperation operation) {
    program_.steps.push_back({});
    program_.steps.back().operation = std::move(operation);
    return program_.steps.back();
  }
  WindowStep& Step(WindowStep::Kind kind, std::uint64_t count = 1) {
    WindowStep& step = Do({});
    step.kind = kind;
    step.count = count;
    return step;
  }
  WindowStep& Reserve(WindowId window = kAnyWindow) {
    WindowOperation op;
    op.op = WindowOp::kReserve;
    op.window = window;
    return Do(op);
  }
  WindowStep& Register(Address address, std::uint64_t bytes, ContextId context = 0,
                       bool writable = true) {
    WindowOperation op;
    op.op = WindowOp::kRegister;
    op.context = context;
    op.address = address;
    op.bytes = bytes;
    op.writable = writable;
    return Do(op);
  }
  // Of the bytes of a device.
  WindowStep& RegisterDevice(Address address, std::uint64_t bytes, int port,
                             std::uint64_t offset = 0, ContextId context = 0) {
    WindowStep& step = Register(address, bytes, context);
    step.operation.device = port;
    step.operation.device_offset = offset;
    return step;
  }
  WindowStep& Fifos(std::uint32_t send, std::uint32_t receive, ContextId context = 0) {
    Register(kFifos + context * 0x1000, (send + receive + 1) * 2048ull, context);
    WindowOperation op;
    op.op = WindowOp::kConfigure;
    op.context = context;
    op.send_fifo = {kFifos + context * 0x1000, send};
    op.receive_fifo = {kFifos + context * 0x1000 + send * 2048ull, receive};
    return Do(op);
  }
  // A window with FIFOs of 16 slots and `bytes` of memory, by job and context as the window's
  // number on its hub.
  Script& Open(WindowId window, std::uint64_t bytes, ContextId context = 0) {
    Reserve(window);
    Fifos(16, 16, context);
    if (bytes > 0) Register(kMemory, bytes, context);
    return *this;
  }
  WindowStep& Write(Address address, Bytes data, ContextId context = 0) {
    WindowOperation op;
    op.op = WindowOp::kWriteMemory;
    op.context = context;
    op.address = address;
    op.data = std::move(data);
    return Do(op);
  }
  // Reads its own memory and compares.
  WindowStep& Expect(Address address, Bytes data, ContextId context = 0) {
    WindowOperation op;
    op.op = WindowOp::kReadMemory;
    op.context = context;
    op.address = address;
    op.bytes = data.size();
    WindowStep& step = Do(op);
    step.expect_data = std::move(data);
    return step;
  }
  WindowStep& Send(WindowOp format, NodeId node, WindowId window, Bytes data) {
    WindowOperation op;
    op.op = format;
    op.node = node;
    op.peer_window = window;
    op.data = std::move(data);
    return Do(op);
  }
  WindowStep& Put(NodeId node, WindowId window, Address from, Address to, std::uint64_t bytes,
                  ContextId peer = 0) {
    WindowOperation op;
    op.op = WindowOp::kRdmaWrite;
    op.node = node;
    op.peer_window = window;
    op.address = from;
    op.peer_context = peer;
    op.peer_address = to;
    op.bytes = bytes;
    return Do(op);
  }
  WindowStep& Get(NodeId node, WindowId window, Address from, Address to, std::uint64_t bytes,
                  ContextId peer = 0) {
    WindowStep& step = Put(node, window, to, from, bytes, peer);
    step.operation.op = WindowOp::kRdmaRead;
    return step;
  }
  WindowStep& Update(NodeId node, WindowId window, std::vector<AtomicUpdate> updates,
                     ContextId peer = 0) {
    WindowOperation op;
    op.op = WindowOp::kAtomic;
    op.node = node;
    op.peer_window = window;
    op.peer_context = peer;
    op.updates = std::move(updates);
    return Do(op);
  }
  WindowStep& Fence(bool writes, bool reads) {
    WindowOperation op;
    op.op = WindowOp::kFence;
    op.fence_writes = writes;
    op.fence_reads = reads;
    return Do(op);
  }
  WindowStep& At(Time time) {
    WindowStep& step = Step(WindowStep::Kind::kAt);
    step.time = time;
    return step;
  }
  WindowStep& AwaitAll() { return Step(WindowStep::Kind::kAwaitAll); }
  WindowStep& AwaitReceived(std::uint64_t count = 1) {
    return Step(WindowStep::Kind::kAwaitReceived, count);
  }
  WindowStep& AwaitNotified(std::uint64_t count = 1) {
    return Step(WindowStep::Kind::kAwaitNotified, count);
  }
  WindowStep& Mark() { return Step(WindowStep::Kind::kMark); }
  WindowStep& Repeat(std::uint64_t steps, std::uint64_t times) {
    WindowStep& step = Step(WindowStep::Kind::kRepeat, times);
    step.steps = steps;
    return step;
  }

 private:
  WindowProgram program_;
};

inline Scenario Machine(TopologySpec topology, const std::vector<Script>& scripts) {
  Scenario scenario;
  scenario.topology = std::move(topology);
  WindowWorkload workload;
  for (const Script& script : scripts) workload.programs.push_back(script.program());
  scenario.workload = workload;
  return scenario;
}

// Everything ended, with what was expected.
inline RunResult PlayPrograms(const Scenario& scenario, const RunOptions& options = {}) {
  const auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const std::string& violation : result->violations) ADD_FAILURE() << violation;
  for (const auto& program : result->window_programs) EXPECT_TRUE(program.ended) << program.name;
  return *result;
}

inline std::uint64_t Counted(RunResult result, HfiCounter counter) {
  return result.total.Hfi(0, counter) + result.total.Hfi(1, counter);
}

}  // namespace percs::test
