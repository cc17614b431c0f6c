"""What is shipped for running elsewhere has what the documents say, wherever no engine runs it.

Method: the Compose file with its anchors put in, the units of systemd and the Dockerfile, as text;
the batch script of Slurm with programs that only say how they were called.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARDENING = ("NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict",
             "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes", "RestrictNamespaces=yes",
             "MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service", "UMask=0077")


def blocks(text, indent):
    """Of keys at that indent: name and text."""
    heads = list(re.finditer(rf"^{' ' * indent}([a-z][a-z-]*):", text, re.M))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.start():end] for head, end in zip(heads, ends)}


class ComposeTest(unittest.TestCase):
    def setUp(self):
        text = re.sub(r"^ *#.*$", "", (ROOT / "docker-compose.yml").read_text(), flags=re.M)
        top = blocks(text, 0)
        self.volumes = top["volumes"]
        anchors = {f"*{name.removeprefix('x-')}": body for name, body in top.items()}
        self.services = blocks(top["services"], 2)
        anchors["*hub"] = self.services["hub"]
        for _ in range(2):  # a blade is a hub, which is one of ours
            for name, body in self.services.items():
                for anchor, put_in in anchors.items():
                    body = body.replace(f"<<: {anchor}\n", put_in.partition("\n")[2])
                self.services[name] = body

    def test_every_service_is_bounded_and_ends_in_order(self):
        self.assertEqual({"certs", "controller", "hub", "blade", "prometheus", "grafana"},
                         set(self.services))
        for name, body in self.services.items():
            for wanted in ("mem_limit:", "logging:", "stop_grace_period:", "restart:",
                           "cap_drop: [ALL]", "no-new-privileges:true"):
                self.assertIn(wanted, body, name)
            for unwanted in ("container_name:", "privileged:", "cap_add:", "network_mode:"):
                self.assertNotIn(unwanted, body, name)
            self.assertEqual(name != "certs", "healthcheck:" in body, name)

    def test_only_loopback_of_the_host_is_published_and_nothing_of_a_hub(self):
        for name, body in self.services.items():
            ports = re.findall(r"^ *ports: *(.*)$", body, re.M)
            if name in ("certs", "hub", "blade"):
                self.assertEqual([], ports, name)
            for port in ports:
                self.assertRegex(port, r'^\["127\.0\.0\.1:', name)

    def test_what_outlives_a_container_is_in_volumes(self):
        self.assertIn("journal:/var/lib/percs", self.services["controller"])
        self.assertIn("--state-dir /var/lib/percs", self.services["controller"])
        self.assertIn("- prometheus:/prometheus ", self.services["prometheus"])
        self.assertIn("--storage.tsdb.path=/prometheus\n", self.services["prometheus"])
        self.assertIn("- grafana:/var/lib/grafana", self.services["grafana"])
        for name, body in self.services.items():
            for volume in re.findall(r'(?:- |")([a-z][a-z-]*):/(?!/)', body):
                self.assertIn(f"\n  {volume}: {{}}\n", self.volumes, name)

    def test_what_prometheus_keeps_has_an_end(self):
        """In memory it would count against the limit of the container, which ends it."""
        body = self.services["prometheus"]
        self.assertNotIn("tmpfs", body)
        self.assertRegex(body, r"--storage\.tsdb\.retention\.size=\$\{\w+:-\d+GB\}")

    def test_who_starts_it_chooses_the_password_of_grafana(self):
        self.assertIn("GF_SECURITY_ADMIN_PASSWORD: ${PERCS_GRAFANA_PASSWORD:-",
                      self.services["grafana"])


class SiteTest(unittest.TestCase):
    def test_every_document_has_a_place_in_the_contents(self):
        """Else the site, which is built with --full only, has a warning, which is an error."""
        contents = (ROOT / "docs" / "site" / "index.txt").read_text().splitlines()
        pages = [str(page.relative_to(ROOT).with_suffix(""))
                 for page in (ROOT / "docs").rglob("*.md")]
        self.assertGreater(len(pages), 20)
        self.assertEqual([], [page for page in pages if page not in contents])


class DockerfileTest(unittest.TestCase):
    SENT = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines()
            if line.startswith("!")]

    def test_the_engine_is_sent_what_the_file_copies(self):
        text = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
        copies = [one for line in text.splitlines() if line.startswith("COPY ")
                  for one in line.split()[1:-1] if one != "."]
        self.assertIn("build-package/percs_*.deb", copies)
        for one in copies:
            self.assertIn(one, self.SENT)
            self.assertTrue("*" in one or (ROOT / one).exists(), one)

    def test_the_engine_is_sent_what_the_packages_are_made_of(self):
        rules = (ROOT / "deploy" / "package" / "CMakeLists.txt").read_text()
        named = set(re.findall(r"\$\{CMAKE_SOURCE_DIR\}/([\w./@-]+)", rules))
        self.assertIn("deploy/systemd/percsd@.service", named)
        for one in named | {"deploy/package/share"}:
            folders = ["/".join(one.split("/")[:n]) for n in range(1, one.count("/") + 2)]
            self.assertTrue(set(folders) & set(self.SENT), one)
            self.assertTrue((ROOT / one).exists(), one)


class LossDeadlineTest(unittest.TestCase):
    """Between hosts nobody sees that a process is gone: a batch run would wait for ever."""

    def test_what_is_shipped_gives_one_that_outlives_a_dead_connection(self):
        """... which gRPC notices after two keepalives, to dial again."""
        channel = (ROOT / "proto" / "security" / "channel.cc").read_text()
        keepalive = int(re.search(r"kKeepaliveMs = ([\d']+)", channel)[1].replace("'", "")) / 1000
        for name in ("docker-compose.yml", "deploy/kubernetes/controller.yaml",
                     "deploy/systemd/percs-controller.service"):
            text = (ROOT / name).read_text()
            found = re.findall(r"--loss-deadline[ =](?:\$\{\w+:-)?(\d+)", text)
            self.assertEqual(1, len(found), name)
            self.assertGreater(int(found[0]), 2 * keepalive, name)


class RestartTest(unittest.TestCase):
    """A controller that is stopped and started again finds its state and its daemons."""

    COMPOSE = (ROOT / "docker-compose.yml").read_text()
    CONTROLLER = (ROOT / "deploy" / "kubernetes" / "controller.yaml").read_text()
    PERCSD = (ROOT / "deploy" / "kubernetes" / "percsd.yaml").read_text()
    UNITS = {name: (ROOT / "deploy" / "systemd" / name).read_text()
             for name in ("percs-controller.service", "percsd@.service")}

    def test_daemons_wait_for_longer_than_a_controller_takes_to_stop_and_to_start(self):
        for text in (self.COMPOSE, self.PERCSD, self.UNITS["percsd@.service"]):
            (wait,) = re.findall(r"--controller-timeout (\d+)", text)
            stop = max(map(int, re.findall(
                r"(?:stop_grace_period: |terminationGracePeriodSeconds: |TimeoutStopSec=)(\d+)",
                text)))
            self.assertGreaterEqual(int(wait), 5 * stop, text[:60])

    def test_a_controller_has_a_state_directory_that_outlives_it(self):
        self.assertIn("--state-dir /var/lib/percs", self.COMPOSE)
        self.assertIn("journal:/var/lib/percs", self.COMPOSE)
        self.assertIn("--state-dir=/var/lib/percs", self.CONTROLLER)
        self.assertIn("{name: journal, mountPath: /var/lib/percs}", self.CONTROLLER)
        self.assertIn("volumeClaimTemplates:", self.CONTROLLER)
        unit = self.UNITS["percs-controller.service"]
        self.assertIn("StateDirectory=percs\n", unit)
        self.assertIn("--state-dir ${STATE_DIRECTORY}", unit)

    def test_nothing_takes_the_daemons_down_with_the_controller(self):
        for name, unit in self.UNITS.items():
            for tie in ("PartOf=", "BindsTo=", "Requires=", "KillSignal=", "SuccessExitStatus="):
                self.assertNotIn(tie, unit, name)
            self.assertIn("Restart=on-failure\n", unit, name)
        hub = self.COMPOSE[self.COMPOSE.index("  hub: &hub"):self.COMPOSE.index("  prometheus:\n")]
        self.assertNotIn("depends_on: {controller", hub)
        self.assertNotIn("depends_on: [controller", hub)
        # A fabric that is shut down stays down.
        self.assertIn("restart: on-failure", self.COMPOSE)

    def test_a_job_of_slurm_shuts_its_fabric_down(self):
        script = SlurmTest.SCRIPT.read_text()
        finish = script[script.index("finish() {"):script.index("trap finish EXIT")]
        self.assertIn('percsctl" down --controller "$PERCS_CONTROLLER"', finish)


class SlurmTest(unittest.TestCase):
    SCRIPT = ROOT / "deploy" / "slurm" / "percs.sbatch"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "scenario.yaml").touch()

    def programs(self, *where):
        """A percsctl that says where it is and what it is to do, and fails."""
        into = self.folder.joinpath(*where)
        into.mkdir(parents=True)
        for name in ("percsd", "percs-controller", "percsctl"):
            (into / name).write_text('#!/bin/sh\necho "$0 $*" >&2\nexit 7\n')
            (into / name).chmod(0o755)
        return into

    def submit(self, **more):
        env = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "12", "SLURM_JOB_NUM_NODES": "1",
               "SLURM_SUBMIT_DIR": str(self.folder), **more}
        done = subprocess.run(["bash", self.SCRIPT, "scenario.yaml"], cwd=self.folder, env=env,
                              text=True, capture_output=True, timeout=60)
        return done.returncode, done.stderr

    def test_programs_are_those_asked_for_then_those_built_here_then_those_installed(self):
        installed = self.programs("installed")
        path = f"{installed}:/usr/bin:/bin"
        self.assertIn(f"no percsd in {self.folder}/build/bin or PATH; set PERCS_BIN_DIR",
                      self.submit()[1])
        self.assertIn(f"{installed}/percsctl ca ", self.submit(PATH=path)[1])
        built = self.programs("build", "bin")
        code, said = self.submit(PATH=path)
        self.assertEqual(7, code, said)
        self.assertIn(f"{built}/percsctl ca {os.path.realpath(self.folder)}/percs-12/tls", said)
        asked = self.programs("asked")
        self.assertIn(f"{asked}/percsctl ca ", self.submit(PATH=path, PERCS_BIN_DIR=str(asked))[1])

    def test_a_job_that_is_started_again_does_not_find_its_old_journal(self):
        self.programs("build", "bin")
        self.submit()
        self.assertIn("/percs-12.1/tls", self.submit(SLURM_RESTART_COUNT="1")[1])


class SystemdTest(unittest.TestCase):
    def test_a_daemon_is_started_again_until_its_predecessor_is_lost(self):
        """By default systemd gives up after five attempts within ten seconds."""
        unit = (ROOT / "deploy" / "systemd" / "percsd@.service").read_text()
        head = unit[unit.index("[Unit]\n"):unit.index("[Service]\n")].splitlines()
        self.assertIn("StartLimitIntervalSec=0", head)
        self.assertIn("Restart=on-failure", unit.splitlines())

    def test_units_have_few_rights(self):
        units = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
        self.assertEqual(2, len(units))
        for unit in units:
            lines = unit.read_text().splitlines()
            for line in HARDENING:
                self.assertIn(line, lines, unit.name)
            self.assertIn("User=percs", lines, unit.name)


if __name__ == "__main__":
    unittest.main()
