#!/usr/bin/env python3
"""Prints which rooms (folders) include which, and the includes that go against the order.

The order stands in CONTRIBUTING.md, in the block that begins with ```rooms: a file includes only
from its own room and from rooms above it in that list. Exit code 1 if an include breaks the order.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rooms():
    """Folders in the order in which they may include each other: the first includes no other."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    block = re.search(r"^```rooms\n(.*?)^```", text, re.S | re.M).group(1)
    return [line.split()[0] for line in block.splitlines() if line.strip()]


def room_of(path, order):
    """The room with the longest name that holds `path`, or None."""
    fitting = [room for room in order if path.startswith(room + "/")]
    return max(fitting, key=len, default=None)


def includes(texts, order):
    """(file, included file, room, included room) of every include of another room. A file in no
    room has the room None."""
    for name, text in sorted(texts.items()):
        room = room_of(name, order)
        for target in re.findall(r'^#include "([^"]+)"', text, re.M):
            other = room_of(target, order)
            if other is not None and other != room:
                yield name, target, room, other


def against_the_order(texts, order):
    """Complaints about includes of rooms above, and about files in no room."""
    found = [f"{name}: in no room of CONTRIBUTING.md" for name in sorted(texts)
             if room_of(name, order) is None]
    for name, target, room, other in includes(texts, order):
        if room is not None and order.index(other) > order.index(room):
            found.append(f"{name}: includes {target}, but {other} is above {room}")
    return found


def sources():
    names = subprocess.run(["git", "ls-files", "emulator", "proto", "daemon", "client"], cwd=ROOT,
                           check=True, stdout=subprocess.PIPE).stdout.decode().split()
    return {name: (ROOT / name).read_text() for name in names if name.endswith((".h", ".cc"))}


def main():
    order, texts = rooms(), sources()
    arrows = collections.defaultdict(collections.Counter)
    for _, _, room, other in includes(texts, order):
        arrows[room][other] += 1
    for room in order:
        used = sorted(arrows[room].items(), key=lambda pair: order.index(pair[0]))
        print(f"{room:24} {', '.join(f'{other} {count}' for other, count in used)}")
    wrong = against_the_order(texts, order)
    print(f"{len(wrong)} against the order")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
