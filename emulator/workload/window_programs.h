// The programs of one hub that use its windows (emulator/scenario/window_program.h).
#pragma once

#include <deque>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "emulator/workload/hub_workload.h"

namespace percs {

class WindowPrograms final : public HubWorkload {
 public:
  // Steps of one program may take no time, and then all of them are one piece of work. Enough for
  // the largest number of times of one step, with the step that repeats it.
  static constexpr std::uint64_t kStepsMax = 2'000'000'000;

  // INVALID_ARGUMENT for a program of a node that is no hub, a step that repeats what is not there,
  // or more than kStepsMax steps, repeats included.
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
