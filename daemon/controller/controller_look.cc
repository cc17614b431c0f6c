// The page's view of a run: one snapshot of its hubs, at the end of a window.
#include <chrono>
#include <memory>

#include "daemon/controller/controller.h"
#include "daemon/page/link_status.h"

namespace percs {
FabricSight Controller::SightOfRun(const FabricRun& run, const std::vector<NodeState>& states) {
  if (!seen_links_ || seen_run_ != run.number()) {
    seen_links_ = std::make_unique<SeenLinks>(run.topology());
    seen_rows_ = std::make_unique<SeenRows>(run.topology());
    seen_run_ = run.number();
  }
  FabricSight sight;
  sight.run = seen_run_;
  for (const NodeState& state : states) sight.total.Add(state.stats);
  const auto stats = [&states](NodeId node) {
    const NodeState* const state = FindState(states, node);
    return state == nullptr ? nullptr : &state->stats;
  };
  const auto up = [&states](LinkEnd end) {
    const NodeState* const state = FindState(states, end.node);
    return state == nullptr || (state->links_up & PortBit(end.port)) != 0;
  };
  const P7ihParameters& parameters = run.scenario().parameters;
  sight.places = seen_links_->places();
  sight.hub_names = seen_links_->hubs();
  sight.hubs = seen_links_->LookAtHubs(stats, [&states](NodeId node) {
    const NodeState* const state = FindState(states, node);
    return state == nullptr ? 0 : state->first_rerouted.size();
  });
  sight.links = seen_links_->Look(run.topology(), parameters, stats, up);
  for (const NodeState& state : states) {
    if (run.topology().nodes() > kSeenNodesMax) break;
    if (!state.ranks.empty())
      sight.ranks.push_back({run.topology().NodeName(state.node), state.ranks});
    if (!state.in_flight.empty())
      sight.in_flight.push_back({run.topology().NodeName(state.node), state.in_flight});
  }
  sight.outputs = seen_rows_->outputs();
  for (int row = 0; row < seen_rows_->supernodes(); ++row)
    sight.rows.push_back(seen_rows_->Look(run.topology(), parameters, row, stats, up));
  return sight;
}

void Controller::Look(const SightDone& done) {
  const LockGuard guard(lock_.mutex());
  const auto active = ActiveRun();
  if (!active.ok()) return done(active.status());
  struct Moment {
    Time virtual_time = 0;
    bool ended = false;
    std::chrono::steady_clock::time_point since;  // wall time
  };
  const auto moment = std::make_shared<Moment>();
  FabricRun* const run = *active;
  run->Look(
      [this, done, run, moment](const absl::StatusOr<std::vector<NodeState>>& states) PERCS_LOCKED {
        if (!states.ok()) return done(states.status());
        FabricSight sight = SightOfRun(*run, *states);
        sight.virtual_time = moment->virtual_time;
        for (RowSight& row : sight.rows) row.at = sight.virtual_time;
        sight.run_ended = moment->ended;
        sight.cost = lock_.clock().Now() - moment->since;
        done(std::move(sight));
      },
      [this, run, moment] {
        *moment = {run->virtual_time(), run->ended(), lock_.clock().Now()};
      });
}

}  // namespace percs
