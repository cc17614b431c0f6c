// What `status` says of a controller.
#pragma once

#include "daemon/controller/controller.h"
#include "percs/v1/control.pb.h"

namespace percs {

void FillStatus(const Controller& controller, v1::StatusReply* reply) PERCS_LOCKED;

}  // namespace percs
