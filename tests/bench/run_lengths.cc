// How the engine moves flits over links: how many go in runs of more than one, and how many runs
// end before the tail of their packet. Every hub is a process of its own as far as the fabric is
// concerned, so each run crosses an outbox, where it is counted; the engine needs no counter for
// it.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulator/routing/planner.h"
#include "emulator/sim/fabric.h"
#include "tests/bench/scenarios.h"

namespace percs {
namespace {

struct Counts {
  std::uint64_t flits = 0, runs = 0;
  std::uint64_t flits_in_runs = 0;  // of more than one flit
  std::uint64_t runs_split = 0;     // that ended before the tail

  void Add(const std::vector<FlitRun>& crossing) {
    for (const FlitRun& run : crossing) {
      flits += run.count;
      ++runs;
      if (run.count > 1) flits_in_runs += run.count;
      if (!run.tail) ++runs_split;
    }
  }
};

using Fabrics = std::vector<std::unique_ptr<Fabric>>;

absl::StatusOr<Fabrics> Build(const Scenario& scenario) {
  const auto topology = Topology::Create(scenario.topology);
  if (!topology.ok()) return topology.status();
  const int hubs = static_cast<int>(topology->nodes());
  Placement placement;
  placement.processes = hubs;
  for (int i = 0; i < hubs; ++i) placement.process_of_node.push_back(static_cast<std::uint16_t>(i));
  const auto tables = Planner(*topology).Plan(Failures());
  Fabrics fabrics;
  for (placement.self = 0; placement.self < hubs; ++placement.self) {
    auto fabric = Fabric::Create(scenario, placement);
    if (!fabric.ok()) return fabric.status();
    for (NodeId node = 0; node < topology->nodes(); ++node) {
      (*fabric)->InstallTables(node, tables[node]);
    }
    (*fabric)->Start();
    fabrics.push_back(*std::move(fabric));
  }
  return fabrics;
}

absl::Status Exchange(Fabrics& fabrics, Counts* counts) {
  for (auto& from : fabrics) {
    for (std::size_t to = 0; to < fabrics.size(); ++to) {
      Outbox& outbox = from->outbox(to);
      if (outbox.empty()) continue;
      counts->Add(outbox.flits);
      if (absl::Status status = fabrics[to]->Accept(std::move(outbox)); !status.ok()) return status;
      outbox.Clear();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Counts> Run(const Scenario& scenario) {
  auto built = Build(scenario);
  if (!built.ok()) return built.status();
  Fabrics& fabrics = *built;
  Counts counts;
  while (true) {
    WorkLeft left;
    Time next = kNever;
    for (auto& fabric : fabrics) {
      left += fabric->work_left();
      next = std::min(next, fabric->NextEventTime());
    }
    if (left.done()) break;
    if (next == kNever) return absl::InternalError("no event left, but packets");
    const Time end = next + fabrics.front()->lookahead();
    for (auto& fabric : fabrics) fabric->RunWindow(end);
    if (absl::Status status = Exchange(fabrics, &counts); !status.ok()) return status;
  }
  std::uint64_t flits = 0, runs_split = 0;
  for (auto& fabric : fabrics) {
    for (NodeId node : fabric->local_nodes()) {
      for (PortId port = 0; port < kLinkPorts; ++port) {
        flits += fabric->stats(node).ports[port].sum().flits;
        runs_split += fabric->stats(node).ports[port].sum().runs_split;
      }
    }
  }
  if (flits != counts.flits || runs_split != counts.runs_split) {
    return absl::InternalError(
        fmt::format("{} flits and {} split runs crossed, the hubs counted {} and {}", counts.flits,
                    counts.runs_split, flits, runs_split));
  }
  return counts;
}

int Main(int argc, char** argv) {
  Scenario scenario;
  if (argc == 2 && std::strcmp(argv[1], "half-load") == 0) {
    scenario = bench::UniformAtHalfLoad(2048, 100 * kMicrosecond);
  } else if (argc == 2 && std::strcmp(argv[1], "tight-buffers") == 0) {
    scenario = bench::TightBuffers(500);
  } else {
    std::fprintf(stderr, "usage: run_lengths half-load | tight-buffers\n");
    return 2;
  }
  const auto counts = Run(scenario);
  if (!counts.ok()) {
    std::fprintf(stderr, "run_lengths: %s\n", counts.status().ToString().c_str());
    return 1;
  }
  fmt::print("{{\"flits\": {}, \"flits_in_runs\": {}, \"runs\": {}, \"runs_split\": {}}}\n",
             counts->flits, counts->flits_in_runs, counts->runs, counts->runs_split);
  return 0;
}

}  // namespace
}  // namespace percs

int main(int argc, char** argv) { return percs::Main(argc, argv); }
