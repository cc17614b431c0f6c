// Builds and routes the largest machine in one process, 512 supernodes of 32 hubs, and tells what
// that takes: as JSON, seconds and the high-water mark of resident memory. Then sends one packet
// per hub through it, which shows that it works and what a run adds.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "emulator/routing/planner.h"
#include "emulator/sim/fabric.h"

namespace percs {
namespace {

double MaxResidentMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

class Stopwatch {
 public:
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Scenario Largest() {
  Scenario scenario;
  scenario.topology = {512, 4, 8, 1};
  PatternWorkload workload;
  workload.count = 1;
  workload.load = 0;
  scenario.workload = workload;
  return scenario;
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "build_512: %s\n", what.c_str());
  return 1;
}

struct PlanTimes {
  double plan = 0, check = 0, replan_d = 0, replan_l = 0, check_failed = 0;
};

// Plans and proves all tables, then plans again for one dead D link and one dead L link.
absl::Status TimePlans(const Topology& topology, PlanTimes* times) {
  Planner planner(topology);
  Stopwatch watch;
  const auto check = [&](const Failures& failures, const TableSet& tables) {
    return CheckTables(topology, failures, tables, VcPolicy::kPosition).status();
  };
  const TableSet whole = planner.Replan({});
  times->plan = watch.Lap();
  if (absl::Status status = check({}, whole); !status.ok()) return status;
  times->check = watch.Lap();
  const Failures d{{{0, kDFirst}}, {}}, l{{{0, kDFirst}, {5, kLrFirst}}, {}};
  const TableSet without_d = planner.Replan(d);
  times->replan_d = watch.Lap();
  const TableSet without_l = planner.Replan(l);
  times->replan_l = watch.Lap();
  const absl::Status status = check(l, without_l);
  times->check_failed = watch.Lap();
  return status;
}

int Main() {
  const Scenario scenario = Largest();
  Stopwatch watch;
  const auto topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return Fail(topology.status().ToString());
  auto fabric = Fabric::Create(scenario, Placement::Single(topology->nodes()));
  if (!fabric.ok()) return Fail(fabric.status().ToString());
  const double build = watch.Lap();
  {
    const auto tables = Planner((*fabric)->topology()).Plan(Failures());
    for (NodeId node = 0; node < topology->nodes(); ++node) {
      (*fabric)->InstallTables(node, tables[node]);
    }
  }
  const double route = watch.Lap();
  const double built_mib = MaxResidentMib();

  (*fabric)->Start();
  while (!(*fabric)->work_left().done()) {
    const Time next = (*fabric)->NextEventTime();
    if (next == kNever) return Fail("the run has no event left, but packets");
    (*fabric)->RunWindow(next + (*fabric)->lookahead());
  }
  const double run = watch.Lap();
  std::uint64_t delivered = 0;
  for (NodeId node = 0; node < topology->nodes(); ++node) {
    delivered += (*fabric)->stats(node).packets_delivered;
  }
  if (delivered != topology->nodes()) {
    return Fail(fmt::format("{} of {} packets were delivered", delivered, topology->nodes()));
  }
  const double run_mib = MaxResidentMib();
  PlanTimes plan;
  if (absl::Status status = TimePlans((*fabric)->topology(), &plan); !status.ok()) {
    return Fail(status.ToString());
  }
  fmt::print(
      "{{\"hubs\": {}, \"built_mib\": {:.1f}, \"run_mib\": {:.1f}, \"build_seconds\": {:.2f}, "
      "\"route_seconds\": {:.2f}, \"run_seconds\": {:.2f}, \"packets_delivered\": {}, "
      "\"plan_seconds\": {:.2f}, \"check_seconds\": {:.2f}, \"replan_d_seconds\": {:.2f}, "
      "\"replan_l_seconds\": {:.2f}, \"check_failed_seconds\": {:.2f}}}\n",
      topology->nodes(), built_mib, run_mib, build, route, run, delivered, plan.plan, plan.check,
      plan.replan_d, plan.replan_l, plan.check_failed);
  return 0;
}

}  // namespace
}  // namespace percs

int main() { return percs::Main(); }
