"""The Python package of the build under test, and fabrics that it starts."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from fabric import BIN, ROOT

os.environ["PERCS_BIN_DIR"] = str(BIN)
sys.path.insert(0, str(BIN.parent / "python"))
import percs  # noqa: E402

SCENARIOS = ROOT / "deploy" / "scenarios"

# Traffic without an end on eight hubs in two drawers, as fast as this machine allows.
ENDLESS = """
name: endless
topology: {supernodes: 1, drawers: 2, hubs: 4}
workload:
  pattern: {pattern: uniform, message_bytes: 2KiB, load: 0.2, reliable: true}
run: {clock: live, pace: max}
"""
# The same with an end.
MEASURED = """
name: measured
topology: {supernodes: 1, drawers: 1, hubs: 4}
workload:
  pattern: {pattern: uniform, message_bytes: 2KiB, load: 0.2, warm_up: 2us, measure: 20us}
"""


class PackageTest(unittest.TestCase):
    """With a state directory of its own; every fabric in it is shut down."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(cls.folder / "state")
        cls.addClassCleanup(cls._restore, before)
        cls.addClassCleanup(percs.down_all)

    @staticmethod
    def _restore(before):
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before

    def write(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file
