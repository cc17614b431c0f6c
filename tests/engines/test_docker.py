"""A real Docker engine, started here, runs the Compose file. Only under --full, and only as root.

Method: dockerd in network, mount and process namespaces of its own, so that its bridges and rules
are nobody else's and end with it. The base image comes from debootstrap; the shipped Dockerfile
installs a Debian package of this tree in it. `docker-compose up` brings eight hubs
(PERCS_DOCKER_HUBS=32 for as many) and Prometheus up; from outside, through the one port that is
published on loopback, percsctl applies a scenario and cuts a link at a virtual time. The result
must be that of the same in one process, Prometheus must see all of it, and `down` must leave
nothing behind. Then the commands of docs/deploy.md, as they are written there. Grafana is not
started: Debian has no package of it, so where docs/deploy.md starts it another image stands in.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
DOCKER = "/usr/bin/docker"  # Debian's, whose BuildKit needs no plugin
HUBS = int(os.environ.get("PERCS_DOCKER_HUBS", "8"))
LIMIT_SECONDS = 120
ALL_TO_ALL = """\
name: composed
topology: {supernodes: 1}
parameters: {retransmit_timeout: 20us, retransmit_tries: 3}  # what is sent to a lost hub fails soon
workload:
  all_to_all: {bytes: 4KiB, reliable: true, payload: verified}
run: {clock: live, pace: 10us/s}
"""
CUT = """\
faults:
  - {id: cut, at: 60us, link_down: sn0-d0-h0/sn0-d1-h0}
"""
FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())"
ENGINE = """\
mount -t proc proc /proc && ip link set lo up && sysctl -qw net.ipv4.ip_forward=1 || exit
exec dockerd --data-root "$0/data" --exec-root "$0/exec" --pidfile "$0/pid" --host "unix://$0/sock"
"""


@unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "needs root and a mirror: --full")
class DockerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("dockerd", "docker-compose", "debootstrap", "unshare", "nsenter"):
            if not shutil.which(tool):
                raise AssertionError(f"{tool} is not there; deploy/install --containers")
        if os.geteuid() != 0:
            raise AssertionError("only root can start dockerd")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-docker-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.env = dict(os.environ, DOCKER_HOST=f"unix://{cls.folder}/sock", DOCKER_BUILDKIT="1",
                       PERCS_HUBS=str(HUBS), PERCS_PROMETHEUS_IMAGE="percs-base",
                       COMPOSE_PROJECT_NAME="percs-test", XDG_STATE_HOME=str(cls.folder / "state"))
        cls.make_room_for_neighbours()
        cls.start_engine()
        cls.run_tool(ROOT / "deploy" / "docker" / "base", "percs-base", "prometheus")
        cls.build_image()

    @classmethod
    def make_room_for_neighbours(cls):
        """Every container knows the address of every other; the kernel has one table for all."""
        limit = pathlib.Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
        before = limit.read_text()
        if (HUBS + 3) ** 2 > int(before):
            cls.addClassCleanup(limit.write_text, before)
            limit.write_text(str(2 * (HUBS + 3) ** 2))

    @classmethod
    def start_engine(cls):
        log = open(cls.folder / "dockerd.log", "w")
        cls.addClassCleanup(log.close)
        engine = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENGINE,
             cls.folder], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            engine.kill()  # with it all of its namespaces
            engine.wait()

        cls.addClassCleanup(end)
        cls.wait_for("dockerd", lambda: cls.tool(DOCKER, "info").returncode == 0)
        children = pathlib.Path(f"/proc/{engine.pid}/task/{engine.pid}/children")
        cls.network = f"/proc/{children.read_text().split()[0]}/ns/net"

    @classmethod
    def build_image(cls):
        """In a copy, with a package of this tree."""
        context = cls.folder / "context"
        names = subprocess.run("git -c safe.directory=* ls-files -z".split(), cwd=ROOT, check=True,
                               stdout=subprocess.PIPE).stdout.decode().split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (context / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, context / name)
        (context / "build-package").mkdir()
        shutil.copy2(packages.build()["percs"], context / "build-package")
        (context / "build" / "bin").mkdir(parents=True)  # for the page's commands of the host
        shutil.copy2(BIN / "percsctl", context / "build" / "bin")
        cls.context = context
        cls.run_tool(DOCKER, "build", "-f", "deploy/docker/Dockerfile", "-t", "percs:0.1.0",
                     "--build-arg", "BASE=percs-base", "--build-arg", "PACKAGE=prebuilt", ".",
                     cwd=context)

    @classmethod
    def tool(cls, *command, **options):
        return subprocess.run(list(map(str, command)), env=cls.env, text=True, capture_output=True,
                              timeout=900, **options)

    @classmethod
    def run_tool(cls, *command, **options):
        done = cls.tool(*command, **options)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    @classmethod
    def compose(cls, *arguments):
        return cls.run_tool("docker-compose", *arguments, cwd=cls.context)

    @classmethod
    def outside(cls, *command):
        """On the engine's host, outside of its containers."""
        return cls.tool("nsenter", f"--net={cls.network}", *command)

    @classmethod
    def ctl(cls, *arguments):
        done = cls.outside(BIN / "percsctl", *arguments, "--name", "composed")
        assert done.returncode == 0, f"{arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    @classmethod
    def wait_for(cls, what, condition):
        last = None
        for _ in range(LIMIT_SECONDS * 4):
            last = condition()
            if last:
                return last
            time.sleep(0.25)
        log = (cls.folder / "dockerd.log").read_text()[-2000:]
        raise AssertionError(f"waited for {what}; last seen: {last}\n{log}")

    def import_context(self):
        """The operator's identity, as docker-compose.yml says; without it nothing is answered."""
        bundle = self.compose("run", "--rm", "-T", "--no-deps", "certs", "percsctl", "context",
                              "export", "/tls/operator")
        self.assertIn("PRIVATE KEY", bundle)
        file = self.folder / "operator.pem"
        file.write_text(bundle)
        self.run_tool(BIN / "percsctl", "context", "import", "composed", "--controller",
                      "127.0.0.1:18515", file)
        self.wait_for("the controller", lambda: "UNAUTH" not in self.outside(
            BIN / "percsctl", "status", "--name", "composed").stderr)
        plain = self.outside(BIN / "percsctl", "status", "--controller", "127.0.0.1:18515")
        self.assertEqual(4, plain.returncode, plain.stdout + plain.stderr)

    def prometheus(self, expression):
        query = urllib.parse.urlencode({"query": expression})
        done = self.outside(sys.executable, "-c", FETCH,
                            f"http://127.0.0.1:9090/api/v1/query?{query}")
        if done.returncode != 0:
            return None
        return [float(s["value"][1]) for s in json.loads(done.stdout)["data"]["result"]]

    def test_1_the_image_is_not_roots_and_has_the_programs(self):
        def inside(*command):
            return self.run_tool(DOCKER, "run", "--rm", "--network=none", "percs:0.1.0",
                                 *command).strip()

        self.assertEqual("10001", inside("id", "-u"))
        wire = json.loads(self.run_tool(BIN / "percsctl", "version", "--format", "json"))
        self.assertEqual(wire, json.loads(inside("percsctl", "version", "--format", "json")))
        self.assertIn("link-failure.yaml", inside("ls", "/usr/share/percs/scenarios"))
        self.assertEqual("install ok installed", inside("dpkg-query", "-Wf", "${Status}", "percs"))
        self.assertEqual("percs", inside("id", "-un"))

    def bring_up(self, *more):
        self.compose("up", "-d", "--no-build", "certs", "controller", "hub", *more)
        self.addCleanup(self.compose, "down", "-v")
        self.import_context()
        self.wait_for("all daemons", self.all_there)

    def all_there(self):
        return f"{HUBS} of {HUBS} connected" in self.outside(
            BIN / "percsctl", "status", "--name", "composed").stdout

    def test_2_a_supernode_in_containers_has_the_result_of_one_process(self):
        self.bring_up("prometheus")
        self.check_containers()
        plain, cut = self.folder / "plain.yaml", self.folder / "cut.yaml"
        plain.write_text(ALL_TO_ALL)
        cut.write_text(ALL_TO_ALL + CUT)
        self.ctl("apply", plain)
        done = self.outside(BIN / "percsctl", "fault", "link-down", "sn0-d0-h0/sn0-d1-h0", "--at",
                            "60us", "--name", "composed")
        self.assertEqual(0, done.returncode, done.stderr + self.outside(
            BIN / "percsctl", "status", "--name", "composed").stdout)
        result = json.loads(self.ctl("result", "--wait", "--format", "json"))
        alone = json.loads(self.run_tool(BIN / "percsctl", "run", cut, "--format", "json"))
        self.assertEqual(alone["digest"], result["digest"])
        self.assertEqual(f"{HUBS} daemons over tcp", result["placement"])
        self.assertGreater(result["virtual_seconds"], 60e-6)
        self.wait_for("Prometheus to have all of it", lambda: self.prometheus(
            "sum(percs_packets_delivered_total)") == [result["packets_delivered"]])
        self.assertEqual([HUBS + 1], self.prometheus("sum(up)"))
        self.compose("down", "-v")
        self.check_nothing_is_left()

    def check_nothing_is_left(self):
        self.assertEqual("", self.run_tool(DOCKER, "ps", "-aq"))
        self.assertEqual("", self.run_tool(DOCKER, "volume", "ls", "-q"))
        self.assertEqual(["bridge", "host", "none"], sorted(self.run_tool(
            DOCKER, "network", "ls", "--format", "{{.Name}}").split()))

    def test_4_the_commands_of_the_page_do_what_it_says(self):
        """The block of docs/deploy.md word for word; docker-compose stands for `docker compose`."""
        (block,) = re.findall(r"(?m)^In containers.*\n\n((?:    .*\n)+)",
                              (ROOT / "docs" / "deploy.md").read_text())
        self.assertIn("docker compose up -d --build", block)
        self.assertNotRegex(block, r"(?m)(^|\| *)\s*percsctl")  # nothing has to be in the PATH
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "docker").write_text(f'#!/bin/sh\n[ "$1" = compose ] || exec {DOCKER} "$@"\n'
                                      'shift\nexec docker-compose "$@"\n')
        (tools / "docker").chmod(0o755)
        env = dict(self.env, PATH=f"{tools}:{os.environ['PATH']}", PERCS_BASE="percs-base",
                   PERCS_PACKAGE="prebuilt", PERCS_GRAFANA_IMAGE="percs:0.1.0",
                   COMPOSE_PROJECT_NAME="percs-readme")
        self.addCleanup(subprocess.run, ["docker-compose", "down", "-v"], env=env,
                        cwd=self.context, capture_output=True, timeout=900)
        done = subprocess.run(
            ["nsenter", f"--net={self.network}", "bash", "-euxo", "pipefail", "-c", block], env=env,
            cwd=self.context, text=True, capture_output=True, timeout=900)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr[-4000:])
        alone = self.run_tool(BIN / "percsctl", "run", ROOT / "deploy/scenarios/link-failure.yaml",
                              "--format", "json")
        self.assertIn(json.loads(alone)["digest"], done.stdout)
        self.check_nothing_is_left()

    def test_3_a_killed_container_is_lost_and_the_journal_repeats_it(self):
        self.bring_up()
        plain = self.folder / "plain.yaml"
        plain.write_text(ALL_TO_ALL)
        self.ctl("apply", plain)
        self.ctl("fault", "link-down", "sn0-d0-h0/sn0-d1-h0")
        victim = self.run_tool(DOCKER, "ps", "-q", "--filter",
                               "label=com.docker.compose.service=hub").split()[0]
        self.run_tool(DOCKER, "kill", victim)
        result = json.loads(self.ctl("result", "--wait", "--format", "json"))
        self.assertEqual(1, len(result["lost"]), result["lost"])
        replayed = json.loads(self.compose("exec", "-T", "controller", "percsctl", "replay",
                                           "/var/lib/percs", "--format", "json"))
        self.assertEqual(result["digest"], replayed["digest"])
        # Its successor has the place for what comes next.
        self.run_tool(DOCKER, "start", victim)
        self.wait_for("the successor", self.all_there)
        alone = json.loads(self.run_tool(BIN / "percsctl", "run", plain, "--format", "json"))
        again = json.loads(self.ctl("apply", plain, "--wait", "--format", "json"))
        self.assertEqual(alone["digest"], again["digest"])

    def check_containers(self):
        names = self.run_tool(DOCKER, "ps", "-q").split()
        self.assertEqual(HUBS + 2, len(names))
        for one in json.loads(self.run_tool(DOCKER, "inspect", *names)):
            service = one["Config"]["Labels"]["com.docker.compose.service"]
            host = one["HostConfig"]
            self.assertFalse(host["Privileged"], service)
            self.assertEqual(["ALL"], host["CapDrop"], service)
            self.assertGreater(host["Memory"], 0, service)
            self.assertEqual("2", host["LogConfig"]["Config"]["max-file"], service)
            self.assertEqual(20, one["Config"]["StopTimeout"], service)
            self.assertNotIn(one["Config"]["User"], ("", "0", "root"), service)
            published = [p["HostIp"] for ports in one["NetworkSettings"]["Ports"].values()
                         for p in ports or []]
            self.assertEqual([] if service == "hub" else ["127.0.0.1"], published, service)
        self.wait_for("all to be healthy", lambda: len(self.run_tool(
            DOCKER, "ps", "-q", "--filter", "health=healthy").split()) == HUBS + 2)


if __name__ == "__main__":
    unittest.main()
