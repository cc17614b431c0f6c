// percsctl completion: scripts that ask percsctl itself what could come next, so that they never
// lag behind.
#include <fmt/format.h>

#include <memory>

#include "client/percsctl/command.h"

namespace percs {
namespace {

// Bash splits words at colons and equals signs, which names of links and settings have: the line is
// split here at spaces, and what Bash takes for another word is left out of the answers.
constexpr const char* kBash = R"(# bash completion for percsctl
_percsctl() {
  local line word value before
  local -a words
  read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
  [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
  word=${words[-1]}
  before=${word%"${word##*[:=]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    value=${line%%$'\t'*}
    case $value in
      :files) compopt -o filenames; COMPREPLY+=($(compgen -f -- "${word#"$before"}")) ;;
      :folders) compopt -o filenames; COMPREPLY+=($(compgen -d -- "${word#"$before"}")) ;;
      *) COMPREPLY+=("${value#"$before"}") ;;
    esac
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[.:=[] ]]; then compopt -o nospace; fi
}
complete -F _percsctl percsctl
)";

constexpr const char* kZsh = R"(#compdef percsctl
_percsctl() {
  local line value
  local -a open closed
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    value=${line%%$'\t'*}
    case $value in
      '') ;;
      :files) _files ;;
      :folders) _files -/ ;;
      *[.:=\[]) open+=("${value//:/\\:}:${line#*$'\t'}") ;;
      *) closed+=("${value//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  ((${#open})) && _describe value open -S ''
  ((${#closed})) && _describe value closed
}
if [[ $funcstack[1] == _percsctl ]]; then _percsctl "$@"; else compdef _percsctl percsctl; fi
)";

constexpr const char* kFish = R"(# fish completion for percsctl
function __percsctl_complete
  set -l words (commandline -opc)
  set -l word (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] $word 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path $word
      case ':folders'
        __fish_complete_directories $word
      case '*'
        echo $line
    end
  end
end
complete -c percsctl -f -a '(__percsctl_complete)'
)";

}  // namespace

CommandBody AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
    return Outcome::Ok();
  };
}

}  // namespace percs
