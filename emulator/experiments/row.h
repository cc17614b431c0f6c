// One published quantity beside what the emulator gives for it; the same form for every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace percs {

enum class ValidationRole : std::uint8_t {
  kSpecified,   // the machine is built so; the row shows that it behaves so
  kCalibrated,  // parameters were set on this figure
  kPredicted,   // nothing was
};

struct ValidationRow {
  std::string id;
  std::string quantity;
  std::string published;  // empty: not known here
  double emulated = 0;
  std::string unit;
  ValidationRole role = ValidationRole::kPredicted;
  enum class Holds : std::uint8_t { kUnknown, kYes, kNo } holds = Holds::kUnknown;
};

}  // namespace percs
