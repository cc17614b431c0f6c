"""A copy of the sources in which one line is changed at a time, built and tested.

mutate.py and draw_mutations.py say what is changed and which tests must notice it.
"""

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "CMakePresets.json", "emulator", "proto", "daemon", "client", "deploy",
          "tests"]
TIME_LIMIT_SECONDS = 300  # of the tests; a mutant may well run for ever


class Trial:
    """Builds and tests a folder with a mutation in place."""

    def __init__(self, folder, build, test, limit=TIME_LIMIT_SECONDS, environment=None, then=()):
        """`then`: more commands that build and commands that test, for what passes `test`."""
        self.folder, self.build, self.test = pathlib.Path(folder), build, test
        self.limit, self.then = limit, then
        self.environment = dict(os.environ, **environment or {})

    def execute(self, command, limit=None):
        """Exit code, None when it ran over its time, and what it printed."""
        try:
            result = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    timeout=limit, env=self.environment, check=False)
        except subprocess.TimeoutExpired:
            return None, ""
        return result.returncode, result.stdout.decode(errors="replace")

    def must(self, command):
        """RuntimeError unless it ends with 0."""
        code, text = self.execute(command)
        if code != 0:
            raise RuntimeError(f"{' '.join(command)}\n{text[-4000:]}")

    def unchanged(self):
        """RuntimeError unless what was not changed builds and passes."""
        self.must(self.build)
        self.must(self.test)

    def outcome(self, file, edit):
        """Of the tests when the text of `file` is `edit(text)`: ("killed", what noticed it),
        ("survived", "") or ("does not compile", "")."""
        path = self.folder / file
        original = path.read_text()
        path.write_text(edit(original))
        try:
            if self.execute(self.build)[0] != 0:
                return "does not compile", ""
            code, text = self.execute(self.test, self.limit)
            for build, test in self.then:
                if code == 0:
                    self.must(build)
                    code, text = self.execute(test, self.limit)
        finally:
            path.write_text(original)
        if code is None:
            return "killed", f"ran for more than {self.limit} s"
        if code == 0:
            return "survived", ""
        told = re.search(r"^(?:network |flap |.*: bug: ).*", text, re.M)
        failed = re.search(r"^\[  FAILED  \] ([^\s,]+)", text, re.M)
        why = told[0][:300] if told else failed[1] if failed else f"exit code {code}"
        return "killed", why


def copy_sources(folder):
    """Only what differs, so that a kept folder compiles again only what changed."""
    wanted = set()
    for name in COPIED:
        source = ROOT / name
        for path in source.rglob("*") if source.is_dir() else [source]:
            if path.is_dir() or "__pycache__" in path.parts or "node_modules" in path.parts:
                continue
            target = folder / path.relative_to(ROOT)
            wanted.add(target)
            if target.exists() and target.read_bytes() == path.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            shutil.copymode(path, target)
    for name in COPIED:
        for path in (folder / name).rglob("*"):
            if path.is_file() and path not in wanted:
                path.unlink()


def prepare(folder, target, tests, alone, jobs, environment=None, then=()):
    """A Trial of the tests named by the filter `tests` of the program `target`, in a copy that has
    been built and shown to pass; RuntimeError if it does not. What passes is given all tests of the
    programs `then`.

    The sources `alone`, those to be changed, are compiled by themselves, the rest in units of many
    files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy_sources(folder)

    def build(program):
        return ["cmake", "--build", "build", "-j", str(jobs), "--target", program]

    def test(program, *options):
        return [f"build/bin/{program}", "--gtest_fail_fast", *options]

    trial = Trial(folder, build(target), test(target, f"--gtest_filter={tests}"),
                  environment=dict(environment or {}, CCACHE_BASEDIR=str(folder)),
                  then=[(build(program), test(program)) for program in then])
    trial.must(["cmake", "--preset", "release", "-B", "build", "-DPERCS_BENCH=OFF",
                "-DPERCS_ALONE=" + ";".join(sorted(set(alone)))])
    trial.unchanged()
    return trial
