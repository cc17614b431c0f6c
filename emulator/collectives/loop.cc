#include "emulator/collectives/loop.h"

#include <algorithm>

#include "emulator/base/time.h"
#include "fmt/format.h"

namespace percs {
namespace {

// Bytes of the buffers of all tasks with content. A machine in one process holds them all.
constexpr std::uint64_t kContentMax = std::uint64_t{4} << 30;

// Calls of a task in a row that take no virtual time, because nothing in `host` costs any. All of
// them are one instant, which no window of virtual time ends and no signal interrupts.
constexpr std::uint64_t kCallsAtOnceMax = 10'000;

void SetFlag(void* flag) { *static_cast<bool*>(flag) = true; }

CollectivePattern PatternOf(const CollectiveWorkload& w) {
  return {w.operation, w.op, w.type, w.placement.tasks(), w.bytes};
}

absl::Status CheckContent(const CollectiveWorkload& workload) {
  if (!workload.verified) return absl::OkStatus();
  const CollectivePattern pattern = PatternOf(workload);
  const std::uint64_t of_task = pattern.InputBytes() + pattern.OutputBytes();
  const std::uint32_t tasks = workload.placement.tasks();
  if (of_task <= kContentMax / tasks) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "verified: {} tasks with buffers of {} bytes each are more than {} bytes of content; take "
      "fewer bytes or tasks, or lengths only (`verified: false`)",
      tasks, of_task, kContentMax));
}

absl::Status TimeDoesNotPass(std::uint32_t task, Time at) {
  return absl::FailedPreconditionError(
      fmt::format("task {} made {} calls at {}: virtual time does not pass; in "
                  "workload.collective.host, a call or a message has to cost time",
                  task, kCallsAtOnceMax, FormatTime(at)));
}

}  // namespace

void CollectiveResult::Merge(const CollectiveResult& other) {
  tasks += other.tasks;
  iterations = std::max(iterations, other.iterations);
  total += other.total;
  fastest = std::min(fastest, other.fastest);
  slowest = std::max(slowest, other.slowest);
  wrong += other.wrong;
  for (const LevelTime& theirs : other.levels) {
    const auto ours = std::find_if(levels.begin(), levels.end(),
                                   [&](const LevelTime& l) { return l.level == theirs.level; });
    if (ours == levels.end()) {
      levels.push_back(theirs);
    } else {
      ours->total += theirs.total;
      ours->calls += theirs.calls;
    }
  }
}

void CollectiveResult::Fold(DigestStream& digest) const {
  for (const std::uint64_t word :
       {tasks, iterations, static_cast<std::uint64_t>(total), static_cast<std::uint64_t>(fastest),
        static_cast<std::uint64_t>(slowest), wrong}) {
    digest.Add(word);
  }
  for (const LevelTime& level : levels) {
    digest.Add(static_cast<std::uint64_t>(level.total));
    digest.Add(level.calls);
  }
}

double CollectiveResult::Nanoseconds() const {
  return static_cast<double>(total) / static_cast<double>(tasks * iterations) / kNanosecond;
}

absl::Status CheckCollectiveWorkload(const CollectiveWorkload& workload, std::uint32_t hubs) {
  if (auto status = workload.placement.Check(hubs); !status.ok()) return status;
  if (auto status = CheckCollectiveName(workload); !status.ok()) return status;
  if (workload.iterations == 0) return absl::InvalidArgumentError("0 iterations measure nothing");
  if (workload.root >= workload.placement.tasks()) {
    return absl::InvalidArgumentError(
        fmt::format("root {}: tasks are 0 to {}", workload.root, workload.placement.tasks() - 1));
  }
  if (auto status = CheckContent(workload); !status.ok()) return status;
  const bool reduces = workload.operation == Operation::kReduce ||
                       workload.operation == Operation::kAllreduce ||
                       workload.operation == Operation::kScan;
  if (!reduces) return absl::OkStatus();
  const std::size_t element = ElementBytes(workload.op, workload.type);
  if (workload.bytes % element != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes is not a multiple of {}, the size of {}{}", workload.bytes, element,
                    IsOfPairs(workload.op) ? "a pair of " : "", TypeName(workload.type)));
  }
  if (workload.op == ReduceOp::kNop) {
    return absl::InvalidArgumentError("nop has no result to check; it is for barriers");
  }
  return CheckReduction(workload.op, workload.type);
}

CollectiveLoop::CollectiveLoop(const CollectiveWorkload& workload, HubServices& hub)
    : NodeRuntime(workload.host, workload.placement, hub),
      workload_(workload),
      pattern_(PatternOf(workload)) {
  if (UsesCauTree(workload)) UseTree(workload.cau_tree);
  for (const auto& rank : local_ranks()) collectives_.push_back(MakeCollective(workload, *rank));
  SetProgram([this](Rank& rank) { return Loop(rank); });
}

Task<> CollectiveLoop::Loop(Rank& rank) {
  Collective& collective = *collectives_[rank.local()];
  std::vector<std::uint8_t> input, output;
  if (workload_.verified) {
    input.resize(pattern_.InputBytes());
    output.resize(pattern_.OutputBytes());
  }
  const std::uint32_t tasks = placement().tasks();
  Time started = now(), last = started;
  std::uint64_t at_once = 0;
  bool done = false;
  CollectiveCall call{workload_.root, workload_.bytes, workload_.op, workload_.type,
                      nullptr,        nullptr,         SetFlag,      &done};
  if (workload_.verified) {
    call.input = input.data();
    call.output = output.data();
  }
  for (std::uint64_t i = 0; i < workload_.warm_up + workload_.iterations; ++i) {
    if (i == workload_.warm_up) started = now();
    if (workload_.rotate_root) call.root = static_cast<std::uint32_t>((workload_.root + i) % tasks);
    if (workload_.verified) pattern_.Fill(i, rank.number(), call.root, input.data(), output.data());
    done = false;
    collective.Reset(call);
    collective.Start();
    co_await rank.Until(&done);
    if (workload_.verified && !pattern_.Check(i, rank.number(), call.root, output.data()))
      ++result_.wrong;
    at_once = now() == last ? at_once + 1 : 0;
    last = now();
    if (at_once == kCallsAtOnceMax) {
      Report(TimeDoesNotPass(rank.number(), last));
      done = false;
      co_await rank.Until(&done);  // for ever
    }
  }
  const Time took = now() - started;
  collective.AddTimes(&result_);
  ++result_.tasks;
  result_.iterations = workload_.iterations;
  result_.total += took;
  result_.fastest = std::min(result_.fastest, took);
  result_.slowest = std::max(result_.slowest, took);
}

std::vector<std::string> CollectiveLoop::Blocked() const {
  std::vector<std::string> lines;
  if (!error().ok()) lines.push_back(std::string(error().message()));
  for (const auto& collective : collectives_) {
    if (std::string line = collective->Waits(); !line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace percs
