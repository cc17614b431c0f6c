// Commands of a journal, carried out on a fabric that is all in this process.
#pragma once

#include "absl/status/status.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/control.pb.h"

namespace percs {

// A command for network management alone: faults as resources, and trees. Errors as its own.
bool IsManagement(const v1::JournalRecord& record);
absl::Status ActOnManagement(const v1::JournalRecord& record, Fabric& manager, Time at);
// Any command. REQUIRES: `fabric` has all nodes and network management.
absl::Status ActOnFabric(const v1::JournalRecord& record, Fabric& fabric, Time at);

// Of trees of one name, all but the last are deleted. NOT_FOUND names those there are.
absl::StatusOr<CauTreeId> FindTree(const std::vector<TreeStatus>& trees, const std::string& name);

}  // namespace percs
