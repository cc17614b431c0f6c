// The programs of one hub that use its windows (emulator/scenario/window_program.h).
#pragma once

#include <deque>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

class WindowPrograms final : public HubWorkload {
 public:
  // Enough for the largest number of times of one step, with the step that repeats it.
  static constexpr std::uint64_t kStepsMax = 2'000'000'000;
  // Steps may take no time. After as many in one instant a program waits for kPause: else all of
  // them would be one piece of work.
  static constexpr std::uint64_t kStepsAtOnce = 10'000;
  static constexpr Time kPause = 10 * kMicrosecond;

  // INVALID_ARGUMENT for a program of a node without windows, a step that repeats what is not
  // there, or more than kStepsMax steps, repeats included.
  static absl::Status Check(const WindowWorkload& workload, const Topology& topology);

  WindowPrograms(const WindowWorkload& workload, HubServices& hub);
  ~WindowPrograms() override;
  void Start() override;
  void OnTimer(std::uint64_t program) override;
  std::vector<WindowProgramResult> window_programs() const override;
  std::vector<std::string> Blocked() const override;

 private:
  class Runner;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace percs
