// Arbitrary text as a quantity of each kind: what is accepted prints and reads back as itself.
#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/base/check.h"
#include "proto/scenario/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using percs::Quantity;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (Quantity quantity : {Quantity::kTime, Quantity::kBytes, Quantity::kRate, Quantity::kPace}) {
    const auto value = percs::ParseQuantity(quantity, text);
    if (!value.ok()) continue;
    const auto again = percs::ParseQuantity(quantity, percs::PrintQuantity(quantity, *value));
    PERCS_CHECK(again.ok());
    PERCS_CHECK(*again == *value);
  }
  return 0;
}
