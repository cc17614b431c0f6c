// Arbitrary bytes as a hub's route tables. What is accepted is complete and reads back the same
// from what it writes; what is refused says at which byte.
#include <cstddef>
#include <cstdint>

#include "emulator/base/check.h"
#include "emulator/routing/route_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto hub = percs::HubTables::Parse({data, size});
  if (!hub.ok()) {
    PERCS_CHECK(hub.status().message().find("route tables, byte ") == 0);
    return 0;
  }
  for (const auto& table : hub->port_direct) PERCS_CHECK(table != nullptr);
  const std::string bytes = hub->Serialize();
  const auto again =
      percs::HubTables::Parse({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  PERCS_CHECK(again.ok());
  PERCS_CHECK(again->Serialize() == bytes);
  return 0;
}
