// percsctl fabric reset-arbiters: what decides by turns begins anew.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {

CommandBody AddFabric(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  CLI::App* reset = app.add_subcommand(
      "reset-arbiters", "All round robin of all hubs begins anew; the next workload runs as on a fresh fabric");
  AddFabricOptions(*reset, *a);
  app.require_subcommand(1);
  return [a] {
    return WithFabric(*a, [&](FabricClient& client) {
      const auto reply = client.ResetArbiters();
      if (!reply.ok()) return FromStatus(reply.status());
      if (IsJson(a->format)) {
        fmt::print("{}\n", nlohmann::json{{"at_ps", reply->at()}}.dump(2));
      } else {
        fmt::print("arbiters reset at {}\n", FormatVirtual(reply->at()));
      }
      return Outcome::Ok();
    });
  };
}

}  // namespace percs
