#include "proto/convert/result_parts.h"

#include <limits>

#include "emulator/packet/cau_types.h"
#include "fmt/format.h"

namespace percs {

void FailedToProto(const FailedMessage& failed, v1::FailedMessage* message) {
  message->set_source(failed.source);
  message->set_destination(failed.destination);
  message->set_message(failed.message);
  message->set_bytes(failed.bytes);
  message->set_reason(DropReasonName(failed.reason));
  message->set_at(failed.at);
}

absl::StatusOr<FailedMessage> FailedFromProto(const v1::FailedMessage& message) {
  for (int i = 0; i < kDropReasons; ++i) {
    const auto reason = static_cast<DropReason>(i);
    if (message.reason() != DropReasonName(reason)) continue;
    return FailedMessage{
        message.source(), message.destination(), message.message(), message.bytes(),
        reason,           message.at()};
  }
  return absl::InvalidArgumentError(fmt::format(
      "the message has drop reason \"{}\", which this version does not know", message.reason()));
}

void RankToProto(const RankResult& rank, v1::RankResult* message) {
  message->set_rank(rank.rank);
  message->set_finished(rank.finished);
  message->set_calc(rank.calc);
  message->set_overhead(rank.overhead);
  message->set_waiting(rank.waiting);
}

RankResult RankFromProto(const v1::RankResult& message) {
  return {message.rank(), message.finished(), message.calc(), message.overhead(),
          message.waiting()};
}

void ProgramToProto(const BladeProgramResult& result, v1::BladeProgramResult* message) {
  message->set_node(result.node);
  message->set_program(result.program);
  message->set_started(result.started);
  message->set_finished(result.finished);
  message->set_iterations(result.iterations);
  message->set_problem(result.problem);
}

BladeProgramResult ProgramFromProto(const v1::BladeProgramResult& message) {
  return {message.node(),     message.program(),    message.started(),
          message.finished(), message.iterations(), message.problem()};
}

void CauTaskToProto(const CauTaskResult& result, v1::CauTaskResult* message) {
  message->set_node(result.node);
  message->set_tree(result.tree);
  message->set_steps_right(result.steps_right);
  message->set_steps_wrong(result.steps_wrong);
  message->set_steps_failed(result.steps_failed);
  message->set_reason(result.reason);
  message->set_problem(result.problem);
  message->set_finished(result.finished);
}

absl::StatusOr<CauTaskResult> CauTaskFromProto(const v1::CauTaskResult& message) {
  if (message.tree() > std::numeric_limits<CauTreeId>::max()) {
    return absl::InvalidArgumentError(fmt::format("a result of tree {}; trees are 0 to {}",
                                                  message.tree(),
                                                  std::numeric_limits<CauTreeId>::max()));
  }
  CauTaskResult result;
  result.node = message.node();
  result.tree = static_cast<CauTreeId>(message.tree());
  result.steps_right = message.steps_right();
  result.steps_wrong = message.steps_wrong();
  result.steps_failed = message.steps_failed();
  result.reason = message.reason();
  result.problem = message.problem();
  result.finished = message.finished();
  return result;
}

void WindowProgramToProto(const WindowProgramResult& result, v1::WindowProgramResult* message) {
  message->set_program(result.program);
  message->set_name(result.name);
  message->set_node(result.node);
  message->set_operations(result.operations);
  message->set_wrong(result.wrong);
  message->set_received(result.received);
  message->set_problem(result.problem);
  message->set_ended(result.ended);
  message->set_finished(result.finished);
  for (const Time mark : result.marks) message->add_marks(mark);
  for (const std::uint64_t value : result.values) message->add_values(value);
}

WindowProgramResult WindowProgramFromProto(const v1::WindowProgramResult& message) {
  WindowProgramResult result;
  result.program = message.program();
  result.name = message.name();
  result.node = message.node();
  result.operations = message.operations();
  result.wrong = message.wrong();
  result.received = message.received();
  result.problem = message.problem();
  result.ended = message.ended();
  result.finished = message.finished();
  result.marks.assign(message.marks().begin(), message.marks().end());
  result.values.assign(message.values().begin(), message.values().end());
  return result;
}

void CollectiveToProto(const CollectiveResult& result, v1::TaskCollectiveResult* message) {
  message->set_tasks(result.tasks);
  message->set_iterations(result.iterations);
  message->set_total(result.total);
  message->set_fastest(result.fastest);
  message->set_slowest(result.slowest);
  message->set_wrong(result.wrong);
  for (const LevelTime& level : result.levels) {
    v1::LevelTime* to = message->add_levels();
    to->set_level(level.level);
    to->set_total(level.total);
    to->set_calls(level.calls);
  }
}

CollectiveResult CollectiveFromProto(const v1::TaskCollectiveResult& message) {
  CollectiveResult result;
  result.tasks = message.tasks();
  result.iterations = message.iterations();
  result.total = message.total();
  result.fastest = message.fastest();
  result.slowest = message.slowest();
  result.wrong = message.wrong();
  for (const v1::LevelTime& level : message.levels()) {
    result.levels.push_back({level.level(), level.total(), level.calls()});
  }
  return result;
}

}  // namespace percs
