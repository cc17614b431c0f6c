"""Tells races of ours among the thread sanitizer's reports from those it makes up because it cannot
look into Debian's gRPC, protobuf and Abseil, which are not built with it and whose locks it misses.

An access is a library's when the innermost frame that is not the runtime's, the C++ library's or an
accessor's of a generated message is a library's. A report is explained when
  - one of its two accesses is a library's: it handed the bytes over, unseen how; or
  - one is the allocation of an object and the other its use in a call that comes straight from a
    library: the object went through the library's hands; or
  - one is a library's deletion of an object and the other a call of the same object that comes
    straight from a library, as gRPC's of an interceptor: it deletes what it calls no more; or
  - one is the making of an object and the other takes its lock in a call that a library makes: as
    the second; or
  - one gives up a share of a library's object and the other deletes that: the library gave up the
    last share, unseen.
Everything else is ours. `tsan_reports.py FILE...` prints those and fails if there are any.
"""

import pathlib
import re
import sys

# A file of ours has its path in the tree, which a compiler cache may have seen from a build folder.
FRAME = re.compile(r"^\s+#\d+ (?P<function>.*?) (?:\.\./)*(?P<file>\S+?)(?::\d+){0,2} "
                   r"\((?P<module>[^()]+)\+0x[0-9a-f]+\)$")
ACCESS = re.compile(r"(?i)^  (?:previous )?(?:atomic )?(?:write|read) of size")
OURS = ("daemon/", "emulator/", "client/", "proto/", "tests/")
LIBRARY_HEADERS = ("/usr/include/grpc", "/usr/include/google/", "/usr/include/absl/")


def frames(paragraph):
    return [m.groupdict() for m in map(FRAME.match, paragraph.splitlines()) if m]


def owner(frame):
    """`ours`, `library`, or None for what only passes a call on."""
    file, function = frame["file"], frame["function"]
    if file.startswith(OURS):
        return "ours"
    if ".pb.h" in file or "/include/c++/" in file or "libsanitizer" in file:
        return None
    if ".pb.cc" in file or file.startswith(LIBRARY_HEADERS):
        return "library"
    if ".so" in frame["module"]:
        return None if "libtsan" in frame["module"] or "libstdc++" in frame["module"] else "library"
    return "ours" if function.startswith("percs::") else None


def owners(stack):
    return [who for who in map(owner, stack) if who]


def allocates(stack):
    return bool(stack) and stack[0]["function"].startswith("operator new")


def makes(stack):
    """Allocates an object, or its constructor writes it."""
    return allocates(stack) or bool(stack) and \
        bool(re.search(r"\b(\w+)::\1\(", stack[0]["function"]))


def locks(stack):
    return bool(stack) and stack[0]["function"] == "pthread_mutex_lock"


def shares_of_library(stack):
    return bool(stack) and stack[0]["function"].startswith("__gnu_cxx::__exchange_and_add") and \
        any(frame["function"].startswith("std::shared_ptr<grpc::") for frame in stack)


def deletes(stack):
    return bool(stack) and stack[0]["function"].startswith("operator delete")


def called(stack):
    """Frames of ours above the first one of a library; none if there is no library."""
    found = []
    for frame, who in ((frame, owner(frame)) for frame in stack):
        if who == "library":
            return found
        if who == "ours":
            found.append(frame)
    return []


def deleted_by_library(deletion, use):
    def units(stack):
        return {pathlib.PurePath(frame["file"]).with_suffix("") for frame in called(stack)}
    return bool(called(deletion)) and units(deletion) == units(use) and \
        all("~" in frame["function"] for frame in called(deletion))


def explained(report):
    paragraphs = report.split("\n\n")
    accesses = [frames(p) for p in paragraphs
                if any(map(ACCESS.match, p.splitlines()[:3]))]
    if len(accesses) != 2:  # no race: a leaked thread, a misused lock
        first = owners(frames(report))
        return first[:1] == ["library"]
    who = [owners(stack) for stack in accesses]
    if any(w[:1] != ["ours"] for w in who):
        return True
    return any(allocates(accesses[i]) and who[1 - i][1:2] == ["library"] or
               deleted_by_library(accesses[i], accesses[1 - i]) or
               makes(accesses[i]) and locks(accesses[1 - i]) and called(accesses[1 - i]) or
               shares_of_library(accesses[i]) and deletes(accesses[1 - i]) for i in (0, 1))


def reports(text):
    return [part.strip("\n") for part in re.split(r"(?m)^={18}$", text)
            if "WARNING: ThreadSanitizer" in part]


def ours(text):
    return [report for report in reports(text) if not explained(report)]


def main():
    found, all_of_them = [], 0
    for name in sys.argv[1:]:
        with open(name, errors="replace") as file:
            text = file.read()
        found += ours(text)
        all_of_them += len(reports(text))
    print("\n\n".join(found))
    print(f"{all_of_them} reports, {len(found)} of them ours")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
