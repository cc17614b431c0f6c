// percsctl fabric reset-arbiters: what decides by turns begins again. percsctl fabric repeat: the
// workload again.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "client/percsctl/command.h"
#include "client/percsctl/fabric_options.h"
#include "client/percsctl/format.h"

namespace percs {

namespace {

template <typename Reply>
Outcome Tell(const char* what, const absl::StatusOr<Reply>& reply, bool json) {
  if (!reply.ok()) return FromStatus(reply.status());
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"at_ps", reply->at()}}.dump(2));
  } else {
    fmt::print("{} at {}\n", what, FormatVirtual(reply->at()));
  }
  return Outcome::Ok();
}

}  // namespace

CommandBody AddFabric(CLI::App& app) {
  auto a = std::make_shared<FabricOptions>();
  CLI::App* reset = app.add_subcommand("reset-arbiters",
                                       "Reset the round-robin arbiters of all hubs, so that the "
                                       "next workload runs as on a fresh fabric");
  AddFabricOptions(*reset, *a);
  CLI::App* repeat =
      app.add_subcommand("repeat", "Run the workload again in a held run that is idle");
  AddFabricOptions(*repeat, *a);
  app.require_subcommand(1);
  return [a, repeat] {
    return WithFabric(*a, [&](FabricClient& client) {
      const bool json = IsJson(a->format);
      if (repeat->parsed()) return Tell("the workload runs again", client.RepeatWorkload(), json);
      return Tell("arbiters reset", client.ResetArbiters(), json);
    });
  };
}

}  // namespace percs
