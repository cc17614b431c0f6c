// What percsctl knows of its own command line: for help, suggestions, completion and man pages.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace percs {

// Texts of options and commands broken to fit the screen.
std::shared_ptr<CLI::FormatterBase> HelpFormatter();

// In the order of their declaration, without hidden ones.
std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app);
std::vector<std::string> SubcommandNames(const CLI::App& app);
std::vector<const CLI::Option*> NamedOptionsOf(const CLI::App& app);
std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app);
// `--threads`, `-o`: all names of all options.
std::vector<std::string> OptionNames(const CLI::App& app);
// The option of that name, or nullptr.
const CLI::Option* FindOption(const CLI::App& app, const std::string& name);
// The command of that name, or nullptr.
const CLI::App* FindSubcommand(const CLI::App& app, const std::string& name);
// Whether a value follows the option.
bool TakesValue(const CLI::Option& option);
// The values that an option or positional can have, if these are few: human, json.
std::vector<std::string> ChoicesOf(const CLI::Option& option);

// What is wrong with the command line, in words: for a name that does not exist, the nearest.
std::string UsageMessage(const CLI::App& root, const CLI::ParseError& error);
// `percsctl fault create`: of the command that was meant.
std::string CommandPath(const CLI::App& root);

}  // namespace percs
