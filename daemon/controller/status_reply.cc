#include "daemon/controller/status_reply.h"

#include <unistd.h>

#include <algorithm>

#include "daemon/controller/run/run_status.h"
#include "proto/process/version.h"

namespace percs {
namespace {

// Which nodes of the run the process has: `here` of them, from `first` on.
void FillNodes(const FabricRun& run, std::uint64_t first, std::uint64_t here,
               v1::ProcessStatus* process) {
  const std::uint64_t hubs = run.topology().hubs();
  const std::uint64_t end = first + here, blades_end = hubs + run.topology().blades();
  process->set_nodes(here);
  process->set_blades(std::clamp(blades_end, first, end) - std::clamp(hubs, first, end));
  process->set_crossbars(end - std::clamp(blades_end, first, end));
  if (const RejoinedHubs* rejoined = here > 0 ? run.Rejoined(process->process()) : nullptr) {
    process->set_incarnation(rejoined->incarnation);
    process->set_rejoined_at(rejoined->at);
  }
  process->set_windows(run.master().windows_of(process->process()));
}

void FillProcess(const Controller& controller, std::uint32_t place, const Member& member,
                 v1::ProcessStatus* process) PERCS_LOCKED {
  process->set_process(place);
  process->set_name(member.name());
  process->set_pid(member.pid());
  process->set_link_address(member.link_address());
  process->set_metrics_address(member.metrics_address());
  process->set_connected(member.connected());
  process->set_reconnects(controller.ReconnectsOf(place));
  if (const auto silence = controller.loss_watch().Missing(place)) {
    process->set_wall_missing_seconds(WallSeconds(silence->time));
    if (silence->left) process->set_wall_lost_in_seconds(WallSeconds(*silence->left));
  }
}

}  // namespace

void FillStatus(const Controller& controller, v1::StatusReply* reply) {
  const FabricRun* run = controller.run();
  const Membership& membership = controller.membership();
  *reply->mutable_versions() = OurVersions();
  reply->set_state(controller.state());
  reply->set_pid(static_cast<std::uint32_t>(getpid()));
  reply->set_daemons_expected(membership.places());
  absl::Status trouble = controller.storage();
  if (run) trouble.Update(run->not_journalled());
  reply->set_error(trouble.ok() ? controller.last_error() : std::string(trouble.message()));
  if (run) reply->set_waits_for(std::string(run->Waiting().message()));
  std::uint64_t first = 0;
  for (std::uint32_t p = 0; p < membership.places(); ++p) {
    const std::uint64_t nodes =
        run ? static_cast<std::uint64_t>(std::count(run->placement().process_of_node.begin(),
                                                    run->placement().process_of_node.end(), p))
            : 0;
    if (const Member* member = membership.member(p)) {
      v1::ProcessStatus* process = reply->add_processes();
      FillProcess(controller, p, *member, process);
      process->set_first_node(first);
      // A daemon that took the place of a lost one is not part of this run.
      if (run) FillNodes(*run, first, run->master().IsLost(p) ? 0 : nodes, process);
    }
    first += nodes;
  }
  if (run) FillRunStatus(*run, reply);
}

}  // namespace percs
