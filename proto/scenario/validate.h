// The checks a field can be given in its options: range, choice, presence, uniqueness. For messages
// from any file format and from the wire.
#pragma once

#include "google/protobuf/message.h"
#include "proto/scenario/errors.h"

namespace percs {

void CheckFields(const google::protobuf::Message& message, ErrorList* errors);

}  // namespace percs
