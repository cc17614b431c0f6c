"""The Python package is fully typed: mypy --strict on it, with the messages of the build."""

import os
import pathlib
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))


class TypesTest(unittest.TestCase):
    def test_mypy_finds_nothing(self):
        if shutil.which("mypy") is None:
            self.skipTest("mypy is not there; deploy/install --format installs it")
        folder = BIN.parent / "python"
        self.assertTrue((folder / "percs" / "v1" / "control_pb2.pyi").exists(),
                        "build the target percs_python")
        done = subprocess.run(
            ["mypy", "--config-file", ROOT / "client" / "python" / "pyproject.toml",
             "--python-executable", "/usr/bin/python3", "--cache-dir", BIN.parent / "mypy",
             "percs"],
            cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
