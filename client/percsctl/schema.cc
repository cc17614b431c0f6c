// percsctl schema: the JSON Schema of scenario files.
#include <fmt/format.h>

#include "client/percsctl/command.h"
#include "proto/scenario/describe.h"

namespace percs {

CommandBody AddSchema(CLI::App&) {
  return [] {
    fmt::print("{}", JsonSchema());
    return Outcome::Ok();
  };
}

}  // namespace percs
