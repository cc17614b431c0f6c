"""Style as a test: the rules of CONTRIBUTING.md that a program can check.

Every rule is a function from a file's text to a list of complaints. TreeTest runs them over every
file git tracks (or would track); RuleTest shows that each rule fires.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import include_graph  # noqa: E402
import measures  # noqa: E402
import mutate  # noqa: E402

LINE_LENGTH = 100
FILE_LINES = measures.FILE_LINES
TEST_FILE_LINES = 800
FUNCTION_LINES = 70
TEST_FUNCTION_LINES = 120
PYTHON_TEST_FOLDERS = {"tests/tidy", "tests/distributed", "tests/engines", "tests/validation",
                       "tests/chaos", "tests/models"}
CODE = (".h", ".cc")

# The machine is pure: what it includes decides what it can know.
EMULATOR_INCLUDES = re.compile(
    r'#include\s+(?:"emulator/|<absl/|"absl/|<fmt/|"fmt/|<[a-z_0-9]+>|<sanitizer/asan_interface\.h>)')
EMULATOR_STANDARD_BANNED = re.compile(
    r"#include\s+[<\"](?:chrono|ctime|thread|mutex|shared_mutex|condition_variable|future|semaphore|"
    r"barrier|latch|fstream|filesystem|iostream|cstdio|random|absl/time/clock\.h|"
    r"absl/synchronization/)")
EMULATOR_MAY_PRINT = "emulator/base/check.h"  # the last words of a bug
EMULATOR_CALLS_BANNED = re.compile(
    r"\b(?:getenv|std::rand|srand|random_device|system_clock|steady_clock|gettimeofday|"
    r"clock_gettime|std::thread|std::time)\b")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
REGISTRIES = re.compile(
    r"registry\.npmjs|pypi\.org|files\.pythonhosted|(?:deb|security)\.debian\.org")

# Words that documents, help and messages do not use, and what to write instead.
WORDS = {
    r"anew": "again",
    r"nobody|somebody|whoever": "the one who acts: a caller, a hub, a daemon",
    r"of before": "previous, earlier",
    r"tak(?:e|es|en) up": "recovered, continued, accepted",
    r"all in all": "in total",
    r"so many|so much": "the number or amount",
    r"once more": "again",
    r"(?:is|are|was|were|be|been|being) told": "receives, gets",
    r"st(?:ands?|ood) still": "is held, is paused",
    r"becomes? of": "its state, its phase",
    r"by turns": "round robin",
    r"shall": "is, must",
    r"(?:go|goes|going|gone|went) on": "continue",
    r"(?:alerts?|rules?|still|then) rings?|rings? and clears": "an alert fires",
}
FOLDERS_WITH_MESSAGES = ("client/", "daemon/", "emulator/", "proto/")


def tracked_files():
    """Every file of the project, committed or about to be."""
    command = "git -c safe.directory=* ls-files -z --cached --others --exclude-standard".split()
    names = subprocess.run(command, cwd=ROOT, check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def read(name):
    """The text of a file, or None when it is not text."""
    data = (ROOT / name).read_bytes()
    if b"\0" in data:
        return None
    return data.decode("utf-8", errors="replace")


def long_lines(name, text):
    return [f"{name}:{number}: {len(line)} columns, at most {LINE_LENGTH}"
            for number, line in enumerate(text.splitlines(), 1)
            if len(line) > LINE_LENGTH and not re.fullmatch(r"\s*(?://|#|\*)?\s*\S+", line)]


def long_file(name, text):
    limit = TEST_FILE_LINES if name.startswith("tests/") else FILE_LINES
    lines = text.count("\n")
    return [f"{name}: {lines} lines, at most {limit}: split it by subject"] if lines > limit else []


def without_comments_and_strings(text):
    """Same length and line breaks, with the inside of comments and literals blanked."""
    pattern = re.compile(r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/", re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def functions(text):
    """Yields (first line, lines) of each outermost function body."""
    text = without_comments_and_strings(text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*",
                  lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.M)
    stack, head, line, head_line = [], "", 1, 1
    for character in text:
        if character == "{":
            inside = "function" in stack
            container = not re.search(r"\)", head) or re.search(r"\b(?:namespace|extern)\b", head)
            kind = "nested" if inside else "container" if container else "function"
            stack.append(kind)
            if kind == "function":
                start = head_line
            head = ""
        elif character == "}":
            if stack and stack.pop() == "function":
                yield start, line - start + 1
            head = ""
        elif character == ";":
            if head.count("(") <= head.count(")"):
                head = ""
        elif not head and character.isspace():
            pass
        else:
            if not head:
                head_line = line
            head += character
        if character == "\n":
            line += 1


def long_functions(name, text):
    limit = TEST_FUNCTION_LINES if name.startswith("tests/") else FUNCTION_LINES
    return [f"{name}:{start}: a function of {lines} lines, at most {limit}"
            for start, lines in functions(text) if lines > limit]


def impure_emulator(name, text):
    found = []
    for number, line in enumerate(without_comments_and_strings_but_includes(text).splitlines(), 1):
        include = line.lstrip().startswith("#include")
        if include:
            banned = EMULATOR_STANDARD_BANNED.search(line) or not EMULATOR_INCLUDES.search(line)
            if banned and not (name == EMULATOR_MAY_PRINT and "<cstdio>" in line):
                found.append(f"{name}:{number}: the emulator may not include this: {line.strip()}")
        elif EMULATOR_CALLS_BANNED.search(line):
            found.append(f"{name}:{number}: no clock, environment, thread or foreign randomness in "
                         f"the emulator: {line.strip()}")
    return found


def without_comments_and_strings_but_includes(text):
    blank = without_comments_and_strings(text).splitlines()
    return "\n".join(line if line.lstrip().startswith("#include") else blank[i]
                     for i, line in enumerate(text.splitlines()))


def unfinished(name, text):
    return [f"{name}:{number}: unfinished: {line.strip()}"
            for number, line in enumerate(text.splitlines(), 1) if UNFINISHED.search(line)]


def machine_paths(name, text, places):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for place in places:
            if re.search(rf"(?<![\w.]){re.escape(place)}(?![\w-])", line):
                found.append(f"{name}:{number}: names a place of one machine: {line.strip()}")
        if REGISTRIES.search(line):
            found.append(f"{name}:{number}: names a package host: {line.strip()}")
    return found


def places_of_this_machine():
    """Folders above this checkout and the home folder; short ones would match by accident."""
    places = {str(parent) for parent in ROOT.parents} | {os.path.expanduser("~")}
    return {place for place in places if len(place) >= 5 and place not in ("/home", "/usr/src")}


def header_guard(name, text):
    return [] if "#pragma once" in text else [f"{name}: no #pragma once"]


def hidden_tests(name, text):
    return [f"{name}:{number}: a test that never runs or cannot fail: {line.strip()}"
            for number, line in enumerate(text.splitlines(), 1)
            if re.search(r"\bDISABLED_|^\s*//\s*TEST(?:_F|_P)?\(|EXPECT_TRUE\(true\)", line)]


def strings(name, text):
    """(line, text) of what people read in a file: all of a document or of alert rules, else its
    string literals, adjacent ones as one."""
    if name.endswith((".md", ".yml", ".yaml")):
        return [(1, text)]
    comments = re.compile(r"(\"(?:\\.|[^\"\\\n])*\")|//[^\n]*")
    text = comments.sub(lambda m: m.group(1) or "", text)
    literals = re.finditer(r'(?:"(?:\\.|[^"\\\n])*"\s*)+|R"\(.*?\)"', text, re.S)
    return [(text.count("\n", 0, m.start()) + 1, re.sub(r'"\s*"', "", m.group()))
            for m in literals]


def unplain_words(name, text):
    found = []
    for line, said in strings(name, text):
        for words, instead in WORDS.items():
            pattern = rf"\b(?:{words})\b".replace(" ", r"\s+")
            for match in re.finditer(pattern, said, re.I):
                at = line + said.count("\n", 0, match.start())
                found.append(f"{name}:{at}: '{match.group()}': write for example {instead}")
    return found


def long_prose(name, text):
    """Lines that are too long. Rows of tables cannot be broken, nor can generated text."""
    text = text.partition("<!-- Generated")[0]
    return [f"{name}:{number}: {len(line)} columns, at most {LINE_LENGTH}"
            for number, line in enumerate(text.splitlines(), 1)
            if len(line) > LINE_LENGTH and not line.startswith("|")]


def broken_links(name, text):
    found = []
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:|#", target):
            continue
        if not ((ROOT / name).parent / target.split("#")[0]).exists():
            found.append(f"{name}: links to {target}, which is not there")
    return found


class TreeTest(unittest.TestCase):
    """The project as it is."""

    @classmethod
    def setUpClass(cls):
        cls.texts = {name: text for name in tracked_files() if (text := read(name)) is not None}
        cls.code = {n: t for n, t in cls.texts.items() if n.endswith(CODE)}

    def check(self, texts, *rules):
        found = [complaint for name, text in sorted(texts.items())
                 for rule in rules for complaint in rule(name, text)]
        self.assertEqual([], found, "\n" + "\n".join(found))

    def test_lines_are_short(self):
        self.check({n: t for n, t in self.texts.items() if n.endswith(CODE + (".py",))}, long_lines)

    def test_files_are_short(self):
        self.check({n: t for n, t in self.texts.items() if n.endswith(CODE + (".py",))}, long_file)

    def test_functions_are_short(self):
        self.check(self.code, long_functions)

    def test_classes_are_narrow(self):
        product = {n: t for n, t in self.code.items() if n.startswith(measures.FOLDERS)}
        self.check(product, measures.wide_classes)

    def test_nine_functions_of_ten_are_at_most_24_lines(self):
        for folder in measures.FOLDERS:
            lengths = [lines for n, t in self.code.items() if n.startswith(folder + "/")
                       for _, lines in functions(t)]
            self.assertLessEqual(measures.percentile(lengths, 90), measures.P90_LINES, folder)

    def test_what_is_shipped_never_listens_without_asking_who_calls(self):
        shipped = {n: t for n, t in self.texts.items()
                   if n.startswith("deploy/") or n in ("docker-compose.yml", "README.md")}
        self.assertIn("docker-compose.yml", shipped)
        self.assertEqual([], [n for n, t in shipped.items() if "--plaintext" in t])

    def test_emulator_is_pure(self):
        emulator = {n: t for n, t in self.code.items() if n.startswith("emulator/")}
        self.check(emulator, impure_emulator)

    def test_rooms_include_only_rooms_below_them(self):
        rooms = {n: t for n, t in self.code.items() if not n.startswith("tests/")}
        wrong = include_graph.against_the_order(rooms, include_graph.rooms())
        self.assertEqual([], wrong, "\n" + "\n".join(wrong))

    def test_nothing_is_marked_unfinished(self):
        self.check(self.texts, unfinished)

    def test_no_file_names_a_place_of_this_machine(self):
        places = places_of_this_machine()
        self.check(self.texts, lambda name, text: machine_paths(name, text, places))

    def test_headers_have_a_guard(self):
        self.check({n: t for n, t in self.code.items() if n.endswith(".h")}, header_guard)

    def test_no_test_is_hidden(self):
        self.check({n: t for n, t in self.code.items() if n.startswith("tests/")}, hidden_tests)

    def test_links_in_documents_lead_somewhere(self):
        self.check({n: t for n, t in self.texts.items() if n.endswith(".md")}, broken_links)

    def test_documents_and_messages_use_plain_words(self):
        read = {n: t for n, t in self.texts.items()
                if n.endswith(".md") or n.startswith(("deploy/prometheus/", "deploy/scenarios/"))
                or n.startswith(FOLDERS_WITH_MESSAGES) and n.endswith(CODE + (".proto",))}
        self.assertIn("deploy/prometheus/alerts.yml", read)
        self.check(read, unplain_words)

    def test_lines_of_documents_are_short(self):
        self.check({n: t for n, t in self.texts.items() if n.endswith(".md")}, long_prose)

    def test_every_document_is_in_the_index(self):
        index = self.texts["docs/README.md"]
        pages = [n for n in self.texts if re.fullmatch(r"docs/.*\.md", n) and n != "docs/README.md"]
        missing = [n for n in pages if f"({n.removeprefix('docs/')})" not in index]
        self.assertEqual([], missing, "add a row to docs/README.md")

    def test_file_names_are_snake_case(self):
        odd = [n for n in self.texts if n.endswith(CODE + (".py", ".proto"))
               and not re.fullmatch(r"[a-z0-9_./]+", n)]
        self.assertEqual([], odd)

    def test_python_tests_are_where_the_driver_looks(self):
        stray = [n for n in self.texts
                 if re.search(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$", n)
                 and str(pathlib.PurePath(n).parent) not in PYTHON_TEST_FOLDERS]
        self.assertEqual([], stray, "tests/run never runs these")

    def test_shell_scripts_parse(self):
        for name, text in self.texts.items():
            if re.match(r"#!.*\bbash\b", text):
                result = subprocess.run(["bash", "-n", ROOT / name], stderr=subprocess.PIPE)
                self.assertEqual(0, result.returncode, result.stderr.decode())
                self.assertTrue(os.access(ROOT / name, os.X_OK), f"{name} is not executable")

    def test_mutations_of_the_engine_still_apply(self):
        gone = [f"{m.file}: {m.old.strip()}" for m in mutate.MUTATIONS if not mutate.applies(m)]
        self.assertEqual([], gone, "choose other lines in tests/differential/mutate.py")

    @staticmethod
    def compiled(path):
        """The source itself, or those that a unity build has put into it."""
        if path.parent.name != "Unity":
            return [path]
        names = re.findall(r'(?m)^#include "(.*)"$', path.read_text())
        return [pathlib.Path(name).resolve() for name in names]

    def test_every_source_is_built(self):
        folder = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin")).parent
        database = folder / "compile_commands.json"
        if not database.exists():
            self.skipTest(f"{folder.name} is not configured")
        built = set()
        for entry in json.loads(database.read_text()):
            for path in self.compiled(pathlib.Path(entry["directory"], entry["file"]).resolve()):
                if path.is_relative_to(ROOT):
                    built.add(str(path.relative_to(ROOT)))
        # Fuzz targets have a compiler of their own, benchmarks no place in every build.
        elsewhere = ["tests/fuzz/"]
        if "PERCS_BENCH:BOOL=OFF" in (folder / "CMakeCache.txt").read_text():
            elsewhere.append("tests/bench/")
        unbuilt = [n for n in self.code if n.endswith(".cc") and n not in built
                   and not n.startswith(tuple(elsewhere))]
        self.assertEqual([], unbuilt, "no target compiles these; what nobody builds proves nothing")


class FormatTest(unittest.TestCase):
    def test_code_is_formatted(self):
        tool = shutil.which("clang-format-14")
        if tool is None:
            self.skipTest("clang-format-14 is not there; deploy/install --format installs it")
        names = [n for n in tracked_files() if n.endswith(CODE)]
        command = [tool, "--dry-run", "-Werror", "--ferror-limit=1", *names]
        result = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE)
        output = result.stderr.decode()
        wrong = sorted(set(re.findall(r"^([^:\s]+):\d+:\d+: error", output, re.M)))
        self.assertEqual([], wrong, "run: git ls-files '*.h' '*.cc' | xargs clang-format-14 -i")


class RuleTest(unittest.TestCase):
    """Each rule fires on what it is for, and not on its innocent neighbour."""

    def test_long_line(self):
        self.assertTrue(long_lines("a.cc", "int a = 1; " + "x" * 100))
        self.assertFalse(long_lines("a.cc", "// https://example.org/" + "x" * 100))

    def test_long_file(self):
        self.assertTrue(long_file("emulator/a.cc", "\n" * (FILE_LINES + 1)))
        self.assertFalse(long_file("tests/a.cc", "\n" * (FILE_LINES + 1)))

    def test_long_function(self):
        body = "  Call();\n" * FUNCTION_LINES
        self.assertTrue(long_functions("a.cc", "namespace n {\nvoid F() {\n" + body + "}\n}\n"))
        self.assertTrue(long_functions("a.cc", "class C {\n int G() const {\n" + body + "}\n};\n"))
        self.assertFalse(long_functions("a.cc", "class C {\n" + "  int f(int a);\n" * 100 + "};\n"))
        two = "void F() {\n" + body[:200] + "}\nvoid G() {\n" + body[:200] + "}\n"
        self.assertFalse(long_functions("a.cc", two))

    def test_wide_class(self):
        data = "".join(f"  int a{i} = {{}}, b{i}[2] = {{1, 2}};\n" for i in range(13))
        wide = "namespace n {\nclass C : public B<int, 2> {\n public:\n" + data + "};\n}\n"
        self.assertTrue(measures.wide_classes("a.h", wide))
        why = wide.replace("class", "// WIDE: it has to.\nclass")
        self.assertFalse(measures.wide_classes("a.h", why))
        inner = "class C {\n  struct D {\n" + data[:200] + "  };\n" + data[-200:] + "};\n"
        self.assertFalse(measures.wide_classes("a.h", inner), "each class counts for itself")
        methods = "".join(f"  std::map<A, void(B)> f{i}(int a, int b) const {{ return {{}}; }}\n"
                          for i in range(41))
        self.assertTrue(measures.wide_classes("a.h", "class C {\n" + methods + "};\n"))
        held = "".join(f"  std::function<void(int, int)> f{i} = nullptr;\n" for i in range(25))
        self.assertFalse(measures.wide_classes("a.h", "class C {\n" + held + "};\n"))

    def test_impure_emulator(self):
        for line in ("#include <thread>", "#include <grpcpp/grpcpp.h>", '#include "daemon/a.h"',
                     '#include "percs/v1/link.pb.h"', "#include <chrono>", "#include <fstream>",
                     '#include "absl/time/clock.h"', "int x = std::rand();", "getenv(name);"):
            self.assertTrue(impure_emulator("emulator/a.cc", line), line)
        for line in ("#include <vector>", '#include "emulator/base/ids.h"', "// no getenv here",
                     '#include "absl/status/status.h"', "#include <fmt/format.h>"):
            self.assertFalse(impure_emulator("emulator/a.cc", line), line)

    def test_includes_against_the_order(self):
        order = ["emulator/base", "emulator/isr"]
        wrong = {"emulator/base/a.h": '#include "emulator/isr/b.h"\n', "emulator/odd/c.h": ""}
        self.assertEqual(2, len(include_graph.against_the_order(wrong, order)))
        right = {"emulator/isr/b.h": '#include "emulator/base/a.h"\n#include "emulator/isr/c.h"\n'}
        self.assertEqual([], include_graph.against_the_order(right, order))

    def test_unfinished(self):
        self.assertTrue(unfinished("a.cc", "// TO" + "DO: later"))
        self.assertFalse(unfinished("a.cc", "hacksaw"))

    def test_machine_paths(self):
        self.assertTrue(machine_paths("a.md", "see /srv/place/x", {"/srv/place"}))
        self.assertFalse(machine_paths("a.md", "see emulator/srv/placement", {"/srv/place"}))
        self.assertTrue(machine_paths("a.md", "http://deb." + "debian.org/debian", set()))

    def test_hidden_tests(self):
        self.assertTrue(hidden_tests("a_test.cc", "TEST(A, DIS" "ABLED_B) {"))
        self.assertTrue(hidden_tests("a_test.cc", "// TEST(A, B) {"))

    def test_unplain_words(self):
        for text in ("It is planned anew.", "Nobody may.", "which the hub is\ntold",
                     "rules ring when a link dies", "then time goes on", "How long, all in all."):
            self.assertTrue(unplain_words("docs/a.md", text), text)
        self.assertTrue(unplain_words("daemon/a.cc", 'Fail("it stands "\n     "still");'))
        self.assertTrue(unplain_words("proto/a.proto", 'doc: "Kind fixed: so many."'))
        for text in ("It is planned again.", "No role may.", "The bus loses a ring when cut."):
            self.assertFalse(unplain_words("docs/a.md", text), text)
        self.assertFalse(unplain_words("daemon/a.cc", "// Nobody waits.\nint anew = 1;"))

    def test_long_prose(self):
        self.assertTrue(long_prose("docs/a.md", "word " * 21))
        self.assertFalse(long_prose("docs/a.md", "| " + "word " * 21))

    def test_broken_links(self):
        self.assertTrue(broken_links("README.md", "[a](no/such/file.md)"))
        good = "[a](LICENSE) [b](https://example.org) [c](#here)"
        self.assertFalse(broken_links("README.md", good))

    def test_header_guard(self):
        self.assertTrue(header_guard("a.h", "int a;"))


if __name__ == "__main__":
    unittest.main()
