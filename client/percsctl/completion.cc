// percsctl completion: scripts made from the commands' own declarations, so that they never lag
// behind.
#include <fmt/format.h>

#include <memory>

#include "client/percsctl/command.h"

namespace percs {
namespace {

std::string Words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : SubcommandsOf(app)) names.push_back(sub->get_name());
  return names;
}

// Words that fixed-choice options take.
constexpr const char* kFormats = "human json";

std::string Bash(const CLI::App& app) {
  std::string text =
      "# bash completion for percsctl\n_percsctl() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
      "  if [[ $before == --format ]]; then\n";
  text += fmt::format("    COMPREPLY=($(compgen -W '{}' -- \"$word\")); return\n  fi\n", kFormats);
  text += "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format("    COMPREPLY=($(compgen -W '{} --help' -- \"$word\")); return\n  fi\n",
                      Words(SubcommandNames(app)));
  text += "  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* sub : SubcommandsOf(app)) {
    std::vector<std::string> words = OptionsOf(*sub);
    for (const std::string& name : SubcommandNames(*sub)) words.push_back(name);
    if (sub->get_name() == "completion") words.insert(words.end(), {"bash", "zsh", "fish"});
    text += fmt::format("    {}) words='{}' ;;\n", sub->get_name(), Words(words));
  }
  text +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "  if [[ $word != -* ]]; then COMPREPLY+=($(compgen -f -- \"$word\")); fi\n"
      "}\ncomplete -o filenames -F _percsctl percsctl\n";
  return text;
}

std::string Quoted(std::string text) {
  for (std::size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 4)
    text.replace(i, 1, "'\\''");
  return "'" + text + "'";
}

std::string Zsh(const CLI::App& app) {
  std::string text = "#compdef percsctl\n_percsctl() {\n  local -a commands\n  commands=(\n";
  for (const CLI::App* sub : SubcommandsOf(app)) {
    text += fmt::format("    {}\n", Quoted(sub->get_name() + ":" + sub->get_description()));
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
      "  if [[ $words[CURRENT-1] == --format ]]; then compadd human json; return; fi\n"
      "  case $words[2] in\n";
  for (const CLI::App* sub : SubcommandsOf(app)) {
    std::vector<std::string> words = OptionsOf(*sub);
    for (const std::string& name : SubcommandNames(*sub)) words.push_back(name);
    if (sub->get_name() == "completion") words.insert(words.end(), {"bash", "zsh", "fish"});
    text += fmt::format("    {}) compadd -- {} ;;\n", sub->get_name(), Words(words));
  }
  text +=
      "  esac\n  [[ $words[CURRENT] == -* ]] || _files\n}\n"
      "if [[ $funcstack[1] == _percsctl ]]; then _percsctl; else compdef _percsctl percsctl; fi\n";
  return text;
}

std::string Fish(const CLI::App& app) {
  std::string text = "# fish completion for percsctl\n";
  for (const CLI::App* sub : SubcommandsOf(app)) {
    text += fmt::format("complete -c percsctl -n __fish_use_subcommand -f -a {} -d {}\n",
                        sub->get_name(), Quoted(sub->get_description()));
    const std::string here =
        fmt::format("complete -c percsctl -n '__fish_seen_subcommand_from {}'", sub->get_name());
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string choices = name == "format" ? fmt::format(" -x -a '{}'", kFormats) : "";
        text += fmt::format("{} -l {} -d {}{}\n", here, name, Quoted(option->get_description()),
                            choices);
      }
    }
    std::vector<std::string> words = SubcommandNames(*sub);
    if (sub->get_name() == "completion") words = {"bash", "zsh", "fish"};
    if (!words.empty()) text += fmt::format("{} -a '{}'\n", here, Words(words));
  }
  return text;
}

}  // namespace

CommandBody AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, root = app.get_parent()] {
    const std::string text = *shell == "bash"  ? Bash(*root)
                             : *shell == "zsh" ? Zsh(*root)
                                               : Fish(*root);
    fmt::print("{}", text);
    return Outcome::Ok();
  };
}

}  // namespace percs
