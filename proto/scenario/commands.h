// Commands of a journal, carried out on a fabric that is all in this process.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"

namespace percs {

// What any command does. `fabric` has all nodes and network management; for commands that concern
// network management alone (faults as resources, trees, routes), that is enough. Errors as its own.
absl::Status ActOnFabric(const v1::JournalRecord& record, Fabric& fabric, Time at);

// All operations of the submission at `at`, in their order. DATA_LOSS for what is no operation,
// else as Fabric::Issue.
absl::Status IssueSubmission(const v1::EndpointSubmission& submission, Fabric& fabric, Time at,
                             WindowListener* listener);

// Commands of a journal as a replay takes them, in the order of time: what a daemon that was lost
// had not got through to others by then is a command of its own.
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
