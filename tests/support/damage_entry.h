// A fault of any table's entry; a scenario file can name those of source tables only.
#pragma once

#include "emulator/scenario/fault_spec.h"
#include "fmt/format.h"

namespace percs::test {

inline FaultSpec DamageEntry(Time at, NodeId hub, TablePlace entry) {
  FaultSpec fault;
  fault.id = fmt::format("entry {} of table {} of port {} of node {}", entry.index,
                         static_cast<int>(entry.kind), entry.port, hub);
  fault.kind = FaultKind::kTableDamage;
  fault.at = at;
  fault.select.in = {hub};
  fault.entry = entry;
  return fault;
}

}  // namespace percs::test
