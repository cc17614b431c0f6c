#include "client/percsctl/scenario_options.h"

namespace percs {

void AddSettingOptions(CLI::App& app, std::vector<std::string>& settings,
                       std::optional<std::uint64_t>& seed) {
  app.add_option("--seed", seed, "Random seed; replaces the file's");
  app.add_option("--set", settings, "Change a field: path=value (repeatable)")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
}

}  // namespace percs
