"""Random command lines of percsctl, from what it says itself that there is (`__complete`).

Whatever is asked of it, it ends with a documented exit code and says something; it never crashes.
"""

import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from fabric import BIN, PATIENCE_SECONDS, ROOT

SEED = int(os.environ.get("PERCS_SEED") or 20110823)
LINES = 4000 if os.environ.get("PERCS_FULL") == "1" else 250
EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 7, 130}
LEAVE_OUT = {
    "up",   # starts processes
    "tun",  # changes interfaces of this machine
}
RUN_SECONDS = 3  # then the command is interrupted
VALUES = [
    "", "0", "-1", "1", "2", "3", "7", "64", "65535", "65536", "2147483647", "2147483648",
    "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "1e9", "1e-12", "nan", "inf", "0x10", "1,2,4", "8..64KiB", "1..0",
    "0ps", "1ps", "10us", "1000s", "1001s", "9223372036s", "wall:1s", "wall:0s", "-1us", "1us/s",
    "max", "1B", "4KiB", "1GiB", "9223372036854775807B", "sn0-d0-h0", "sn0-d0-h1", "sn9-d9-h9",
    "sn0-d0-h0:LL0", "sn0-d0-h0/sn0-d0-h1", "sn0-d0-h0:X", "all", "blade0", "blade0:SPE3", "world",
    "allreduce", "hw_direct", "link_down", "a=b", "topology.hubs=4", "faults[0].at=1us",
    "faults[99999999999].at=1us", "topology=", "human", "json", "tls", ".", "/dev/null",
    "/nonexistent/file.yaml", "unix:/nonexistent.sock", "127.0.0.1:1", "127.0.0.1:99999", "--",
    "%s%n", "\u00e4", "\x1b[31m", "x" * 5000,
]
# Copied to where the command runs, which may write over them.
FILES = ["deploy/scenarios/two-hubs.yaml", "deploy/scenarios/one-drawer.yaml",
         "deploy/scenarios/pair-cut.yaml", "README.md"]
VALUES += [pathlib.Path(file).name for file in FILES]


def percsctl(arguments, folder):
    """Exit code and what was said; a command that takes long is interrupted."""
    environment = dict(os.environ, XDG_STATE_HOME=str(folder), XDG_CONFIG_HOME=str(folder),
                       HOME=str(folder), TMPDIR=str(folder))
    process = subprocess.Popen([BIN / "percsctl", *arguments], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, b"", b""
        # Not every command has something to tidy up first.
        return (130 if process.returncode == -signal.SIGINT else process.returncode), out, err
    return process.returncode, out, err


class CommandLines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        def complete(*words):
            """What could come next, without file names and hidden answers."""
            out = subprocess.run([BIN / "percsctl", "__complete", *words], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
            names = [line.split("\t")[0] for line in out.splitlines()]
            return [name for name in names if not name.startswith(":")]

        cls.commands, cls.options, cls.inner = complete(""), {}, {}
        for command in cls.commands:
            cls.options[command] = complete(command, "--")
            inner = complete(command, "")
            if inner:
                cls.inner[command] = inner

    def draw(self, rng):
        command = rng.choice([c for c in self.commands if c not in LEAVE_OUT])
        words = [command]
        if command in self.inner and rng.random() < 0.9:
            words.append(rng.choice(self.inner[command]))
        for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
            options = self.options.get(command, [])
            if options and rng.random() < 0.5:
                option, value = rng.choice(options), rng.choice(VALUES)
                words += rng.choice([[option], [option, value], [f"{option}={value}"]])
            else:
                words.append(rng.choice(VALUES))
        if rng.random() < 0.02:
            words.insert(rng.randrange(len(words) + 1), rng.choice(VALUES))
        return [word.replace("\0", "") for word in words]

    def problem(self, words):
        with tempfile.TemporaryDirectory(prefix="percs-", dir="/tmp") as folder:
            for file in FILES:
                shutil.copy(ROOT / file, folder)
            code, out, err = percsctl(words, pathlib.Path(folder))
        if code is None:
            return "does not end when it is interrupted"
        if code not in EXIT_CODES:
            return f"exit code {code}: {err[-500:]}"
        if code not in (0, 130) and not out.strip() and not err.strip():
            return f"exit code {code}, and not a word"
        if re.search(rb"terminate called|basic_string|what\(\):|std::", err):
            return f"exit code {code}: {err[-500:]}"
        return ""

    def test_every_command_line_ends_with_a_documented_code_and_a_word(self):
        rng = random.Random(SEED)
        lines = [self.draw(rng) for _ in range(LINES)]
        self.assertGreater(len(self.commands), 30)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for words, problem in zip(lines, pool.map(self.problem, lines)):
                with self.subTest(seed=SEED, words=[word[:60] for word in words]):
                    self.assertEqual(problem, "")


if __name__ == "__main__":
    unittest.main()
