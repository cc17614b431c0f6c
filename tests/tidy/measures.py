#!/usr/bin/env python3
"""Measures the house: wide classes, long files, the length of functions, lines of product code.

`measures.py` prints it for this checkout, `measures.py COMMIT` for a commit. A class may have at
most 25 data members and 40 methods of its own; one with more has a comment above it with a line
that begins with `WIDE:` and says why. Exit code 1 if a class or a file is above its limit.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("emulator", "proto", "daemon", "client")
CODE = (".h", ".cc")
MEMBERS = 25
METHODS = 40
FILE_LINES = 500
P90_LINES = 24

LITERALS = re.compile(r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'
                      r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/", re.S)
CLASS = re.compile(r"^(?:template\s*<.*>\s*)?(?:class|struct|union)\s+(?:\[\[\w+\]\]\s*)?"
                   r"(?:alignas\s*\([^)]*\)\s*)?(?P<name>\w+(?:::\w+)*)?\s*(?:final\s*)?"
                   r"(?::(?!:).*)?$", re.S)
NOT_MEMBERS = re.compile(r"^(?:using|typedef|friend|enum|template|static_assert|static|class|"
                         r"struct|union|PERCS_\w+)\b")
SCOPE = re.compile(r"\s*(?:(?:inline\s+)?namespace|extern)\b")


def blanked(text):
    """Same length and line breaks, without comments, literals and preprocessor lines."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = LITERALS.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M)


def matching(text, at):
    """The place of the brace that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def without_arguments(head):
    """A declaration without template arguments, attributes and macros about locks, so that
    parentheses left are those of a function."""
    head = re.sub(r"\[\[.*?\]\]|alignas\s*\([^)]*\)|ABSL_\w+\s*\([^)]*\)|->|<=>|<<|>=|<=", " ",
                  head)
    before = None
    while before != head:
        before, head = head, re.sub(r"<[^<>]*>", " ", head)
    return head


def is_function(head):
    head = without_arguments(re.sub(r"^template\s*<.*?>\s*(?=\w)", "", head, flags=re.S))
    name = re.search(r"\boperator\b|[\w~]\s*\(", head)
    assigned = head.find("=")
    return bool(name) and (assigned < 0 or name.start() < assigned)


def declarators(head):
    """How many names a declaration of data introduces."""
    head = re.sub(r"\([^()]*\)", " ", without_arguments(head))
    before = None
    while before != head:
        before, head = head, re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", " ", head)
    return head.count(",") + 1


def classes(text):
    """Yields (name, line, data members, methods) of each class, nested ones on their own."""
    yield from classes_between(blanked(text), 0, None, "")


def classes_between(text, start, end, outer):
    end = len(text) if end is None else end
    for head, at, body in statements(text, start, end):
        match = body and CLASS.match(head)
        if match:
            name = "::".join(filter(None, [outer, match.group("name") or "unnamed"]))
            close = matching(text, body)
            members, methods = count(text, body + 1, close)
            yield name, text.count("\n", 0, at) + 1, members, methods
            yield from classes_between(text, body + 1, close, name)
        elif body and SCOPE.match(head):
            yield from classes_between(text, body + 1, matching(text, body), outer)


def statements(text, start, end):
    """Yields (head, its place, the place of its first brace or None), at one level of braces."""
    head, at, body, i, paren = "", start, None, start, 0
    while i < end:
        c = text[i]
        if c == "{" and paren == 0:
            if body is None:
                body = i
            close = matching(text, i)
            data = not is_function(head) and not SCOPE.match(head)
            i = close
            if not data:
                yield head.strip(), at, body
                head, body = "", None
        elif c == ";" and paren == 0:
            if head.strip():
                yield head.strip(), at, body
            head, body = "", None
        elif c == ":" and re.fullmatch(r"\s*(?:public|private|protected)\s*", head):
            head = ""
        else:
            paren += {"(": 1, ")": -1}.get(c, 0)
            if not head.strip():
                at = i
            if body is None or paren or not c.isspace():
                head += c if body is None else ("," if c == "," else "")
        i += 1


def count(text, start, end):
    members = methods = 0
    for head, _, body in statements(text, start, end):
        if body and CLASS.match(head):
            continue
        if re.match(r"friend\b|using\b|typedef\b|enum\b|static_assert\b|PERCS_\w+", head):
            continue
        if is_function(head):
            methods += not re.search(r"=\s*(?:delete|default)\s*$", head)
        elif not NOT_MEMBERS.match(head):
            members += declarators(head)
    return members, methods


def reason_above(text, line):
    """Whether the comment directly above this line has a reason."""
    lines = text.splitlines()
    for above in reversed(lines[:line - 1]):
        if re.match(r"\s*//\s*WIDE:\s*\w", above):
            return True
        if not re.match(r"\s*(?://|template\b)", above):
            return False
    return False


def wide_classes(name, text):
    return [f"{name}:{line}: {what} has {members} data members and {methods} methods; at most "
            f"{MEMBERS} and {METHODS}, or a reason above it (// WIDE: ...)"
            for what, line, members, methods in classes(text)
            if (members > MEMBERS or methods > METHODS) and not reason_above(text, line)]


def long_files(name, text):
    lines = text.count("\n")
    return [f"{name}: {lines} lines, at most {FILE_LINES}"] if lines > FILE_LINES else []


def percentile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, len(values) * percent // 100)] if values else 0


def texts_of(commit):
    """The product's sources by name: of the checkout, or of a commit."""
    if commit is None:
        command = ["git", "ls-files", *FOLDERS]
    else:
        command = ["git", "ls-tree", "-r", "--name-only", commit, *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, check=True,
                           stdout=subprocess.PIPE).stdout.decode().split()
    names = [name for name in names if name.endswith(CODE)]
    if commit is None:
        return {name: (ROOT / name).read_text() for name in names if (ROOT / name).is_file()}
    request = "".join(f"{commit}:{name}\n" for name in names).encode()
    out = subprocess.run(["git", "cat-file", "--batch"], cwd=ROOT, check=True, input=request,
                         stdout=subprocess.PIPE).stdout
    texts, at = {}, 0
    for name in names:
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        texts[name] = out[end + 1:end + 1 + size].decode()
        at = end + 1 + size + 1
    return texts


def main():
    import tidy_test  # its rule for what a function is; not at the top, as it imports this file
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    texts = texts_of(commit)
    lengths = {folder: [] for folder in FOLDERS}
    found, reasons = [], []
    for name, text in sorted(texts.items()):
        lengths[name.split("/")[0]] += [lines for _, lines in tidy_test.functions(text)]
        found += wide_classes(name, text) + long_files(name, text)
        for what, line, members, methods in classes(text):
            if members > MEMBERS or methods > METHODS:
                reasons.append((members + methods, what, name, members, methods))
    lengths["all"] = [n for folder in FOLDERS for n in lengths[folder]]
    for folder, values in lengths.items():
        lines = sum(t.count("\n") for n, t in texts.items()
                    if folder == "all" or n.startswith(folder + "/"))
        print(f"{folder}: {lines} lines, {len(values)} functions, lines of a function p50 "
              f"{percentile(values, 50)}, p90 {percentile(values, 90)}, max {max(values)}")
    for _, what, name, members, methods in sorted(reasons, reverse=True):
        print(f"above {MEMBERS} members or {METHODS} methods: {what} ({name}): {members} members, "
              f"{methods} methods")
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
