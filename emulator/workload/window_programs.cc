#include "emulator/workload/window_programs.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace percs {

namespace {

// How many steps the program goes through, repeats of repeats included: `before[i]` before step i
// for the first time. Stops counting above kStepsMax.
std::uint64_t StepsOfRun(const WindowProgram& program) {
  std::vector<std::uint64_t> before = {0};
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const WindowStep& step = program.steps[i];
    std::uint64_t passed = before[i] + 1;
    if (step.kind == WindowStep::Kind::kRepeat)
      passed += (step.count - 1) * (before[i] - before[i - step.steps] + 1);
    before.push_back(passed);
    if (passed > WindowPrograms::kStepsMax) break;
  }
  return before.back();
}

}  // namespace

class WindowPrograms::Runner final : public WindowListener {
 public:
  Runner(const WindowProgram& program, std::uint32_t number, std::uint64_t timer, HubServices& hub)
      : program_(program), hub_(hub), timer_(timer), repeats_(program.steps.size()) {
    result_.program = number;
    result_.name = program.name;
    result_.node = program.node;
  }

  void Start() {
    ++hub_.context().work->unfinished;
    Run();
  }

  void OnTimer() {
    running_timer_ = false;
    if (!std::exchange(pauses_, false)) ++step_;
    Run();
  }

  void OnWindowEvent(const WindowEvent& event) override {
    switch (event.kind) {
      case WindowEvent::Kind::kCompletion:
        OnCompletion(event);
        break;
      case WindowEvent::Kind::kReceived:
        ++result_.received;
        received_.push_back(event);
        break;
      case WindowEvent::Kind::kNotification:
        ++notified_;
        break;
    }
    if (!running_timer_) Run();
  }

  const WindowProgramResult& result() const { return result_; }
  std::string Blocked() const {
    return fmt::format("window program {} of {} is at its step {} of {}", program_.name,
                       hub_.context().topology->NodeName(program_.node), step_ + 1,
                       program_.steps.size());
  }

 private:
  struct Open {
    std::size_t step = 0;
    std::uint64_t id = 0;
  };

  void Run() {
    while (!result_.ended && step_ < program_.steps.size() && !Pauses() &&
           Do(program_.steps[step_])) {
    }
    if (result_.ended || step_ < program_.steps.size()) return;
    result_.ended = true;
    result_.finished = hub_.context().now;
    hub_.context().last_event = hub_.context().now;
    --hub_.context().work->unfinished;
  }

  // After too many steps in one instant. Continues by itself.
  bool Pauses() {
    const Time now = hub_.context().now;
    if (std::exchange(instant_, now) != now) steps_at_once_ = 0;
    if (++steps_at_once_ <= kStepsAtOnce) return false;
    pauses_ = running_timer_ = true;
    hub_.SetTimer(now + kPause, timer_);
    return true;
  }

  // False: it has to wait. Continues by itself.
  bool Do(const WindowStep& step) {
    switch (step.kind) {
      case WindowStep::Kind::kOperation:
        return Issue(step);
      case WindowStep::Kind::kAwaitAll:
        if (!open_.empty()) return false;
        break;
      case WindowStep::Kind::kAwaitReceived:
        if (received_.size() < step.count) return false;
        Take(step);
        break;
      case WindowStep::Kind::kAwaitNotified:
        if (notified_ < step.count) return false;
        notified_ -= step.count;
        break;
      case WindowStep::Kind::kCompute:
      case WindowStep::Kind::kAt: {
        if (running_timer_) return false;
        const Time now = hub_.context().now;
        const Time at = step.kind == WindowStep::Kind::kAt ? step.time : now + step.time;
        if (at <= now) break;
        running_timer_ = true;
        hub_.SetTimer(at, timer_);
        return false;
      }
      case WindowStep::Kind::kMark:
        result_.marks.push_back(hub_.context().now);
        break;
      case WindowStep::Kind::kRepeat:
        if (++repeats_[step_] < step.count) {
          step_ -= step.steps;
          return true;
        }
        repeats_[step_] = 0;
        break;
    }
    ++step_;
    return true;
  }

  bool Issue(const WindowStep& step) {
    if (waiting_) return false;
    WindowOperation operation = step.operation;
    operation.id = next_id_++;
    if (operation.job == 0) operation.job = program_.job;
    if (operation.window == kAnyWindow && operation.op != WindowOp::kReserve)
      operation.window = window_;
    open_.push_back({step_, operation.id});
    waiting_ = step.wait;
    hub_.windows()->Issue(std::move(operation), this);
    if (waiting_) return false;
    ++step_;
    return true;
  }

  void OnCompletion(const WindowEvent& event) {
    const auto open =
        std::find_if(open_.begin(), open_.end(), [&](const Open& o) { return o.id == event.id; });
    if (open == open_.end()) return;  // of a slot that was given back
    const WindowStep& step = program_.steps[open->step];
    const bool waited_for = waiting_ && open->step == step_ && event.id + 1 == next_id_;
    open_.erase(open);
    ++result_.operations;
    if (event.op == WindowOp::kReserve && event.status == WindowStatus::kOk) window_ = event.window;
    const bool right = event.status == step.expect || step.any_status ||
                       (step.or_ok && event.status == WindowStatus::kOk);
    if (!right) {
      Wrong(fmt::format("{} ended with {}, expected {}", WindowOpName(event.op),
                        WindowStatusName(event.status), WindowStatusName(step.expect)));
    } else if (event.status == WindowStatus::kOk) {
      Compare(step, event);
    }
    if (step.keep_values)
      result_.values.insert(result_.values.end(), event.values.begin(), event.values.end());
    if (!waited_for) return;
    waiting_ = false;
    ++step_;
  }

  void Compare(const WindowStep& step, const WindowEvent& event) {
    if (!step.expect_data.empty() && event.data != step.expect_data) {
      const auto at = std::mismatch(event.data.begin(), event.data.end(), step.expect_data.begin(),
                                    step.expect_data.end());
      Wrong(fmt::format("{} returned unexpected bytes, from byte {} of {} on",
                        WindowOpName(event.op), at.first - event.data.begin(),
                        step.expect_data.size()));
    }
    if (!step.expect_values.empty() && event.values != step.expect_values) {
      Wrong(fmt::format("an atomic returned {}, expected {}",
                        event.values.empty() ? 0 : event.values.front(),
                        step.expect_values.front()));
    }
  }

  void Take(const WindowStep& step) {
    for (std::uint64_t i = 0; i < step.count; ++i) {
      if (!step.expect_data.empty() && received_.front().data != step.expect_data)
        Wrong("a packet contained unexpected bytes");
      received_.pop_front();
    }
    if (step.keep_slots) return;
    WindowOperation give_back;
    give_back.op = WindowOp::kReturnSpace;
    give_back.window = window_;
    give_back.job = program_.job;
    give_back.count = static_cast<std::uint32_t>(step.count);
    give_back.id = ~std::uint64_t{0};
    hub_.windows()->Issue(std::move(give_back), this);
  }

  void Wrong(const std::string& what) {
    if (result_.wrong++ == 0) {
      result_.problem =
          fmt::format("step {} at {}: {}", step_ + 1, FormatTime(hub_.context().now), what);
    }
  }

  const WindowProgram program_;
  HubServices& hub_;
  const std::uint64_t timer_;
  std::size_t step_ = 0;
  std::vector<std::uint64_t> repeats_;  // how often a step that repeats has been passed
  std::deque<Open> open_;
  std::deque<WindowEvent> received_;
  std::uint64_t notified_ = 0, next_id_ = 1;
  WindowId window_ = kAnyWindow;
  bool waiting_ = false;             // for the operation of this step
  bool running_timer_ = false;       // likewise, for its timer
  bool pauses_ = false;              // that timer is of a pause, not of this step
  Time instant_ = -1;                // of the last step
  std::uint64_t steps_at_once_ = 0;  // in that instant
  WindowProgramResult result_;

  friend class WindowPrograms;
};

absl::Status WindowPrograms::Check(const WindowWorkload& workload, const Topology& topology) {
  for (const WindowProgram& program : workload.programs) {
    if (program.node >= topology.leaves()) {
      return absl::InvalidArgumentError(fmt::format(
          "window program {} is for {}, which has no windows; {} to {} have windows", program.name,
          program.node < topology.nodes() ? topology.NodeName(program.node)
                                          : fmt::format("node {}", program.node),
          topology.NodeName(0), topology.NodeName(topology.leaves() - 1)));
    }
    if (program.job == 0) {
      return absl::InvalidArgumentError(
          fmt::format("window program {} has job 0; write 1..65535", program.name));
    }
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const WindowStep& step = program.steps[i];
      if (step.kind != WindowStep::Kind::kRepeat ||
          (step.steps >= 1 && step.steps <= i && step.count >= 1))
        continue;
      return absl::InvalidArgumentError(
          fmt::format("step {} of window program {} repeats {} steps, but only {} precede it",
                      i + 1, program.name, step.steps, i));
    }
    if (const std::uint64_t steps = StepsOfRun(program); steps > kStepsMax) {
      return absl::InvalidArgumentError(fmt::format(
          "window program {} would go through {} steps or more, because a repeat multiplies the "
          "steps it repeats, and those of a repeat among them; at most {}",
          program.name, steps, kStepsMax));
    }
  }
  return absl::OkStatus();
}

WindowPrograms::WindowPrograms(const WindowWorkload& workload, HubServices& hub) {
  for (std::size_t i = 0; i < workload.programs.size(); ++i) {
    const WindowProgram& program = workload.programs[i];
    if (program.node != hub.context().node) continue;
    runners_.push_back(
        std::make_unique<Runner>(program, static_cast<std::uint32_t>(i), runners_.size(), hub));
  }
}

WindowPrograms::~WindowPrograms() = default;

void WindowPrograms::Start() {
  for (auto& runner : runners_) runner->Start();
}

void WindowPrograms::OnTimer(std::uint64_t program) { runners_[program]->OnTimer(); }

std::vector<WindowProgramResult> WindowPrograms::window_programs() const {
  std::vector<WindowProgramResult> results;
  for (const auto& runner : runners_) results.push_back(runner->result());
  return results;
}

std::vector<std::string> WindowPrograms::Blocked() const {
  std::vector<std::string> lines;
  for (const auto& runner : runners_) {
    if (!runner->result().ended) lines.push_back(runner->Blocked());
  }
  return lines;
}

}  // namespace percs
