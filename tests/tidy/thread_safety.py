"""clang's thread-safety analysis over daemon/, client/ and proto/: what proto/process/mutex.h and
daemon/stream/process_lock.h declare about locks. Nothing is compiled; the units are those of a
unity build, because reading gRPC's headers takes most of the time.

    thread_safety.py build-dev            # a configured build of the preset "dev"
    thread_safety.py build-dev percs_page # one target of it
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("daemon", "client", "proto")
UNIT = 24
CHECK = " -fsyntax-only -Wno-everything -Wthread-safety -Werror=thread-safety "


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
        command = re.sub(r" -o \S+ -c \S+", "", re.sub(r"^(\S*ccache )?\S+", "clang++-14", command))
        groups.setdefault((target, command, entry["directory"]), []).append(source)
    for (target, command, folder), sources in groups.items():
        for first in range(0, len(sources), UNIT):
            yield target, command, folder, sources[first:first + UNIT]


def check(number, unit, out):
    target, command, folder, sources = unit
    file = out / f"{target}_{number}.cc"
    file.write_text("".join(f'#include "{source}"\n' for source in sources))
    return subprocess.run(command + CHECK + str(file), shell=True, cwd=folder,
                          capture_output=True, text=True)


def main(build, only):
    out = build / "lint"
    out.mkdir(exist_ok=True)
    chosen = [unit for unit in units(build) if not only or unit[0] in only]
    if not chosen:
        sys.exit(f"thread_safety.py: {build} has no such target")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda pair: check(*pair, out), enumerate(chosen)))
    errors = sorted({line.replace(f"{ROOT}/", "") for run in runs
                     for line in run.stderr.splitlines() if "error:" in line})
    print("\n".join(errors[:60] + [
        f"thread safety: {len(errors)} errors in {sum(len(unit[3]) for unit in chosen)} files"]))
    return any(run.returncode for run in runs)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]))
