"""percsd and percs-controller as processes: flags, first line, signals, exit codes.

Method: the built programs (PERCS_BIN_DIR, or build/bin) are started with pipes; whole messages and
exit codes are looked at. Every process a test starts is ended when it ends.
"""

import os
import pathlib
import signal
import socket
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import PATIENCE_SECONDS, wait_for  # noqa: E402

BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))


class DaemonsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-daemons-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, program, *arguments):
        process = subprocess.Popen([BIN / program, *map(str, arguments)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=dict(os.environ, TMPDIR=str(self.folder)))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_controller(self, *arguments):
        controller = self.start("percs-controller", "--listen",
                                f"unix:{self.folder}/controller", *arguments)
        self.assertEqual(f"listening unix:{self.folder}/controller\n",
                         controller.stdout.readline())
        return controller

    def start_daemon(self, *arguments):
        daemon = self.start("percsd", "--controller", f"unix:{self.folder}/controller", *arguments)
        line = daemon.stdout.readline()
        self.assertRegex(line, r"^listening \S+\n$")
        daemon.address = line.split()[1]
        return daemon

    def wait_until_ready(self, daemon):
        probe = [BIN / "percsd", "probe", daemon.address, "--ready"]
        wait_for(lambda: 0 == subprocess.run(probe, capture_output=True,
                                             timeout=PATIENCE_SECONDS).returncode, "its session")

    def expect_end(self, process, code):
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(code, process.returncode, err)
        return err

    def wait_for_log(self, process, text):
        while text not in (line := process.stderr.readline()):
            self.assertNotEqual("", line, f"ended without saying {text!r}")

    def test_sigterm_ends_each_cleanly(self):
        controller = self.start_controller("--daemons", 2)
        daemons = [self.start_daemon("--index", 0), self.start_daemon("--index", 1)]
        for daemon in daemons:
            self.wait_for_log(daemon, "joined")
        for signal_number, daemon in zip((signal.SIGTERM, signal.SIGINT), daemons):
            daemon.send_signal(signal_number)
            self.expect_end(daemon, 0)
        controller.send_signal(signal.SIGTERM)
        self.expect_end(controller, 0)
        self.assertEqual([], list(self.folder.glob("percs-*")), "sockets were left behind")

    def test_daemons_end_with_their_controller(self):
        controller = self.start_controller("--daemons", 1)
        daemon = self.start_daemon()
        self.wait_until_ready(daemon)
        controller.send_signal(signal.SIGTERM)
        self.expect_end(controller, 0)
        self.expect_end(daemon, 0)

    def test_a_daemon_outlives_a_killed_controller_only_for_its_timeout(self):
        controller = self.start_controller("--daemons", 1)
        daemon = self.start_daemon("--controller-timeout", 2)
        self.wait_until_ready(daemon)
        controller.kill()
        self.assertRegex(self.expect_end(daemon, 1),
                         r"controller at unix:\S+/controller: no connection for \d+\.\d s; "
                         r"is percs-controller running there\?")

    def test_without_a_controller_a_daemon_ends_with_a_message(self):
        daemon = self.start_daemon("--controller-timeout", 0.3)
        self.assertRegex(self.expect_end(daemon, 1),
                         r"controller at unix:\S+/controller: no answer for \d+\.\d s")

    def test_a_taken_port_is_reported_with_its_holder(self):
        holder = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(holder.close)
        port = holder.getsockname()[1]
        controller = self.start("percs-controller", "--listen", f"127.0.0.1:{port}")
        self.assertRegex(self.expect_end(controller, 1),
                         rf"cannot listen on 127.0.0.1:{port}: port {port} is taken by \S+ "
                         rf"\(pid {os.getpid()}\)\n$")

    def test_bad_flags_are_refused(self):
        controller = self.start("percs-controller", "--listen", "nowhere")
        self.assertIn("expected unix:PATH, HOST:PORT with a port from 0 to 65535, or tcp",
                      self.expect_end(controller, 1))
        self.assertIn("--controller is required", self.expect_end(self.start("percsd"), 2))

    def test_a_place_is_given_once(self):
        self.start_controller("--daemons", 2)
        first = self.start_daemon("--index", 1)
        self.wait_for_log(first, "joined")
        second = self.start_daemon("--index", 1)
        self.assertRegex(self.expect_end(second, 1), rf"place 1 is taken by percsd in place 1 "
                                                     rf"\(pid {first.pid}\)")


if __name__ == "__main__":
    unittest.main()
