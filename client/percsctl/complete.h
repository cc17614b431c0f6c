// What could come next on a command line, for the shells' completion. Scripts of `percsctl
// completion` ask `percsctl __complete WORD...`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace percs {

inline constexpr char kCompleteCommand[] = "__complete";
// Lines that ask the shell for its own completion of paths.
inline constexpr char kCompleteFiles[] = ":files", kCompleteFolders[] = ":folders";

// Of the words after `percsctl`; the last one, which may be empty, is incomplete. One line each:
// the whole word, and after a tab what it means. Hubs, links, faults and trees are those of the
// fabric that the line names, if it answers at once.
std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace percs
