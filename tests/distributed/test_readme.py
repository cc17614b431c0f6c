"""Runs every fenced command of README.md, in order, from the root of the repository.

Blocks marked `sh` are commands and must succeed; blocks with another mark are not run; a block
without a mark is an error, because nobody could tell which it is. What cannot run here is in
NOT_RUN, each with its reason, and an entry that README.md no longer has is an error, too.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 800  # the driver's own is 900

NOT_RUN = {
    r"git clone .*": "needs a network, and this is a clone",
}


def fenced_blocks(text):
    """(line, mark, body) of each fenced block."""
    pattern = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.S | re.M)
    return [(text.count("\n", 0, match.start()) + 1, match.group(1).strip(), match.group(2))
            for match in pattern.finditer(text)]


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.blocks = fenced_blocks((ROOT / "README.md").read_text())

    def test_every_block_says_what_it_is(self):
        self.assertEqual([], [line for line, mark, _ in self.blocks if not mark])

    def test_no_exemption_is_stale(self):
        lines = [line for _, mark, body in self.blocks if mark == "sh"
                 for line in body.splitlines()]
        stale = [pattern for pattern in NOT_RUN
                 if not any(re.fullmatch(pattern, line) for line in lines)]
        self.assertEqual([], stale)

    def test_every_command_succeeds(self):
        if pathlib.Path(os.environ.get("PERCS_BIN_DIR", "build/bin")).parent.name != "build":
            self.skipTest("README.md speaks of the release build")
        with tempfile.TemporaryDirectory() as state:
            environment = dict(os.environ, XDG_STATE_HOME=state)
            try:
                for line, mark, body in self.blocks:
                    if mark == "sh":
                        with self.subTest(line=line):
                            self.run_block(line, body, environment)
            finally:
                subprocess.run([ROOT / "build" / "bin" / "percsctl", "down", "--all"],
                               env=environment, stdout=subprocess.DEVNULL, timeout=60)

    def run_block(self, line, body, environment):
        kept = [row for row in body.splitlines()
                if not any(re.fullmatch(pattern, row) for pattern in NOT_RUN)]
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(kept)], cwd=ROOT,
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
        self.assertEqual(0, done.returncode,
                         f"README.md:{line}\n{body}\n{done.stdout.decode(errors='replace')[-4000:]}")


if __name__ == "__main__":
    unittest.main()
