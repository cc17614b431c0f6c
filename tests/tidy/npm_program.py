"""Programs of TypeScript whose output is committed: what their tests have in common.

Neither node nor npm is needed but for `check_same_again`, which runs the program once more.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

FULL = unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "needs npm's registry: --full")


def check_sums(test, program, sums_file, files):
    """The checksums that the program wrote are those of `files`, and of no others."""
    sums = dict(reversed(line.split("  ")) for line in sums_file.read_text().splitlines())
    test.assertEqual(sorted(files), sorted(sums))
    for name in files:
        test.assertEqual(sums[name], hashlib.sha256((program / name).read_bytes()).hexdigest(),
                         f"{name}: run `npm ci && npm run build` in {program}")


def check_types(test, program):
    """Strict, and without `any` or casts."""
    for path in (program / "src").glob("*.ts"):
        text = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|`[^`]*`', "", path.read_text(), flags=re.S)
        text = re.sub(r"^import .*?;$", "", text, flags=re.S | re.M)  # has "as" for names
        text = re.sub(r"\bas const\b", "", text)
        test.assertEqual([], re.findall(r"\bany\b|\bas\b|<\w+>\(|\w!\.|@ts-", text), path.name)
    test.assertIn('"strict": true', (program / "tsconfig.json").read_text())


def check_same_again(test, program, output):
    """A clean copy writes the same files to the folder `output`."""
    test.assertTrue(shutil.which("npm"), "npm is not there; Debian's package npm brings it")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / program.name
        shutil.copytree(program, copy, ignore=shutil.ignore_patterns("node_modules", "built"))
        shutil.rmtree(copy / output, ignore_errors=True)
        for command in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "build"]):
            done = subprocess.run(["npm", *command], cwd=copy, text=True, capture_output=True)
            test.assertEqual(0, done.returncode, done.stdout + done.stderr)
        names = sorted(path.name for path in (program / output).iterdir())
        test.assertEqual(names, sorted(path.name for path in (copy / output).iterdir()))
        for name in names:
            test.assertEqual((program / output / name).read_text(),
                             (copy / output / name).read_text(), name)
