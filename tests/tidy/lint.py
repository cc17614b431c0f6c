"""clang-tidy with .clang-tidy over emulator/, daemon/, client/ and proto/, and with it clang's
thread-safety analysis: what proto/process/mutex.h and daemon/stream/process_lock.h declare about
locks. Nothing is compiled; many sources make one unit, because reading headers takes most of the
time.

    lint.py build-dev                 # a configured build of the preset "dev"
    lint.py build-dev percs_page      # one target of it
    lint.py build-dev --locks         # only the thread-safety analysis
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("emulator", "daemon", "client", "proto")
UNIT = 16
# What is wrong only about a unit: it includes sources, and they end in .cc.
NOT_OF_UNITS = "-bugprone-suspicious-include"
LOCKS = "clang-diagnostic-thread-safety*"
SHOWN = 60


def units(build):
    """(target, command, folder, sources) of each unit, without precompiled headers."""
    groups = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        command = re.sub(r" -Winvalid-pch| -fpch-preprocess| -include \S*cmake_pch\.hxx", "",
                         entry["command"])
        target = re.search(r"CMakeFiles/(\S+?)\.dir/", command)[1]
        if target.startswith("planted_"):  # the same sources again
            continue
        if "-fpermissive" in command:  # clang refuses Open MPI's internal headers
            continue
        command = re.sub(r" -o \S+ -c \S+", "", re.sub(r"^(\S*ccache )?\S+", "clang++-14", command))
        groups.setdefault((target, command, entry["directory"]), []).append(source)
    for (target, command, folder), sources in groups.items():
        for first in range(0, len(sources), UNIT):
            yield target, command, folder, sources[first:first + UNIT]


def write(chosen, out):
    """The files of the units and their compile_commands.json, both in the folder `out`."""
    files, entries = [], []
    for number, (target, command, folder, sources) in enumerate(chosen):
        file = out / f"{target}_{number}.cc"
        file.write_text("".join(f'#include "{source}"\n' for source in sources))
        files.append(file)
        entries.append({"directory": folder, "file": str(file),
                        "command": f"{command} -Wno-everything -Wthread-safety -c {file}"})
    (out / "compile_commands.json").write_text(json.dumps(entries))
    return files


def check(file, checks):
    """What clang-tidy prints about one unit."""
    headers = f"^{re.escape(str(ROOT))}/({'|'.join(FOLDERS)})/"
    return subprocess.run(["clang-tidy-14", "-quiet", "-p", str(file.parent), f"--checks={checks}",
                           f"--header-filter={headers}", str(file)],
                          capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("target", nargs="*", help="only these targets of CMake")
    parser.add_argument("--locks", action="store_true", help="only the thread-safety analysis")
    options = parser.parse_args()
    out = options.build / "lint"
    out.mkdir(exist_ok=True)
    chosen = [u for u in units(options.build) if not options.target or u[0] in options.target]
    if not chosen:
        parser.error(f"{options.build} has no such target")
    checks = f"-*,{LOCKS}" if options.locks else NOT_OF_UNITS
    files = write(chosen, out)
    runs = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, \
            open(out / "lint.log", "w", buffering=1) as log:
        for run in pool.map(lambda file: check(file, checks), files):
            log.write(run.stdout + run.stderr)
            runs.append(run)
    errors = sorted({line.replace(f"{ROOT}/", "") for run in runs
                     for line in run.stdout.splitlines() if re.search(r" (error|warning): ", line)})
    print("".join(f"{line}\n" for line in errors[:SHOWN]), end="")
    print(f"lint: {len(errors)} errors in {sum(len(unit[3]) for unit in chosen)} files; "
          f"all of it in {out / 'lint.log'}")
    return 1 if errors or any(run.returncode for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
