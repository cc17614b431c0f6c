#include "daemon/controller/run/run_status.h"

#include "proto/scenario/status.h"

namespace percs {

void FillRunStatus(const FabricRun& run, v1::StatusReply* reply) {
  const WindowMaster& master = run.master();
  const PaceKeeper& pace = run.pace();
  reply->set_scenario(run.scenario().name);
  reply->set_run(run.number());
  reply->set_nodes(run.topology().nodes());
  reply->set_blades(run.topology().blades());
  reply->set_crossbars(run.topology().crossbars());
  reply->set_virtual_time(run.virtual_time());
  reply->set_windows(master.windows());
  const double wall = run.wall_seconds();
  // A run that has ended shows its average, a young run its values so far.
  const bool average = run.ended() || pace.windows_per_second() == 0;
  const double windows = static_cast<double>(master.windows() - pace.first_window());
  reply->set_windows_per_second(!average   ? pace.windows_per_second()
                                : wall > 0 ? windows / wall
                                           : 0);
  reply->set_lookahead(master.lookahead());
  reply->set_lookahead_source(run.lookahead_source());
  reply->set_epoch(run.epoch());
  reply->set_clock(pace.pacing().live ? v1::CLOCK_LIVE : v1::CLOCK_BATCH);
  reply->set_pace(pace.paced() ? pace.pacing().pace : 0);
  reply->set_pace_reached(
      !average   ? pace.pace_reached()
      : wall > 0 ? static_cast<double>(run.virtual_time() - pace.first_virtual()) / wall
                 : 0);
  if (!run.ended()) {
    reply->set_wall_behind_seconds(run.behind_seconds());
  }
  reply->set_packets_delivered(master.packets_delivered());
  reply->set_unfinished(master.left().unfinished);
  const RunPrograms::Counts& programs = run.programs();
  reply->set_programs(programs.attached);
  reply->set_programs_owing(programs.owing);
  reply->set_programs_awaited(programs.awaited);
  reply->set_wall_seconds(wall);
  ActiveFaultsToProto(run.faults().List(), run.topology(), reply);
}

}  // namespace percs
