#include "client/percsctl/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/percsctl/screen.h"
#include "proto/scenario/suggest.h"

namespace percs {
namespace {

class Formatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return Fit(CLI::Formatter::make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, sub->get_display_name(true), Fit(sub->get_description()),
                             get_column_width());
    return out.str();
  }
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    constexpr std::size_t kPage = 100;  // of a file or a pipe, which have no width
    const std::size_t width = Screen::OfOutput().width > 0 ? Screen::OfOutput().width : kPage;
    const std::string footer = CLI::Formatter::make_footer(app);
    // Examples are to be copied as they are.
    if (footer.starts_with("Example")) return footer;
    for (const std::string& line : WrapWords(footer, width)) text += line + "\n";
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

 private:
  // CLI11 indents what follows a line break.
  std::string Fit(const std::string& text) const {
    const std::size_t width = Screen::OfOutput().width, column = get_column_width();
    if (width < column + 20) return text;
    return fmt::format("{}", fmt::join(WrapWords(text, width - column), "\n"));
  }
};

// The commands of the line, from percsctl on.
std::vector<const CLI::App*> Chain(const CLI::App& root) {
  std::vector<const CLI::App*> chain{&root};
  while (!chain.back()->get_subcommands().empty())
    chain.push_back(chain.back()->get_subcommands().back());
  return chain;
}

bool LooksLikeOption(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         word.find_first_not_of("-0123456789.e") != std::string::npos;
}

// The words that this command does not know; "" if it knows all.
std::string Unknown(const CLI::App& app, const CLI::App& used) {
  const std::vector<std::string> words = app.remaining();
  const bool wants_command = &app == &used && app.get_require_subcommand_min() > 0;
  // Options behind it belong to the command that was meant.
  if (wants_command && !words.empty() && !LooksLikeOption(words[0]))
    return fmt::format("no command \"{}\"{}", words[0], DidYouMean(words[0], SubcommandNames(app)));
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!LooksLikeOption(word)) continue;
    const std::string name = word.substr(0, word.find('='));
    if (&app != &used && FindOption(used, name) != nullptr) {
      return fmt::format("{} is an option of `{}`; write it after that word", name,
                         used.get_name());
    }
    return fmt::format("no option {}{}", name, DidYouMean(name, OptionNames(app)));
  }
  return "";
}

// CLI11's error for a value that is no choice or out of range, worded like errors of scenarios.
std::string InOurWords(const std::string& text) {
  constexpr std::string_view kChoices = " not in {", kRange = " not in range ", kValue = "Value ";
  const std::size_t colon = text.find(": ");
  if (colon == std::string::npos) return text;
  const std::string name = text.substr(0, colon + 2);
  std::string value = text.substr(colon + 2);
  if (const std::size_t at = value.rfind(kChoices); at != std::string::npos && text.back() == '}') {
    const std::string all = value.substr(at + kChoices.size());
    value.resize(at);
    const auto choices = CLI::detail::split(all.substr(0, all.size() - 1), ',');
    return fmt::format("{}\"{}\" is not a choice{}", name, value,
                       Suggest(value, choices, "choices"));
  }
  if (const std::size_t at = value.rfind(kRange);
      at != std::string::npos && value.starts_with(kValue)) {
    return fmt::format("{}{} is out of range; allowed: {}", name,
                       value.substr(kValue.size(), at - kValue.size()),
                       value.substr(at + kRange.size()));
  }
  return text;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> HelpFormatter() { return std::make_shared<Formatter>(); }

std::vector<const CLI::App*> SubcommandsOf(const CLI::App& app) {
  // Groups of options are commands without a name.
  return app.get_subcommands(
      [](const CLI::App* sub) { return !sub->get_group().empty() && !sub->get_name().empty(); });
}

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : SubcommandsOf(app)) names.push_back(sub->get_name());
  return names;
}

std::vector<const CLI::Option*> NamedOptionsOf(const CLI::App& app) {
  auto options = app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); })) {
    const auto more = NamedOptionsOf(*group);
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

std::vector<const CLI::Option*> PositionalsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : NamedOptionsOf(app)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  if (name.size() < 2 || name[0] != '-') return nullptr;
  for (const CLI::Option* option : NamedOptionsOf(app)) {
    if (option->check_name(name)) return option;
  }
  return nullptr;
}

const CLI::App* FindSubcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : SubcommandsOf(app)) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// A validator that lists choices writes them as {a,b} into the option's type.
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::string CommandPath(const CLI::App& root) {
  std::string path;
  for (const CLI::App* app : Chain(root)) path += (path.empty() ? "" : " ") + app->get_name();
  return path;
}

std::string UsageMessage(const CLI::App& root, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> chain = Chain(root);
  for (const CLI::App* app : chain) {
    if (const std::string text = Unknown(*app, *chain.back()); !text.empty()) return text;
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
      chain.back()->get_require_subcommand_min() > 0) {
    if (chain.size() == 1) return "name a command; `percsctl help` lists them";
    return fmt::format("name a command: {}", fmt::join(SubcommandNames(*chain.back()), ", "));
  }
  return InOurWords(error.what());
}

}  // namespace percs
