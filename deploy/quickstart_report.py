"""Compares the results that deploy/quickstart left and says what they mean.

usage: quickstart_report.py RESULTS_FOLDER LINK_FAILURE_SCENARIO

Exit code 0 only if every digest over daemons equals the one in process, every payload was right and
the first packet took the new path before the link came back.
"""

import json
import pathlib
import re
import sys


def virtual(nanoseconds):
    if nanoseconds is None:
        return "never"
    if nanoseconds < 1e3:
        return f"{nanoseconds:.1f}ns"
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.3f}us"
    return f"{nanoseconds / 1e6:.3f}ms"


def table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def repair_time_ns(scenario_text):
    """The time of the link_up fault in the scenario file."""
    match = re.search(r"at:\s*(\d+)us,\s*link_up", scenario_text)
    if not match:
        sys.exit("quickstart_report: the scenario has no link_up fault in microseconds")
    return int(match.group(1)) * 1e3


class Checks:
    """Prints each check and remembers whether one failed."""

    def __init__(self):
        self.failed = 0

    def that(self, good, text):
        print(f"  {'ok' if good else 'NOT OK'}: {text}")
        self.failed += 0 if good else 1


def digests(results, checks):
    print("\nDigests (the same scenario gives the same digest wherever its hubs run)")
    rows = [("scenario", "in process", "over daemons", "equal")]
    for name, title in (("alltoall", "link-failure"), ("lammps-2steps", "lammps-lj-32-2steps")):
        local, remote = results[name + "-process"], results[name + "-daemons"]
        equal = local["digest"] == remote["digest"]
        rows.append((title, local["digest"], remote["digest"], "yes" if equal else "NO"))
    rows.append(("lammps-lj-32", results["lammps-process"]["digest"], "(not run)", ""))
    table(rows)
    for row in rows[1:-1]:
        checks.that(row[3] == "yes", f"{row[0]}: the same digest in process and over daemons")


def failure(results, repaired_ns, checks):
    run = results["alltoall-daemons"]
    messages, drops = run["messages"], {k: v for k, v in run["drops"].items() if v}
    print("\nWhat the cut link did (32 daemons)")
    print(f"  packets dropped: {', '.join(f'{v} {k}' for k, v in drops.items()) or 'none'}")
    print(f"  packets resent: {messages['packets_resent']}")
    for reroute in run["reroutes"]:
        cause = [l + " down" for l in reroute["down"]] + [l + " up" for l in reroute["up"]]
        steps = ("raised", "alerted", "planned", "committed")
        timeline = [f"{step} {virtual(reroute[step + '_ns'])}" for step in steps]
        timeline.append(f"first packet on the new path {virtual(reroute['first_packet_ns'])}")
        print(f"  epoch {reroute['epoch']}: {', '.join(cause)}; virtual times:"
              f" {', '.join(timeline)}")
    checks.that(sum(drops.values()) > 0, "the failure lost packets")
    checks.that(messages["delivered"] == messages["sent"] and messages["failed"] == 0,
                f"all {messages['sent']} messages arrived")
    checks.that(messages["payload_errors"] == 0 and messages["payload_bytes_verified"] > 0,
                f"{messages['payload_bytes_verified']} payload bytes verified, none wrong")
    first = run["reroutes"][0]["first_packet_ns"] if run["reroutes"] else None
    checks.that(first is not None and first < repaired_ns,
                f"the first packet took the new path at {virtual(first)}, before the link came back"
                f" at {virtual(repaired_ns)}")


def utilisation(results):
    print("\nLink load, mean / max over links, as a share of the run")
    rows = [("run", "LL", "LR", "HFI")]
    for name, run in results.items():
        use = run["link_utilisation"]
        rows.append((name,) + tuple(f"{use[c]['mean'] * 100:.1f} % / {use[c]['max'] * 100:.1f} %"
                                    for c in ("LL", "LR", "HFI")))
    table(rows)


def times(results):
    print("\nTimes")
    rows = [("run", "where", "virtual", "wall", "packets delivered", "flit-hops")]
    for name, run in results.items():
        rows.append((name, run["placement"], virtual(run["virtual_seconds"] * 1e9),
                     f"{run['wall_seconds']:.2f} s", f"{run['packets_delivered']:,}",
                     f"{run['flit_hops']:,}"))
    table(rows)


def application(results, checks):
    print("\nThe application (lammps-lj-32, 40 steps, in process)")
    ranks = results["lammps-process"]["ranks"]
    checks.that(len(ranks) == 32 and all(r["finished_ns"] for r in ranks), "all 32 ranks finished")
    if not ranks:
        return
    slowest = max(ranks, key=lambda r: r["finished_ns"])
    whole = sum(r["finished_ns"] for r in ranks)
    for key, text in (("calc_ns", "computing"), ("overhead_ns", "sending and receiving"),
                      ("waiting_ns", "waiting")):
        print(f"  {text}: {sum(r[key] for r in ranks) / whole * 100:.1f} % of all ranks' time")
    print(f"  slowest rank: {slowest['rank']}, done at {virtual(slowest['finished_ns'])} virtual")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, scenario = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    names = ("alltoall-process", "alltoall-daemons", "lammps-process", "lammps-2steps-process",
             "lammps-2steps-daemons")
    results = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    checks = Checks()
    digests(results, checks)
    failure(results, repair_time_ns(scenario.read_text()), checks)
    utilisation(results)
    application(results, checks)
    times(results)
    violations = [v for run in results.values() for v in run["violations"]]
    print()
    found = violations[0] if violations else "all held in every run"
    checks.that(not violations, f"checkers: {found}")
    print("\nAll as it should be." if checks.failed == 0 else f"\n{checks.failed} checks NOT OK.")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
