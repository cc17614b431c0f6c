"""Mutual TLS as a user meets it: real binaries, identities made by percsctl, whole messages.

Method: a fabric of two daemons over TCP with identities of its own; percsctl calls it with the
operator's, the viewer's and none.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import unittest
import urllib.request

from test_cli import (BAD_INPUT, BIN, FAILED, LIMIT_SECONDS, OK, REFUSED, ROOT, TINY, UNREACHABLE,
                      CliTest)


class TlsTest(CliTest):
    def up(self):
        up = self.good_json("up", "--name", "safe", "--tls", "--tcp", "--daemons", 2)
        self.assertRegex(up["controller"], r"^127\.0\.0\.1:\d+$")
        self.operator = pathlib.Path(up["tls"])
        self.assertEqual("operator", self.operator.name)
        return up["controller"]

    def role(self, name):
        return self.operator.parent / name

    def test_a_fabric_with_tls_has_the_digest_of_one_process(self):
        controller = self.up()
        file = self.write("one.yaml", TINY)
        local = self.good_json("run", file)
        live = self.good_json("apply", file, "--name", "safe", "--wait")
        self.assertEqual(local["digest"], live["digest"])
        self.assertEqual("2 daemons over tcp", live["placement"])
        plain = self.ctl("status", "--controller", controller)
        self.assertEqual(UNREACHABLE, plain.returncode, plain.stderr)

    def test_a_viewer_looks_and_changes_nothing(self):
        controller = self.up()
        file = self.write("one.yaml", TINY)
        viewer = ("--controller", controller, "--tls", self.role("viewer"))
        self.assertEqual("empty", self.good_json("status", *viewer)["state"])
        self.bad(REFUSED, "percsctl apply: this request needs the role "
                          "operator; the certificate has the role viewer", "apply", file, *viewer)
        self.bad(BAD_INPUT, f"percsctl status: {self.role('daemon')} has the identity of the role "
                 "daemon; expected viewer or operator", "status", "--controller", controller,
                 "--tls", self.role("daemon"))
        self.good("apply", file, "--name", "safe", "--wait")

    def test_identities_are_private_under_any_umask(self):
        before = os.umask(0)
        try:
            self.good("ca", "open/deep/ca")
        finally:
            os.umask(before)
        top = self.folder / "open"
        for path in (top, *top.rglob("*")):
            mode = path.stat().st_mode & 0o777
            self.assertEqual(0, mode & (0o022 if path.is_dir() else 0o077), f"{path}: {mode:o}")

    def test_an_authority_that_was_made_anew_is_told_in_words(self):
        controller = self.up()
        self.good("ca", "other")
        done = self.ctl("status", "--controller", controller, "--tls",
                        self.folder / "other" / "operator")
        self.assertEqual(UNREACHABLE, done.returncode, done.stderr)
        self.assertRegex(done.stderr, "^percsctl status: no controller at .* that trusts this "
                         "identity, or that this identity trusts: a fabric that was started again "
                         "may have a new authority; import its identity again with `percsctl "
                         "context import`")
        self.assertNotIn("SSL", done.stderr)

    def test_a_context_is_exported_imported_and_forgotten(self):
        controller = self.up()
        bundle = self.write("operator.pem", self.good("context", "export", self.operator))
        self.good("context", "import", "copy", "--controller", controller, bundle)
        self.assertEqual(2, self.good_json("status", "--name", "copy")["daemons_expected"])
        self.assertEqual([{"name": "copy", "controller": controller, "role": "operator"}],
                         self.good_json("context", "list"))
        self.bad(FAILED, f'percsctl down: fabric "copy" is a remote fabric at {controller}; '
                         f'`percsctl context delete copy` deletes the context', "down", "--name",
                         "copy")
        self.bad(FAILED, 'percsctl context: "safe" is a local fabric; `percsctl down --name '
                         'safe` stops it', "context", "delete", "safe")
        daemon = self.write("daemon.pem", self.good("context", "export", self.role("daemon")))
        self.bad(BAD_INPUT, f"percsctl context: {daemon}: this identity has the role daemon; "
                            f"percsctl needs the role operator or viewer", "context", "import",
                            "x", "--controller",
                 controller, daemon)
        self.good("context", "delete", "copy")
        self.assertEqual([], self.good_json("context", "list"))

    def test_no_log_and_no_command_line_has_a_line_of_a_private_key(self):
        self.up()
        keys = set()
        for file in self.operator.parent.glob("*/identity.pem"):
            key = re.search(r"BEGIN PRIVATE KEY-----\n(.*?)-----END", file.read_text(), re.S)[1]
            keys |= {line for line in key.split() if len(line) > 20}
        self.assertGreaterEqual(len(keys), 5, "of each role")
        (fabric,) = self.good_json("ps")
        safe = ("--name", "safe")
        self.good("observe", "--log-level", "debug", *safe)
        self.good("apply", self.write("one.yaml", TINY), *safe, "--wait")
        texts = {}
        for process in fabric["processes"]:
            command = pathlib.Path(f"/proc/{process['pid']}/cmdline").read_bytes().decode()
            self.assertIn("--tls", command)
            texts[f"command line of {process['pid']}"] = command
            texts[process["log"]] = pathlib.Path(process["log"]).read_text()
        self.assertTrue(all(texts.values()), texts)
        # Starts that fail because of what is in the folder: another role, a damaged key, a key that
        # is cut off, no certificate.
        broken = self.folder / "broken"
        shutil.copytree(self.role("daemon"), broken)
        identity = broken / "identity.pem"
        whole = identity.read_text()
        for what in (None, whole.replace("\n", "\nx", 3), whole[:whole.index("-----END PRIVATE")],
                     whole[:whole.index("-----BEGIN CERT")]):
            identity.write_text(what or whole)
            for program in ("percs-controller", *(["percsd"] if what else [])):
                more = ("--controller", "127.0.0.1:1") if program == "percsd" else ()
                done = subprocess.run([BIN / program, "--listen", "127.0.0.1:0", "--tls", broken,
                                       "--log-level", "debug", *more], text=True, cwd=self.folder,
                                      capture_output=True, timeout=LIMIT_SECONDS)
                self.assertEqual(1, done.returncode, done.stderr)
                self.assertIn(str(broken), done.stderr)
                texts[f"{program} with {what}"] = done.stdout + done.stderr
            done = self.ctl("status", "--controller", "127.0.0.1:1", "--tls", broken)
            self.assertNotEqual(OK, done.returncode)
            texts[f"percsctl with {what}"] = done.stdout + done.stderr
        for where, text in texts.items():
            self.assertEqual([], [line for line in keys if line in text], where)

    def test_identities_are_made_once(self):
        first = self.good_json("ca", "tls")
        self.assertTrue(first["made"])
        self.assertEqual({"viewer", "operator", "daemon", "endpoint", "controller"},
                         set(first["roles"]))
        key = (self.folder / "tls" / "operator" / "identity.pem").read_text()
        self.assertFalse(self.good_json("ca", "tls")["made"])
        self.assertEqual(key, (self.folder / "tls" / "operator" / "identity.pem").read_text())
        self.assertTrue(self.good_json("ca", "tls", "--renew")["made"])


class ProgramsTest(CliTest):
    """percs-controller and percsd by themselves."""

    def setUp(self):
        super().setUp()
        self.good("ca", "tls")

    def program(self, name, *arguments):
        return subprocess.run([BIN / name, *map(str, arguments)], text=True, capture_output=True,
                              timeout=LIMIT_SECONDS, cwd=self.folder)

    def start(self, name, *arguments):
        process = subprocess.Popen([BIN / name, *map(str, arguments)], text=True, cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)

        def end():
            process.kill()
            process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return process

    def test_nobody_listens_elsewhere_without_asking_who_calls(self):
        for name, more in (("percs-controller", ()), ("percsd", ("--controller", "unix:/none"))):
            done = self.program(name, "--listen", "0.0.0.0:0", *more)
            self.assertEqual(1, done.returncode)
            self.assertIn("--listen 0.0.0.0:0 is reachable from other machines, and callers "
                          "would not be authenticated: give --tls FOLDER", done.stderr)

    def test_units_of_systemd_give_flags_that_there_are(self):
        for unit in sorted((ROOT / "deploy" / "systemd").glob("*.service")):
            command = re.search(r"^ExecStart=/usr/bin/(\S+) ((?:.*\\\n)*.*)$", unit.read_text(),
                                re.M)
            known = set(re.findall(r"--[a-z-]+", self.program(command[1], "--help").stdout))
            used = set(re.findall(r"--[a-z-]+", command[2]))
            self.assertLessEqual({"--tls", "--log-format"}, used, unit.name)
            self.assertLessEqual(used, known, unit.name)

    def test_an_identity_has_to_be_that_of_the_program(self):
        done = self.program("percs-controller", "--listen", "127.0.0.1:0", "--tls", "tls/daemon")
        self.assertEqual(1, done.returncode)
        self.assertIn("tls/daemon has the identity of the role daemon; expected controller",
                      done.stderr)
        done = self.program("percs-controller", "--listen", "127.0.0.1:0", "--tls", "nowhere")
        self.assertIn("cannot read nowhere/identity.pem", done.stderr)

    def test_probes_show_identities_and_refusals_are_counted(self):
        controller = self.start("percs-controller", "--listen", "127.0.0.1:0", "--tls",
                                "tls/controller", "--metrics", "127.0.0.1:0")
        address = controller.stdout.readline().split()[1]
        metrics = controller.stdout.readline().split()[1]
        self.assertEqual(0, self.program("percsd", "probe", address, "--tls",
                                         "tls/controller").returncode)
        plain = self.program("percsd", "probe", address)
        self.assertEqual(1, plain.returncode)
        self.assertIn("does not answer", plain.stderr)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(metrics, timeout=LIMIT_SECONDS) as answer:
            self.assertRegex(answer.read().decode(),
                             r'percs_refusals_total\{reason="handshake"\} [1-9]')

    def fetch(self, address, path, role, authority="tls"):
        """A page over TLS, from a server that must prove `role`."""
        host, port = address.rsplit(":", 1)
        context = ssl.create_default_context(cafile=self.folder / authority / role / "ca.pem")
        with socket.create_connection((host, int(port)), timeout=LIMIT_SECONDS) as plain, \
                context.wrap_socket(plain, server_hostname=f"{role}.percs") as peer:
            self.assertIn(peer.version(), ("TLSv1.2", "TLSv1.3"))
            peer.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            answer = b"".join(iter(lambda: peer.recv(65536), b"")).decode()
        self.assertRegex(answer, r"^HTTP/1\.[01] 200 OK\r\n")
        return answer.split("\r\n\r\n", 1)[1]

    def test_metrics_over_tls_say_who_answers(self):
        flags = ("--metrics", "127.0.0.1:0", "--metrics-tls")
        controller = self.start("percs-controller", "--listen", f"unix:{self.folder}/c", *flags,
                                "tls/controller/identity.pem")
        controller.stdout.readline()
        url = controller.stdout.readline().split()[1]
        address = re.fullmatch(r"https://(127\.0\.0\.1:\d+)/metrics", url)[1]
        self.start("percsd", "--controller", f"unix:{self.folder}/c", *flags,
                   "tls/daemon/identity.pem")
        self.assertIn('\npercs_clock_state{state="', self.fetch(address, "/metrics", "controller"))
        def both():
            found = json.loads(self.fetch(address, "/discovery", "controller"))
            return found if len(found) == 2 else None
        found = self.wait_for("the daemon", both)
        self.assertEqual([("controller", "controller", "https"),
                          ("daemon", "percsd (place 0)", "https")],
                         [(labels["role"], labels["instance"], labels["__scheme__"])
                          for labels in (target["labels"] for target in found)])
        daemon = found[1]["targets"][0]
        self.assertIn("\nprocess_threads ", self.fetch(daemon, "/metrics", "daemon"))
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.fetch(daemon, "/metrics", "controller")
        self.good("ca", "others")
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.fetch(daemon, "/metrics", "daemon", "others")
        host, port = daemon.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=LIMIT_SECONDS) as plain:
            plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                answer = b"".join(iter(lambda: plain.recv(65536), b""))
            self.assertNotIn(b"HTTP", answer)
        done = self.program("percsd", "--controller", "unix:/none", *flags, "tls/daemon/ca.pem")
        self.assertEqual(1, done.returncode)
        self.assertIn("tls/daemon/ca.pem, which must contain a private key and its certificate",
                      done.stderr)

    def test_a_daemon_is_ready_once_it_has_a_session(self):
        daemon = self.start("percsd", "--controller", f"unix:{self.folder}/c", "--listen",
                            f"unix:{self.folder}/d", "--tls", "tls/daemon")
        daemon.stdout.readline()
        probe = ("percsd", "probe", f"unix:{self.folder}/d", "--tls", "tls/daemon")
        self.assertEqual(0, self.program(*probe).returncode)
        self.assertEqual(1, self.program(*probe, "--ready").returncode)
        controller = self.start("percs-controller", "--listen", f"unix:{self.folder}/c", "--tls",
                                "tls/controller")
        controller.stdout.readline()
        self.wait_for("the daemon to be ready",
                      lambda: self.program(*probe, "--ready").returncode == OK)


if __name__ == "__main__":
    unittest.main()
