// The table of percsctl's commands. A new one is a file with an Add function and a line in
// commands.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/percsctl/outcome.h"

namespace percs {

using CommandBody = std::function<Outcome()>;

struct Command {
  const char* name;
  const char* group;  // heading in `percsctl --help`
  const char* summary;
  const char* examples;  // below `percsctl NAME --help`
  // Declares the options and returns what runs once they are parsed.
  CommandBody (*add)(CLI::App& app);
};
absl::Span<const Command> Commands();

// Parses, runs and prints; returns the process's exit code.
int RunPercsctl(int argc, const char* const* argv);

// Declares all of them; one body per command, in the order of the table.
std::vector<CommandBody> DeclareCommands(CLI::App& app);

CommandBody AddRun(CLI::App& app);
CommandBody AddCheck(CLI::App& app);
CommandBody AddSchema(CLI::App& app);
CommandBody AddCollective(CLI::App& app);
CommandBody AddPerf(CLI::App& app);
CommandBody AddPing(CLI::App& app);
CommandBody AddSweep(CLI::App& app);
CommandBody AddSweep3d(CLI::App& app);
CommandBody AddMpirun(CLI::App& app);
CommandBody AddValidate(CLI::App& app);
CommandBody AddContext(CLI::App& app);
CommandBody AddCa(CLI::App& app);
CommandBody AddHelp(CLI::App& app);
CommandBody AddVersion(CLI::App& app);
CommandBody AddCompletion(CLI::App& app);
CommandBody AddUp(CLI::App& app);
CommandBody AddDown(CLI::App& app);
CommandBody AddPs(CLI::App& app);
CommandBody AddProcess(CLI::App& app);
CommandBody AddApply(CLI::App& app);
CommandBody AddStatus(CLI::App& app);
CommandBody AddResult(CLI::App& app);
CommandBody AddLinks(CLI::App& app);
CommandBody AddGraph(CLI::App& app);
CommandBody AddPlot(CLI::App& app);
CommandBody AddRoutes(CLI::App& app);
CommandBody AddFabric(CLI::App& app);
CommandBody AddFault(CLI::App& app);
CommandBody AddPause(CLI::App& app);
CommandBody AddResume(CLI::App& app);
CommandBody AddPace(CLI::App& app);
CommandBody AddStep(CLI::App& app);
CommandBody AddReplay(CLI::App& app);
CommandBody AddCheckpoint(CLI::App& app);
CommandBody AddRestore(CLI::App& app);
CommandBody AddEvents(CLI::App& app);
CommandBody AddHealth(CLI::App& app);
CommandBody AddCounters(CLI::App& app);
CommandBody AddTrace(CLI::App& app);
CommandBody AddTree(CLI::App& app);
CommandBody AddObserve(CLI::App& app);
CommandBody AddTun(CLI::App& app);
CommandBody AddStop(CLI::App& app);
CommandBody AddTop(CLI::App& app);
CommandBody AddView(CLI::App& app);

// What `percsctl version` prints for people, without the last line break.
std::string VersionText();

// `--format human|json`, the same for every command.
void AddFormatOption(CLI::App& app, std::string& format);
inline bool IsJson(const std::string& format) { return format == "json"; }

}  // namespace percs
