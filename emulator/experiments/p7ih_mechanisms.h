// Mechanisms of the POWER7 node and its messages that can be taken out one at a time, which shows
// what each explains of the published figures.
#pragma once

#include "absl/types/span.h"
#include "emulator/experiments/p7ih_validation.h"

namespace percs {

struct P7ihMechanism {
  const char* name;
  const char* without;                // what the machine does instead
  void (*remove)(P7ihMachine& from);  // other parameters keep their values
};

absl::Span<const P7ihMechanism> P7ihMechanisms();

}  // namespace percs
