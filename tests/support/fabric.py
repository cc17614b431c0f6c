"""A controller and its daemons as real processes, with what a test does to them.

Sockets, logs and state are in one folder. Every process that was started is ended by close().
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
# What a sanitizer watches is several times slower, so tests wait as many times longer.
SLOWER = 5 if os.environ.get("PERCS_SANITIZER") else 1
PATIENCE_SECONDS = 60 * SLOWER
VIOLATION = 6  # the exit code of percsctl when a checker found one


def wait_for(condition, what, seconds=PATIENCE_SECONDS, said=str):
    """Returns what `condition` gives once that is true; `said()`: what to add to a failure."""
    end = time.monotonic() + seconds
    while not (there := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}\n{said()}")
        time.sleep(0.02)
    return there


class Fabric:
    def __init__(self, folder, daemons, daemon_flags=(), controller_flags=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / "state"
        self.address = f"unix:{self.folder}/c.sock"
        self.places = daemons
        self.daemon_flags = ("--controller-timeout", PATIENCE_SECONDS, *daemon_flags)
        self.controller_flags = controller_flags
        self.controller = None
        self.daemons = [None] * daemons
        self.started = 0

    def open(self, *controller_flags):
        self.start_controller(*controller_flags)
        for place in range(self.places):
            self.start_daemon(place)
        return self

    def close(self):
        for process in [self.controller, *self.daemons]:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            if process is not None:
                process.wait()

    def start(self, log, program, *arguments, within=()):
        """`within`: a command that runs it, like unshare."""
        self.started += 1
        with open(self.folder / f"{log}-{self.started}.log", "w") as output:
            return subprocess.Popen([*within, BIN / program, *map(str, arguments)], stdout=output,
                                    stderr=output, stdin=subprocess.DEVNULL,
                                    env=dict(os.environ, TMPDIR=str(self.folder)))

    def start_controller(self, *flags, within=()):
        self.controller = self.start(
            "controller", "percs-controller", "--listen", self.address, "--daemons", self.places,
            "--state-dir", self.state, *self.controller_flags, *flags, within=within)

    def start_daemon(self, place, *flags, within=()):
        self.daemons[place] = self.start(
            f"d{place}", "percsd", "--controller", self.address, "--index", place,
            "--name", f"d{place}", *self.daemon_flags, *flags, within=within)

    def logs(self):
        return "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}"
                         for log in sorted(self.folder.glob("*.log")))

    def ctl(self, *arguments, check=True):
        command = [BIN / "percsctl", *map(str, arguments), "--controller", self.address]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE_SECONDS * 2)
        if check and done.returncode != 0:
            raise AssertionError(f"percsctl {arguments}: {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}\n{self.logs()}")
        return done

    def json(self, *arguments):
        return json.loads(self.ctl(*arguments, "--format", "json").stdout)

    def status(self):
        """None while the controller does not answer."""
        done = self.ctl("status", "--format", "json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for(self, condition, what):
        return wait_for(condition, what, said=self.logs)

    def pass_time(self, by):
        """Waits until `by` picoseconds of virtual time have passed."""
        self.wait_for(lambda: self.status() is not None, "the controller")
        start = self.status()["virtual_ps"]
        self.wait_for(lambda: self.status()["virtual_ps"] > start + by, f"{by} ps to pass")

    def wait_for_state(self, *states):
        def there():
            status = self.status()
            return status is not None and status["state"] in states
        self.wait_for(there, f"state {states}")

    def result(self):
        """Of the last run, when it ends; over as many controllers as it takes."""
        reply = []

        def ended():
            done = self.ctl("result", "--wait", "--format", "json", check=False)
            there = done.returncode in (0, VIOLATION)
            if there:
                reply.append(json.loads(done.stdout))
            return there
        self.wait_for(ended, "the result")
        return reply[0]


class FabricTest(unittest.TestCase):
    """Tests that work on fabrics, in a folder that is gone afterwards."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "scenario.yaml"
        self.fabrics = 0

    def open_fabric(self, daemons, *flags):
        """A new one, whose controller is started with these flags."""
        self.fabrics += 1
        fabric = Fabric(self.folder / f"f{self.fabrics}", daemons)
        self.addCleanup(fabric.close)
        fabric.open(*flags)
        fabric.wait_for_state("empty")
        return fabric

    def start(self, *command):
        """A program beside the fabrics; ended with the test."""
        process = subprocess.Popen(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def check_replay(self, fabric, result):
        """What its journal gives, in one process."""
        replayed = percsctl_json("replay", fabric.state)
        self.assertEqual(result["digest"], replayed["digest"], fabric.logs())


def percsctl(*arguments, check=True):
    done = subprocess.run([BIN / "percsctl", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS * 2)
    if check and done.returncode != 0:
        raise AssertionError(f"percsctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def percsctl_json(*arguments):
    return json.loads(percsctl(*arguments, "--format", "json").stdout)
