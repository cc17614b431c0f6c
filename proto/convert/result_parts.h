// What results of nodes and of runs have in common, as messages and back.
#pragma once

#include "absl/status/statusor.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/window_program.h"
#include "percs/v1/common.pb.h"
#include "percs/v1/windows.pb.h"

namespace percs {

void FailedToProto(const FailedMessage& failed, v1::FailedMessage* message);
// INVALID_ARGUMENT for a drop reason that this version does not know.
absl::StatusOr<FailedMessage> FailedFromProto(const v1::FailedMessage& message);
void RankToProto(const RankResult& rank, v1::RankResult* message);
RankResult RankFromProto(const v1::RankResult& message);
void ProgramToProto(const BladeProgramResult& result, v1::BladeProgramResult* message);
BladeProgramResult ProgramFromProto(const v1::BladeProgramResult& message);
void CauTaskToProto(const CauTaskResult& result, v1::CauTaskResult* message);
// INVALID_ARGUMENT for a tree beyond those that a machine can have.
absl::StatusOr<CauTaskResult> CauTaskFromProto(const v1::CauTaskResult& message);
void WindowProgramToProto(const WindowProgramResult& result, v1::WindowProgramResult* message);
WindowProgramResult WindowProgramFromProto(const v1::WindowProgramResult& message);
void CollectiveToProto(const CollectiveResult& result, v1::TaskCollectiveResult* message);
CollectiveResult CollectiveFromProto(const v1::TaskCollectiveResult& message);

// NodeResult and v1::NodeResult, or RunResult and v1::RunResult.
template <typename Result, typename Message>
void PartsToProto(const Result& result, Message* message) {
  for (const auto& part : result.failed) FailedToProto(part, message->add_failed());
  for (const auto& part : result.ranks) RankToProto(part, message->add_ranks());
  for (const auto& part : result.programs) ProgramToProto(part, message->add_programs());
  for (const auto& part : result.cau_tasks) CauTaskToProto(part, message->add_cau_tasks());
  for (const auto& part : result.window_programs)
    WindowProgramToProto(part, message->add_window_programs());
  if (!result.collective.empty())
    CollectiveToProto(result.collective, message->mutable_collective());
}

template <typename Result, typename Message>
absl::Status PartsFromProto(const Message& message, Result* result) {
  for (const auto& part : message.failed()) {
    auto failed = FailedFromProto(part);
    if (!failed.ok()) return failed.status();
    result->failed.push_back(*failed);
  }
  for (const auto& part : message.ranks()) result->ranks.push_back(RankFromProto(part));
  for (const auto& part : message.programs()) result->programs.push_back(ProgramFromProto(part));
  for (const auto& part : message.cau_tasks()) {
    auto task = CauTaskFromProto(part);
    if (!task.ok()) return task.status();
    result->cau_tasks.push_back(*std::move(task));
  }
  for (const auto& part : message.window_programs())
    result->window_programs.push_back(WindowProgramFromProto(part));
  if (message.has_collective()) result->collective = CollectiveFromProto(message.collective());
  return absl::OkStatus();
}

}  // namespace percs
