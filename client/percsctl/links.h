// Links of a fabric as percsctl writes them.
#pragma once

#include <nlohmann/json.hpp>

#include "percs/v1/control.pb.h"

namespace percs {

nlohmann::json LinksJson(const v1::ListLinksReply& reply);

}  // namespace percs
