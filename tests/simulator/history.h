// One history of a fabric in a simulated world: a controller with its state directory, two to four
// daemons and a client, which run one scenario while a seed breaks what it can. Everything that the
// processes do is the project's code: Controller, FabricRun, Membership, LossWatch, StateStore and
// JournalFile on one side, DaemonCore with SyncClient, LinkMesh and Host on the other.
//
// After each step it checks that
// - a command that was acknowledged is in what a failure of the machine would leave of the journal;
// - virtual time never goes back, neither for the controller nor for a place;
// - a window of a place is granted to one daemon only;
// - no daemon is declared lost that could have answered all the time;
// - a daemon in the place of a lost one rejoins, once nothing is broken;
// - no daemon's session has lost messages, unless the controller's machine lost power;
// - a daemon that was told its place has it, whichever controller it asks;
// and at the end that
// - the run has ended, once everything is whole again, and if it failed, for a reason there was;
// - the journal has every acknowledged command once, and none that was not asked for;
// - the journal has each loss once;
// - the digest is that of the journal's replay in one process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace percs::sim {

struct Outcome {
  std::string failure;           // empty: none
  std::uint64_t trace = 0;       // equal for equal histories
  std::vector<std::string> log;  // what was done to it, for people
  // What it had, to see that a search reaches it.
  std::uint64_t events = 0, crashes = 0, losses = 0, rejoins = 0, commands = 0;
  bool finished = false;  // with a result, not with an error
};

Outcome RunHistory(std::uint64_t seed);

}  // namespace percs::sim
