#include "proto/scenario/scenario_faults.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/base/status.h"
#include "emulator/management/fault_service.h"
#include "fmt/format.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/faults.h"
#include "proto/scenario/units.h"

namespace percs {
namespace {

class FaultBuilder {
 public:
  FaultBuilder(const v1::Scenario& message, const Topology& topology, Scenario* scenario,
               ErrorList* errors)
      : message_(message), topology_(topology), scenario_(*scenario), errors_(*errors) {}

  void Build() {
    for (int i = 0; i < message_.faults_size(); ++i) {
      const v1::Fault& from = message_.faults(i);
      if (IsBladeFault(from)) {
        BuildPartFault(from, i);
      } else {
        BuildFault(from, i);
      }
    }
    CheckCuts();
  }

 private:
  // A link that is set up or down, and its place in the file.
  struct Cut {
    FaultSpec spec;
    std::string path;
    Time at() const { return *spec.at; }
    LinkEnd link() const { return *spec.select.link; }
    bool up() const { return spec.sets == FaultSets::kMended; }
  };
  void BuildPartFault(const v1::Fault& from, int index) {
    const char* action = from.has_spe_down()             ? "spe_down"
                         : from.has_chip_link_degraded() ? "chip_link_degraded"
                                                         : "eib_ring_lost";
    const std::string path = fmt::format("faults[{}].{}", index, action);
    const auto fault = BuildBladeFault(from, topology_, &scenario_.blades);
    if (!fault.ok()) return errors_.Add(path, MessageOf(fault.status()));
    scenario_.blade_faults.push_back(*fault);
    if (absl::Status s = CheckLastBladeFault(scenario_.blade_faults, topology_); !s.ok()) {
      errors_.Add(path, MessageOf(s));
    }
  }

  // Of a field of faults[].
  static std::string ActionOf(const v1::Fault& fault) {
    return fault.GetDescriptor()->FindFieldByNumber(fault.action_case())->name();
  }

  void BuildFault(const v1::Fault& from, int index) {
    const std::string path = fmt::format("faults[{}].{}", index, ActionOf(from));
    const auto spec = BuildFaultSpec(from, topology_);
    if (!spec.ok()) return errors_.Add(path, MessageOf(spec.status()));
    if (absl::Status s = CheckFault(*spec, topology_, scenario_.parameters); !s.ok()) {
      return errors_.Add(path, MessageOf(s));
    }
    const auto targets = SelectTargets(*spec, topology_, FaultSeed(*spec, scenario_.seed));
    if (!targets.ok()) return errors_.Add(path, MessageOf(targets.status()));
    if (absl::Status s = CheckTargets(*spec, *targets, topology_, scenario_.parameters); !s.ok())
      return errors_.Add(path, MessageOf(s));
    if (spec->period > 0 && spec->repeats == 0 && spec->duration == 0 && scenario_.stop_at == 0) {
      errors_.Add(path,
                  "the fault repeats without end, so the run would never end; write `repeats` or "
                  "`duration`");
    }
    scenario_.faults.push_back(*spec);
    if (from.has_link_down() || from.has_link_up()) cuts_.push_back({*spec, path});
  }

  // A link cannot go down twice, nor come up while it is up.
  void CheckCuts() {
    std::vector<const Cut*> order;
    for (const Cut& cut : cuts_) order.push_back(&cut);
    std::stable_sort(order.begin(), order.end(),
                     [](const Cut* a, const Cut* b) { return a->at() < b->at(); });
    std::map<std::pair<NodeId, PortId>, const Cut*> last;
    for (const Cut* cut : order) {
      const auto [it, first] = last.try_emplace({cut->link().node, cut->link().port}, cut);
      const Cut* before = first ? nullptr : it->second;
      const bool was_up = first || before->up();
      if (cut->up() == was_up) {
        errors_.Add(cut->path, CutRepeats(*cut, before));
      } else if (before && before->at() == cut->at()) {
        errors_.Add(cut->path, fmt::format("{} goes down and comes up at the same time {}; put "
                                           "time between the two",
                                           topology_.LinkName(cut->link()), PrintTime(cut->at())));
      }
      it->second = cut;
    }
  }

  std::string CutRepeats(const Cut& cut, const Cut* before) const {
    const std::string since =
        before == nullptr ? "from the start" : fmt::format("since {}", PrintTime(before->at()));
    return fmt::format("{} is {} already {}; remove this fault or put a {} before it",
                       topology_.LinkName(cut.link()), cut.up() ? "up" : "down", since,
                       cut.up() ? "link_down" : "link_up");
  }

  const v1::Scenario& message_;
  const Topology& topology_;
  Scenario& scenario_;
  ErrorList& errors_;
  std::vector<Cut> cuts_;
};

}  // namespace

void BuildFaults(const v1::Scenario& message, const Topology& topology, Scenario* scenario,
                 ErrorList* errors) {
  FaultBuilder(message, topology, scenario, errors).Build();
}

}  // namespace percs
