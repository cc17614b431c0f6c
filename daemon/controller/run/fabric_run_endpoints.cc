// The part of FabricRun for outside programs (docs/endpoint.md): their operations become commands,
// and virtual time waits for exclusive ones.
//
// A daemon reports what programs ask for, and how many of them owe their next call -> when none
// does, all that was asked for is journalled and takes effect at the end of the last window -> the
// daemons of the hubs are granted it.
#include <utility>
#include <vector>

#include "daemon/controller/run/fabric_run.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {
void FabricRun::OnEndpoints(std::uint32_t process, v1::EndpointReport& report) {
  if (report.run() != setup_.number || phase_ == Phase::kEnded || IsLost(process)) return;
  for (const v1::EndpointSubmission& submission : report.submissions()) {
    if (submission.node() >= topology().hubs() ||
        setup_.placement.process_of_node[submission.node()] != process) {
      return Fail(absl::InvalidArgumentError(
          fmt::format("process {} has operations for node {}, which it does not have", process,
                      submission.node())));
    }
  }
  if (programs_.OnReport(process, &report)) recovery_.touched = true;
  FollowHold();
}

void FabricRun::TakeSubmissions(Time boundary) {
  if (programs_.hold()) return;
  std::vector<v1::EndpointSubmission> taken = programs_.Take();
  for (v1::EndpointSubmission& submission : taken) {
    Command command;
    command.done = [this, process = submission.process(),
                    number = submission.number()](const absl::StatusOr<Time>& at) {
      if (!at.ok()) RefuseSubmission(process, number, at.status());
    };
    command.record.mutable_endpoint()->Swap(&submission);
    commands_.Add(std::move(command));
  }
  if (!taken.empty()) TakeCommands(boundary);
}

// Live ones the daemon has; those of a replay come with it.
absl::StatusOr<Time> FabricRun::TakeSubmission(const Command& command, Time boundary) {
  const v1::EndpointSubmission& submission = command.record.endpoint();
  const std::uint32_t process = setup_.placement.process_of_node[submission.node()];
  if (submission.has_process()) programs_.Taken(process, submission.number());
  if (IsLost(process)) return boundary;
  v1::EndpointGrant& grant = *pending_[process].add_endpoints();
  grant.set_at(boundary);
  grant.set_number(submission.number());
  if (!submission.has_process()) *grant.mutable_whole() = submission;
  master_.Wake(process, boundary);
  return boundary;
}

// It could not be journalled.
void FabricRun::RefuseSubmission(std::uint32_t process, std::uint64_t number,
                                 const absl::Status& why) {
  programs_.Taken(process, number);
  if (phase_ == Phase::kEnded || IsLost(process)) return;
  auto message = port_->Prepare(process);
  message->mutable_endpoint_refused()->set_number(number);
  message->mutable_endpoint_refused()->set_code(static_cast<std::uint32_t>(why.raw_code()));
  message->mutable_endpoint_refused()->set_message(std::string(why.message()));
  port_->Send(process, std::move(message));
}

void FabricRun::FollowHold() { time_.HoldForPrograms(programs_.hold(), clock_.Now()); }

}  // namespace percs
