// What the page sees of a run: one snapshot of its hubs, at the end of a window.
#include <algorithm>
#include <memory>

#include "daemon/controller/controller.h"

namespace percs {
namespace {

const NodeState* FindState(const std::vector<NodeState>& states, NodeId node) {
  const auto it = std::lower_bound(states.begin(), states.end(), node,
                                   [](const NodeState& s, NodeId n) { return s.node < n; });
  return it != states.end() && it->node == node ? &*it : nullptr;
}

}  // namespace

FabricSight Controller::SightOfRun(const FabricRun& run, const std::vector<NodeState>& states) {
  if (!seen_links_ || seen_run_ != run.number()) {
    seen_links_ = std::make_unique<SeenLinks>(run.topology());
    seen_run_ = run.number();
  }
  FabricSight sight;
  sight.run = seen_run_;
  for (const NodeState& state : states) sight.total.Add(state.stats);
  sight.places = seen_links_->places();
  sight.links = seen_links_->Look(
      run.topology(), run.scenario().parameters,
      [&states](NodeId node) {
        const NodeState* const state = FindState(states, node);
        return state == nullptr ? nullptr : &state->stats;
      },
      [&states](LinkEnd end) {
        const NodeState* const state = FindState(states, end.node);
        return state == nullptr || (state->links_up & PortBit(end.port)) != 0;
      });
  return sight;
}

void Controller::Look(const SightDone& done) {
  const LockGuard guard(lock_.mutex());
  const auto active = ActiveRun();
  if (!active.ok()) return done(active.status());
  struct Moment {
    Time virtual_time = 0;
    bool ended = false;
  };
  const auto moment = std::make_shared<Moment>();
  FabricRun* const run = *active;
  run->Look(
      [this, done, run, moment](const absl::StatusOr<std::vector<NodeState>>& states) {
        if (!states.ok()) return done(states.status());
        FabricSight sight = SightOfRun(*run, *states);
        sight.virtual_time = moment->virtual_time;
        sight.run_ended = moment->ended;
        done(std::move(sight));
      },
      [run, moment] {
        *moment = {run->virtual_time(), run->ended()};
      });
}

}  // namespace percs
