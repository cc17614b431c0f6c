// What the command line may change in a scenario file, for every command that reads one.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace percs {

// --seed and --set; LoadScenario (client/lib/scenario_file.h) takes both.
void AddSettingOptions(CLI::App& app, std::vector<std::string>& settings,
                       std::optional<std::uint64_t>& seed);

}  // namespace percs
