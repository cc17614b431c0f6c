// The commands of a journal: where each acts, what it does, and its reply. The table is in
// commands.cc. A new command is a row of it, and an rpc with the option `command` in
// percs/v1/control.proto, from which the Control service, percsctl and the Python package have the
// rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/sim/fabric.h"
#include "google/protobuf/message.h"
#include "percs/v1/control.pb.h"

namespace percs {

// Where a command acts in a fabric of daemons.
enum class CommandScope : std::uint8_t {
  kNone,        // the record is not a command
  kManagement,  // network management alone, which tells the hubs what follows from it
  kHubs,        // all hubs
  kRun,         // the run decides who takes part (daemon/controller/run)
};
CommandScope ScopeOf(v1::JournalRecord::EventCase event);

// Checks before a command takes effect: INVALID_ARGUMENT or NOT_FOUND for names that are no part of
// this machine, RESOURCE_EXHAUSTED for a lease that is too long.
absl::Status CheckCommand(const v1::JournalRecord& record, const Fabric& fabric);
// What any command does. `fabric` has all nodes and network management, or, as the scope says, one
// of the two. `answer`: a reply of the command's method, filled unless there is an error; null
// without a caller. Errors as those of the fabric.
absl::Status ActOnFabric(const v1::JournalRecord& record, Fabric& fabric, Time at,
                         google::protobuf::Message* answer = nullptr);

// All operations of the submission at `at`, in their order. DATA_LOSS for what is no operation,
// else as Fabric::Issue.
absl::Status IssueSubmission(const v1::EndpointSubmission& submission, Fabric& fabric, Time at,
                             WindowListener* listener);

// Commands of a journal as a replay takes them, in the order of time: packets of a lost daemon that
// did not reach others by then are a command of their own.
std::vector<v1::JournalRecord> ForReplay(const std::vector<v1::JournalRecord>& commands);
SeveredHubs SeveredFromProto(const v1::SeveredHubs& message);
LostHubs LostFromProto(const v1::LostDaemon& message, Time at);
// Without what network management has for them.
void RejoinedToProto(const RejoinedHubs& rejoined, v1::RejoinedHubs* message);
RejoinedHubs RejoinedFromProto(const v1::RejoinedHubs& message);
// INVALID_ARGUMENT for nodes that do not exist.
absl::Status CheckNodes(const google::protobuf::RepeatedField<std::uint32_t>& nodes,
                        const Topology& topology);

// Of trees of one name, all but the last are deleted. NOT_FOUND names those there are.
absl::StatusOr<CauTreeId> FindTree(const std::vector<TreeStatus>& trees, const std::string& name);

}  // namespace percs
