#!/usr/bin/env python3
"""Plants bugs in copies of the sources of the control plane, each behind a switch.

    tests/simulator/plant.py OUT          writes the copies, with all bugs, into the folder OUT
    tests/simulator/plant.py --list       the bugs, with their numbers

A bug replaces a line, or several. In the copy both lines stand, and the environment's
PERCS_PLANTED=NUMBER says which bug there is; without it there is none. planted_campaign is
control_campaign made of these copies; tests/engines/test_planted_bugs.py shows that it finds each.
"""

import collections
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("daemon", "tests/simulator")

# In which file, the line as it stands there once, and what stands there instead: BUG is true if the
# bug is wanted, LINE is the line.
Change = collections.namedtuple("Change", "file line text")
# What it breaks, how, and words of the check that is to find it ("": any).
Bug = collections.namedtuple("Bug", "title changes found_by")


def bug_of(title, *rows, found_by=""):
    return Bug(title, [Change(*rows[i:i + 3]) for i in range(0, len(rows), 3)], found_by)


BUGS = [
    bug_of(
        "a disk that is full makes healthy daemons lost",
        "daemon/controller/controller_daemons.cc",
        "  rules.can_decide = storage_trouble_.ok();",
        "  rules.can_decide = BUG || storage_trouble_.ok();"),
    bug_of(
        "a window is computed in one go, and pings wait",
        "daemon/node/host.cc",
        "    if (now - begin >= kSlice) return false;",
        "    if (now - begin >= kSlice && !BUG) return false;"),
    bug_of(
        "a pause of the controller counts as silence of the daemons",
        "daemon/controller/members/loss_watch.cc",
        "  const Wall passed = rules.can_decide ? std::min(since, kLookEvery) : Wall(0);",
        "  const Wall passed = rules.can_decide"
        " ? std::min(since, BUG ? Wall(1'000'000) : kLookEvery) : Wall(0);"),
    bug_of(
        "commands are acknowledged without being journalled",
        "daemon/controller/controller.cc",
        "      absl::Status status = AppendCommands(records);",
        "      absl::Status status = BUG ? absl::OkStatus() : AppendCommands(records);"),
    bug_of(
        "messages leave before they are saved",
        "daemon/controller/controller_state.cc",
        "    store_.Begin(HasToldNews() ? Survives::kMachine : Survives::kProcess);",
        "    if (BUG) membership_.Release(); LINE"),
    bug_of(
        "what arrived during a pause of the controller is not heard before it decides",
        "daemon/controller/members/loss_watch.cc",
        "  if (late && !late_) {",
        "  if (!BUG && late && !late_) {"),
    bug_of(
        "a state that could not be saved is never saved again",
        "daemon/controller/controller_state.cc",
        "    keep_timer_.Set(kKeepAgain, [this]() PERCS_LOCKED { keeping_again_ = false; });",
        "    if (!BUG) LINE"),
    bug_of(
        "messages are acknowledged before they are saved",
        "daemon/stream/session.h",
        "  std::uint64_t keepable() const { return held_back_ ? durable_ : received_; }",
        "  std::uint64_t keepable() const { return held_back_ && !BUG ? durable_ : received_; }"),
    bug_of(
        "what was not acknowledged is not sent again on the next stream",
        "daemon/stream/session.h",
        "    unsent_ = 0;",
        "    unsent_ = BUG ? queue_.size() : 0;"),
    bug_of(
        "a message that arrives twice is acted upon twice",
        "daemon/stream/session.h",
        "    if (message.sequence() == 0 || message.sequence() <= received_) return false;",
        "    if (BUG && message.sequence() > 0 && message.sequence() <= received_) return true;"
        " LINE"),
    bug_of(
        "commands that were journalled but not saved are forgotten by the next controller",
        "daemon/controller/run/run_commands.cc",
        "  retaken_.assign(journal.begin() + static_cast<std::ptrdiff_t>(recorded_),"
        " journal.end());",
        "  if (!BUG) LINE"),
    bug_of(
        "steps of network management are not kept",
        "daemon/controller/run/fabric_run_windows.cc",
        "  manager_log_.RanWindow(commands_.recorded(), manager_->now());",
        "  if (!BUG) LINE"),
    bug_of(
        "a survivor takes in all that has arrived of a lost daemon",
        "daemon/node/host.cc",
        "  const std::uint64_t accepted ="
        " std::min(mesh_->peer(process)->session().received(), limit);",
        "  const std::uint64_t accepted = std::min(mesh_->peer(process)->session().received(),"
        " BUG ? ~std::uint64_t{0} : limit);"),
    bug_of(
        "the loss does not record what survivors lack",
        "daemon/controller/run/run_losses.cc",
        "    if (from >= boundary) continue;",
        "    if (BUG || from >= boundary) continue;"),
    bug_of(
        "a daemon that was declared lost is listened to",
        "daemon/controller/members/membership.cc",
        "  if (hello.fabric() == membership_->fabric_ && hello.incarnation() == incarnation()) {",
        "  if (hello.fabric() == membership_->fabric_ &&"
        " (BUG || hello.incarnation() == incarnation())) {"),
    bug_of(
        "the next controller asks again for a loss that was journalled",
        "daemon/controller/run/fabric_run_state.cc",
        "    if (!commands_.RetakesLossOf(loss.saved.process())) BeginLoss(loss.saved);",
        "    if (BUG || !commands_.RetakesLossOf(loss.saved.process())) BeginLoss(loss.saved);"),
    bug_of(
        "a stream that breaks is not dialled again",
        "daemon/sync/sync_client.cc",
        "    if (!has_stream()) Dial();",
        "    if (!BUG && !has_stream()) Dial();"),
    bug_of(
        "commands for the next window are not saved",
        "daemon/controller/run/fabric_run_state.cc",
        "  for (std::uint32_t p = 0; p < setup_.daemons(); ++p)"
        " *saved->add_pending() = Pending(p);",
        "  for (std::uint32_t p = 0; p < setup_.daemons(); ++p)"
        " *saved->add_pending() = BUG ? v1::WindowGrant() : Pending(p);"),
    bug_of(
        "a rejoin that the journal does not take is given up",
        "daemon/controller/run/fabric_run_rejoin.cc",
        "  if (absl::IsResourceExhausted(why) || absl::IsUnavailable(why)) {",
        "  if (!BUG && (absl::IsResourceExhausted(why) || absl::IsUnavailable(why))) {"),
    bug_of(
        "the next controller begins before commands that have taken effect",
        "daemon/controller/run/fabric_run_state.cc",
        "  if (!commands.empty()) time_.NotBefore(commands.back().at());",
        "  if (!BUG && !commands.empty()) time_.NotBefore(commands.back().at());"),
    bug_of(
        "sessions do not notice that the other side has lost messages",
        "daemon/stream/session.h",
        "    if (const std::uint64_t had = sent_ - queue_.size(); peer_received < had) {",
        "    if (const std::uint64_t had = sent_ - queue_.size(); !BUG && peer_received < had) {",
        "daemon/stream/session.h",
        "    if (number > left_) {",
        "    if (BUG && number > left_) sent_ = released_ = left_ = number; LINE",
        "daemon/stream/session.h",
        "    if (message.sequence() != received_ + 1) {",
        "    if (BUG) received_ = message.sequence() - 1; LINE",
        found_by="received a window up to"),
    bug_of(
        "a daemon runs on after it has sent something that may be answered",
        "daemon/node/host.cc",
        "    const Time end = fabric_->WindowReach(grant_.end(), grant_.waiting());",
        "    const Time reach = fabric_->WindowReach(grant_.end(), grant_.waiting());\n"
        "    const Time end = BUG ? grant_.end() : reach;"),
    bug_of(
        "a batch that the controller carried no further counts as taken in",
        "daemon/controller/run/sent_batches.h",
        "      return number == 0 ? !granted : number > accepted;",
        "      return number == 0 ? !BUG && !granted : number > accepted;"),
    bug_of(
        "of a lost daemon batches count that came after one that did not arrive",
        "daemon/node/host.cc",
        "    missing = missing || grant_.batches(i) > accepted;",
        "    missing = missing || (!BUG && grant_.batches(i) > accepted);"),
]


def planted(number, change, text):
    if text.count(change.line + "\n") != 1:
        raise ValueError(f"{change.file} must hold this line once: {change.line.strip()}")
    instead = change.text.replace("LINE", change.line.strip()).replace(
        "BUG", f"::percs::sim::Planted({number})")
    return text.replace(change.line + "\n", instead + "\n")


SWITCH = '''#pragma once
#include <cstdlib>
namespace percs::sim {
inline bool Planted(int number) {
  static const char* const text = std::getenv("PERCS_PLANTED");
  static const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted == number;
}
}  // namespace percs::sim
'''


def write(folder):
    texts = {}
    for number, bug in enumerate(BUGS, 1):
        for change in bug.changes:
            text = texts.get(change.file) or (ROOT / change.file).read_text()
            texts[change.file] = planted(number, change, text)
    for top in FOLDERS:
        for path in sorted((ROOT / top).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix not in (".h", ".cc") or path.name.startswith("main_"):
                continue
            text = path.read_text()
            if name in texts:
                text = '#include "planted_switch.h"\n' + texts[name]
            put(folder / name, text)
    put(folder / "planted_switch.h", SWITCH)


def put(path, text):
    """Only what differs, so that no more is compiled again than what has changed."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    if sys.argv[1:] == ["--list"]:
        for number, bug in enumerate(BUGS, 1):
            files = sorted({os.path.basename(change.file) for change in bug.changes})
            print(f"{number:2} {bug.title} ({', '.join(files)})")
        return 0
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    write(pathlib.Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
