// percsctl help: what --help prints, also of a command that is named.
#include <fmt/format.h>

#include <memory>

#include "client/percsctl/command.h"
#include "client/percsctl/command_line.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

Outcome Help(const std::vector<std::string>& words) {
  CLI::App root;  // one that has parsed nothing: CLI11's help is that of the command it parsed
  DeclareCommands(root);
  const CLI::App* app = &root;
  std::string above;
  for (const std::string& word : words) {
    const CLI::App* sub = FindSubcommand(*app, word);
    if (sub == nullptr) {
      return Outcome::Fail(ExitCode::kUsage, fmt::format("no command \"{}\"{}", word,
                                                         DidYouMean(word, SubcommandNames(*app))));
    }
    above += (above.empty() ? "" : " ") + app->get_name();
    app = sub;
  }
  fmt::print("{}", app->help(above));
  return Outcome::Ok();
}

}  // namespace

CommandBody AddHelp(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("COMMAND", *words, "Command, and a command of it; default: all of percsctl");
  return [words] { return Help(*words); };
}

}  // namespace percs
