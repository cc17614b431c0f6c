// What `status` says of a run.
#pragma once

#include "daemon/controller/run/fabric_run.h"
#include "percs/v1/control.pb.h"

namespace percs {

void FillRunStatus(const FabricRun& run, v1::StatusReply* reply);

}  // namespace percs
