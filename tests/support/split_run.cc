#include "tests/support/split_run.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"

namespace percs::test {
namespace {

constexpr Time kFarLookaheads = 64;

struct Batch {
  int from = 0, to = 0;
  Time earliest = kNever;
  Outbox box;
};

class Split {
 public:
  Split(const Scenario& scenario, const SplitOptions& options)
      : scenario_(scenario), options_(options), random_(options.seed, "split") {}

  absl::StatusOr<RunResult> Run() {
    if (absl::Status status = Build(); !status.ok()) return status;
    std::uint64_t windows = 0;
    while (true) {
      WorkLeft left;
      for (const auto& fabric : fabrics_) left += fabric->work_left();
      const Time next = Next();
      if (changes_done_ < options_.changes.size() && options_.changes[changes_done_].at <= next) {
        absl::Status status = Change(options_.changes[changes_done_++]);
        if (!status.ok()) return status;
        continue;
      }
      if (Done(left) || (scenario_.stop_at > 0 && next >= scenario_.stop_at)) break;
      if (next == kNever) return absl::FailedPreconditionError("deadlock");
      if (absl::Status status = Span(next, &windows); !status.ok()) return status;
    }
    // Credits still under way at the end count as credits.
    for (Batch& batch : in_flight_) {
      absl::Status status =
          fabrics_[static_cast<std::size_t>(batch.to)]->Accept(std::move(batch.box));
      if (!status.ok()) return status;
    }
    return Merge(windows);
  }

 private:
  absl::Status Build() {
    auto topology = Topology::Create(scenario_.topology);
    if (!topology.ok()) return topology.status();
    Placement& placement = placement_;
    placement.processes = options_.processes + 1;
    placement.manager_process = options_.processes;
    for (NodeId node = 0; node < topology->nodes(); ++node) {
      placement.process_of_node.push_back(static_cast<std::uint16_t>(
          options_.process_of
              ? options_.process_of(node)
              : static_cast<int>(node) * options_.processes / static_cast<int>(topology->nodes())));
    }
    const auto tables = Planner(*topology).Plan(Failures());
    for (placement.self = 0; placement.self < placement.processes; ++placement.self) {
      auto fabric = Fabric::Create(scenario_, placement);
      if (!fabric.ok()) return fabric.status();
      fabrics_.push_back(*std::move(fabric));
      processes_.push_back(static_cast<std::uint32_t>(placement.self));
      for (NodeId node = 0; node < topology->nodes(); ++node)
        fabrics_.back()->InstallTables(node, tables[node]);
    }
    for (std::size_t p = 0; p < fabrics_.size(); ++p) {
      fabrics_[p]->Start();
      Collect(static_cast<int>(p));
    }
    return absl::OkStatus();
  }

  bool Done(const WorkLeft& left) const {
    if (changes_done_ < options_.changes.size()) return false;
    if (options_.changes.empty()) return left.done();
    return in_flight_.empty() &&
           std::all_of(fabrics_.begin(), fabrics_.end(),
                       [](const auto& fabric) { return fabric->NextForegroundTime() == kNever; });
  }

  absl::Status Change(const SplitOptions::Change& change) {
    const auto process = static_cast<std::size_t>(change.process);
    if (change.rejoins == 0) {
      const LostHubs lost{fabrics_[process]->local_nodes(), "somebody", ++losses_, change.at};
      for (const auto& fabric : fabrics_) {
        for (const FaultAction& action : ActionsOf(lost, fabric->topology())) {
          if (absl::Status status = fabric->Inject(action); !status.ok()) return status;
        }
        fabric->Lose(lost);
      }
      dead_.insert(change.process);
      std::erase_if(in_flight_, [&](const Batch& batch) { return batch.to == change.process; });
      return absl::OkStatus();
    }
    const auto rejoined = fabrics_.back()->Readmit(change.rejoins, "somebody", change.at);
    if (!rejoined.ok()) return rejoined.status();
    placement_.self = change.process;
    auto fabric = Fabric::Create(scenario_, placement_);
    if (!fabric.ok()) return fabric.status();
    (*fabric)->Adopt(fabrics_.back()->losses());
    fabrics_[process] = *std::move(fabric);
    dead_.erase(change.process);
    for (std::size_t p = 0; p < fabrics_.size(); ++p) {
      fabrics_[p]->Rejoin(*rejoined);
      Collect(static_cast<int>(p));
    }
    return absl::OkStatus();
  }

  Time Next() const {
    Time next = kNever;
    for (const auto& fabric : fabrics_) next = std::min(next, fabric->NextEventTime());
    for (const Batch& batch : in_flight_) next = std::min(next, batch.earliest);
    return next;
  }

  // One of two kinds, by chance: all run one lookahead, or further in windows in each of which a
  // process runs as far as nothing can reach it.
  absl::Status Span(Time next, std::uint64_t* windows) {
    Time limit = kNever;
    if (changes_done_ < options_.changes.size()) limit = options_.changes[changes_done_].at;
    if (scenario_.stop_at > 0) limit = std::min(limit, scenario_.stop_at);
    const Time end = std::min(next + fabrics_[0]->lookahead(), limit);
    const Time far = std::min({next + kFarLookaheads * fabrics_[0]->lookahead(), limit,
                               fabrics_.back()->faults()->next_time()});
    if (far > end && options_.reaches_far && !scenario_.has_background() && random_.Below(2) == 0) {
      for (; next < far; next = Next(), ++*windows) {
        if (absl::Status status = Window(FarEnds(far)); !status.ok()) return status;
      }
      return absl::OkStatus();
    }
    std::vector<FaultAction> actions;
    fabrics_.back()->faults()->Run(end, &actions);
    for (const FaultAction& action : actions) {
      for (const auto& fabric : fabrics_) {
        if (absl::Status status = fabric->Inject(action); !status.ok()) return status;
      }
    }
    ++*windows;
    return Window(std::vector<Time>(fabrics_.size(), end));
  }

  // As WindowMaster has them (daemon/controller/run/window_master.h), but for credits, each of
  // which counts as an arrival.
  std::vector<Time> FarEnds(Time limit) const {
    std::vector<Time> outputs;
    for (const auto& fabric : fabrics_) outputs.push_back(fabric->EarliestOutput());
    for (const Batch& batch : in_flight_) {
      Time& output = outputs[static_cast<std::size_t>(batch.to)];
      output = std::min(output, batch.earliest + fabrics_[0]->crossing());
    }
    std::vector<Time> ends(fabrics_.size(), limit);
    for (std::size_t p = 0; p < ends.size(); ++p) {
      for (std::size_t other = 0; other < outputs.size(); ++other) {
        if (other != p) ends[p] = std::min(ends[p], outputs[other]);
      }
    }
    return ends;
  }

  // Each process up to its own time.
  absl::Status Window(const std::vector<Time>& ends) {
    // Only what this window needs has to be in; of the rest, chance decides.
    for (std::size_t i = in_flight_.size(); i > 1; --i) {
      std::swap(in_flight_[i - 1], in_flight_[random_.Below(static_cast<std::uint32_t>(i))]);
    }
    std::vector<Batch> later;
    for (Batch& batch : in_flight_) {
      if (batch.earliest >= ends[static_cast<std::size_t>(batch.to)] && random_.Below(2) == 0) {
        later.push_back(std::move(batch));
        continue;
      }
      absl::Status status =
          fabrics_[static_cast<std::size_t>(batch.to)]->Accept(std::move(batch.box));
      if (!status.ok()) return status;
    }
    in_flight_ = std::move(later);
    for (std::size_t p = 0; p < fabrics_.size(); ++p) {
      RunTo(*fabrics_[p], ends[p]);
      Collect(static_cast<int>(p));
    }
    return absl::OkStatus();
  }

  // Not further than an answer to what it sends may come.
  void RunTo(Fabric& fabric, Time end) const {
    for (; fabric.now() < end; end = fabric.WindowReach(end, processes_)) {
      const Time next = std::clamp(fabric.NextEventTime(), fabric.now(), end);
      fabric.RunWindow(std::min(end, next + fabric.lookahead()));
    }
  }

  void Collect(int from) {
    for (int to = 0; to < static_cast<int>(fabrics_.size()); ++to) {
      Outbox& box = fabrics_[static_cast<std::size_t>(from)]->outbox(to);
      if (box.empty()) continue;
      if (options_.tamper) options_.tamper(from, to, box);
      if (dead_.contains(to)) {
        box.Clear();
        continue;
      }
      Batch batch{from, to, box.EarliestArrival(), std::move(box)};
      box = Outbox();
      in_flight_.push_back(std::move(batch));
    }
  }

  RunResult Merge(std::uint64_t windows) {
    std::vector<NodeResult> nodes;
    for (const auto& fabric : fabrics_) {
      for (NodeId node : fabric->local_nodes()) nodes.push_back(fabric->Result(node));
    }
    RunResult result =
        MergeResults(scenario_, fabrics_[0]->topology(), std::move(nodes),
                     fabrics_.back()->reroutes(), windows, fabrics_.back()->losses());
    result.trees = fabrics_.back()->trees();
    result.faults = fabrics_.back()->faults()->List();
    return result;
  }

  const Scenario& scenario_;
  const SplitOptions& options_;
  RandomStream random_;
  Placement placement_;
  std::vector<std::uint32_t> processes_;  // all of them
  std::size_t changes_done_ = 0;
  std::uint32_t losses_ = 0;
  std::set<int> dead_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;
  std::vector<Batch> in_flight_;
};

}  // namespace

absl::StatusOr<RunResult> SplitRun(const Scenario& scenario, const SplitOptions& options) {
  return Split(scenario, options).Run();
}

}  // namespace percs::test
