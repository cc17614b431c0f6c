// Arbitrary bytes as what a program outside sends to the hub of its window. What decodes is issued,
// by turns at two hubs that both have a window of one job: the run ends, nothing is out of order,
// and every operation ends exactly once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "emulator/base/check.h"
#include "emulator/sim/run.h"
#include "percs/v1/endpoint.pb.h"
#include "proto/window/endpoint_codec.h"

namespace {

constexpr int kOperationsMax = 32;
constexpr std::uint64_t kMemory = 1 << 20;

class Count : public percs::WindowListener {
 public:
  void OnWindowEvent(const percs::WindowEvent& event) override {
    if (event.kind == percs::WindowEvent::Kind::kCompletion) ++completions[event.id];
  }
  std::map<std::uint64_t, int> completions;
};

percs::TimedCommand Issue(percs::NodeId node, percs::Time at,
                          const percs::WindowOperation& operation, Count* count) {
  return {at, [=](percs::Fabric& fabric, percs::Time when) {
            return fabric.Issue(node, when, operation, count);
          }};
}

void Play(const percs::v1::FromProgram& message) {
  percs::Scenario scenario;
  scenario.topology = {1, 1, 2, 1};
  scenario.parameters.windows.registered_bytes = kMemory;
  scenario.parameters.windows_per_hfi = 2;
  Count count;
  percs::RunOptions options;
  std::uint64_t id = 0;
  bool never_ends = false;
  for (const percs::NodeId node : {0u, 1u}) {
    percs::WindowOperation reserve;
    reserve.id = ++id;
    reserve.window = 0;
    reserve.job = 1;
    options.commands.push_back(Issue(node, 0, reserve, &count));
  }
  percs::Time at = 0;
  for (int i = 0; i < std::min(message.operations_size(), kOperationsMax); ++i) {
    auto operation = percs::OperationFromProto(message.operations(i));
    if (!operation.ok()) {
      PERCS_CHECK(!operation.status().message().empty());
      continue;
    }
    operation->id = ++id;
    operation->window = 0;
    operation->job = 1;
    never_ends = never_ends || operation->op == percs::WindowOp::kIpReceive;
    at += static_cast<percs::Time>(message.operations(i).count() % 5'000'000);
    options.commands.push_back(Issue(static_cast<percs::NodeId>(i % 2), at, *operation, &count));
  }
  const auto result = percs::RunScenario(scenario, options);
  PERCS_CHECK(result.ok());
  PERCS_CHECK(result->violations.empty());
  for (const auto& [operation, times] : count.completions) PERCS_CHECK(times == 1);
  PERCS_CHECK(never_ends || count.completions.size() == id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  percs::v1::FromProgram message;
  if (message.ParseFromArray(data, static_cast<int>(size))) Play(message);
  return 0;
}
