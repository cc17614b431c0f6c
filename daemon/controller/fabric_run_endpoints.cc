// The part of FabricRun that has to do with programs outside (docs/endpoint.md): their operations
// become commands, and virtual time waits for those that want it to.
//
// A daemon reports what programs ask for, and how many of them owe their next call -> when none
// does, all that was asked for is journalled and takes effect at the end of the last window -> the
// daemons of the hubs are granted it.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/controller/fabric_run.h"
#include "emulator/scenario/window_operation.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace percs {
namespace {

constexpr std::uint64_t kReportsNotKept = 128;

// Of one hub, what takes effect first: reservations of numbered windows before those of any,
// whatever reached the controller first, so that exclusive programs that name their windows have
// one result.
auto OrderOf(const v1::EndpointSubmission& submission) {
  return std::make_tuple(submission.node(), submission.window(), submission.program(),
                         submission.number());
}

}  // namespace

void FabricRun::OnEndpoints(std::uint32_t process, v1::EndpointReport& report) {
  if (report.run() != number_ || phase_ == Phase::kEnded || master_.lost(static_cast<int>(process)))
    return;
  Endpoints& endpoints = endpoints_[process];
  for (const v1::EndpointSubmission& submission : report.submissions()) {
    if (submission.node() >= topology().hubs() ||
        placement_.process_of_node[submission.node()] != process) {
      return Fail(absl::InvalidArgumentError(
          fmt::format("process {} has operations for node {}, which it does not have", process,
                      submission.node())));
    }
  }
  v1::EndpointReport& last = endpoints.last;
  last.set_attached(report.attached());
  last.set_owing(report.owing());
  last.set_arrived(report.arrived());
  for (v1::EndpointSubmission& submission : *report.mutable_submissions()) {
    // The journal had it when the controller before this one died, and the daemon did not know.
    if (submission.number() <= endpoints.taken) continue;
    submission.set_process(process);
    last.add_submissions()->Swap(&submission);
  }
  // Nothing is kept for each of these: until something else is, the daemon has them, and says them
  // again. But it can have only so many.
  if (++reports_not_kept_ % kReportsNotKept == 0) touched_ = true;
  FollowHold();
}

void FabricRun::TakeSubmissions(Time boundary) {
  if (HeldByPrograms()) return;
  std::vector<v1::EndpointSubmission> taken;
  for (Endpoints& endpoints : endpoints_) {
    for (v1::EndpointSubmission& submission : *endpoints.last.mutable_submissions()) {
      if (submission.number() > endpoints.taken) taken.push_back(std::move(submission));
    }
    endpoints.last.clear_submissions();
  }
  std::sort(taken.begin(), taken.end(),
            [](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
  for (v1::EndpointSubmission& submission : taken) {
    Command command;
    command.done = [this, process = submission.process(),
                    number = submission.number()](absl::StatusOr<Time> at) {
      if (!at.ok()) RefuseSubmission(process, number, at.status());
    };
    command.record.mutable_endpoint()->Swap(&submission);
    commands_.push_back(std::move(command));
  }
  if (!taken.empty()) TakeCommands(boundary);
}

// Live ones the daemon has; those of a replay come with it.
absl::StatusOr<Time> FabricRun::TakeSubmission(const Command& command, Time boundary) {
  const v1::EndpointSubmission& submission = command.record.endpoint();
  const std::uint32_t process = placement_.process_of_node[submission.node()];
  if (submission.has_process()) {
    endpoints_[process].taken = std::max(endpoints_[process].taken, submission.number());
  }
  if (master_.lost(static_cast<int>(process))) return boundary;
  v1::EndpointGrant& grant = *pending_[process].add_endpoints();
  grant.set_at(boundary);
  grant.set_number(submission.number());
  if (!submission.has_process()) *grant.mutable_whole() = submission;
  master_.Wake(static_cast<int>(process), boundary);
  return boundary;
}

// It could not be journalled.
void FabricRun::RefuseSubmission(std::uint32_t process, std::uint64_t number,
                                 const absl::Status& why) {
  endpoints_[process].taken = std::max(endpoints_[process].taken, number);
  if (phase_ == Phase::kEnded || master_.lost(static_cast<int>(process))) return;
  auto message = port_->Prepare(process);
  message->mutable_endpoint_refused()->set_number(number);
  message->mutable_endpoint_refused()->set_code(static_cast<std::uint32_t>(why.raw_code()));
  message->mutable_endpoint_refused()->set_message(std::string(why.message()));
  port_->Send(process, std::move(message));
}

void FabricRun::CountPrograms() {
  programs_ = {};
  std::uint64_t arrived = 0;
  for (const Endpoints& endpoints : endpoints_) {
    programs_.attached += endpoints.last.attached();
    programs_.owing += endpoints.last.owing();
    arrived += endpoints.last.arrived();
  }
  programs_complete_ = programs_complete_ || arrived >= programs_wanted_;
  programs_.awaited = programs_complete_ || stopped_ ? 0 : programs_wanted_ - arrived;
}

// Paced virtual time does not pass while it is held.
void FabricRun::FollowHold() {
  CountPrograms();
  const bool held = HeldByPrograms();
  if (held == programs_hold_at_.has_value()) return;
  if (held) {
    programs_hold_at_ =
        held_at_.value_or(master_.now());  // not by how much of its pace has passed since
    return;
  }
  if (has_started_) pace_.Resume(Clock::now(), *programs_hold_at_);
  released_at_ = *std::exchange(programs_hold_at_, std::nullopt);
}

}  // namespace percs
