"""A real Slurm runs the shipped batch script over four nodes.

Method: a cluster of this test's own, by Debian's packages: munged with a key of its own, slurmctld
and four slurmd with a name, an address (127.0.0.1 to 127.0.0.4) and a port each, all as the user
who runs the test. The result of a job must be that of the same scenario in one process; a job that
fails must say why and leave nothing running. Everything of ours listens on loopback alone, Slurm's
own daemons on all interfaces, where they talk to nobody without the key. All of it ends with the
test.
"""

import ctypes
import getpass
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
SCRIPT = ROOT / "deploy" / "slurm" / "percs.sbatch"
SCENARIO = ROOT / "deploy" / "scenarios" / "link-failure.yaml"
SMALLER = ["--set", "workload.all_to_all.bytes=8KiB", "--seed", "5"]
NODES = [f"pn{i}" for i in range(1, 5)]
LIMIT_SECONDS = 60
TOOLS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}

CONFIGURATION = """\
ClusterName=percs
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
KillWait=2
MinJobAge=600
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def resolves_addresses():
    """Whether Slurm can: it asks in a way that knows no address where 127.0.0.1 is all there is."""
    try:
        socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror:
        return False
    return True


def move_to_own_network():
    """Gives this process and those it starts a loopback of their own, with a second address."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) == 0:
        for arguments in ("link set lo up", "address add 127.0.0.2/8 dev lo"):
            subprocess.run(["ip", *arguments.split()], check=True, timeout=LIMIT_SECONDS)
    if not resolves_addresses():
        raise AssertionError(
            "Slurm needs an interface with another address than 127.0.0.1; on a host without "
            "network `ip address add 127.0.0.2/8 dev lo` makes one (or run this test as root)")


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool, package in TOOLS.items():
            if not shutil.which(tool):
                raise AssertionError(f"{tool} of {package} is not there; deploy/install --engines")
        if not (BIN / "percsd").exists():
            raise AssertionError(f"no percsd in {BIN}; tests/run --tier build makes it")
        if not resolves_addresses():
            move_to_own_network()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.folder.chmod(0o755)  # munged wants its socket to be reachable for everybody
        cls.work = cls.folder / "work"
        cls.work.mkdir()
        cls.env = dict(os.environ, SLURM_CONF=str(cls.folder / "slurm.conf"),
                       PERCS_BIN_DIR=str(BIN), LC_ALL="C")
        cls.configure()
        cls.start_munge()
        cls.start("slurmctld", "-D")
        for node in NODES:
            cls.start("slurmd", "-D", "-N", node)
        cls.wait_for("four idle nodes", lambda: cls.run_tool(
            "sinfo", "--noheader", "--Node", "--states=idle", "--format=%N").split() == NODES)

    @classmethod
    def configure(cls):
        host = socket.gethostname().split(".")[0]
        ports = free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.{i} Port={ports[i]} CPUs=8"
            for i, node in enumerate(NODES, 1))
        (cls.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=host, ports=ports, user=getpass.getuser(), folder=cls.folder, nodes=nodes))
        # Else slurmd looks for a cgroup file system, which not every container has.
        (cls.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (cls.folder / "state").mkdir()
        for node in NODES:
            (cls.folder / f"spool.{node}").mkdir()

    @classmethod
    def start_munge(cls):
        keys = cls.folder / "keys"
        keys.mkdir(mode=0o700)
        (keys / "key").write_bytes(os.urandom(128))
        (keys / "key").chmod(0o600)
        socket_path = cls.folder / "socket"
        cls.start("munged", "--foreground", f"--key-file={keys}/key", f"--socket={socket_path}",
                  f"--pid-file={keys}/pid", f"--log-file={keys}/log", f"--seed-file={keys}/seed",
                  "--origin=127.0.0.1")
        cls.wait_for("munged", socket_path.exists)

    @classmethod
    def start(cls, *command):
        name = "-".join(part for part in command if not part.startswith("-"))
        log = open(cls.folder / f"{name}.out", "w")
        cls.addClassCleanup(log.close)
        process = subprocess.Popen(command, env=cls.env, cwd=cls.folder, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log)

        def end():
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        cls.addClassCleanup(end)

    @classmethod
    def run_tool(cls, *command):
        done = subprocess.run(list(map(str, command)), env=cls.env, cwd=cls.work, text=True,
                              capture_output=True, timeout=LIMIT_SECONDS)
        return done.stdout if done.returncode == 0 else f"{done.stdout}{done.stderr}"

    @classmethod
    def wait_for(cls, what, condition):
        last = None
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            last = condition()
            if last:
                return last
            time.sleep(0.2)
        outs = "\n".join(f"{p.name}: {p.read_text()[-400:]}" for p in cls.folder.glob("*.out"))
        raise AssertionError(f"waited for {what}; last seen: {last}\n{outs}")

    def submit(self, *arguments):
        """The job's number."""
        answer = self.run_tool("sbatch", "--parsable", *arguments)
        job = answer.strip()
        self.assertTrue(job.isdigit(), answer)
        self.addCleanup(self.run_tool, "scancel", "--full", job)
        return job

    def end_of(self, job):
        """State and exit code of a job that has ended, its log and its folder."""
        def fields():
            text = self.run_tool("scontrol", "--oneliner", "show", "job", job)
            found = dict(word.split("=", 1) for word in text.split() if "=" in word)
            return found.get("JobState") not in ("PENDING", "RUNNING", "COMPLETING") and found

        seen = self.wait_for(f"the end of job {job}", fields)
        log = self.work / f"percs-{job}.log"
        return (seen["JobState"], int(seen["ExitCode"].split(":")[0]),
                log.read_text() if log.exists() else "", self.work / f"percs-{job}")

    def assert_nothing_runs(self):
        """No controller and no daemon outlives its job."""
        def left():
            found = []
            for path in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    environment = (path / "environ").read_bytes().split(b"\0")
                    name = (path / "comm").read_text().strip()
                except OSError:
                    continue
                if f"SLURM_CONF={self.folder}/slurm.conf".encode() in environment and (
                        name.startswith("percs")):
                    found.append(f"{path.name} {name}")
            return found

        self.wait_for("all processes of the job to end", lambda: not left())

    def test_a_job_over_four_nodes_has_the_result_of_one_process(self):
        state, code, log, folder = self.end_of(self.submit(
            "--nodes=4", "--ntasks-per-node=2", SCRIPT, SCENARIO, *SMALLER))
        self.assertEqual(("COMPLETED", 0), (state, code), log)
        result = json.loads((folder / "result.json").read_text())
        alone = json.loads(self.run_tool(BIN / "percsctl", "run", SCENARIO, *SMALLER, "--format",
                                         "json"))
        self.assertEqual(alone["digest"], result["digest"])
        self.assertIn(f"digest {alone['digest']}\n", log)
        self.assertEqual(32, result["nodes"])
        self.assertIn("8 daemons", result["placement"])
        where = [(folder / f"percsd-{task}.log").read_text().splitlines()[0] for task in range(8)]
        self.assertEqual([f"task {task} on {NODES[task // 2]} at 127.0.0.{task // 2 + 1}"
                          for task in range(8)], where)
        self.assertIn("on pn1\n", log)
        self.assert_nothing_runs()

    @unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "32 daemons: --full")
    def test_the_command_of_the_page_does_what_it_says(self):
        """Word for word, from a folder that has `deploy` and `build` as the repository has."""
        (line,) = re.findall(r"(?m)^    sbatch (.*)$", (ROOT / "docs" / "deploy.md").read_text())
        if not (self.work / "deploy").exists():
            (self.work / "deploy").symlink_to(ROOT / "deploy")
            (self.work / "build").mkdir()
            (self.work / "build" / "bin").symlink_to(BIN.resolve())
        with unittest.mock.patch.dict(self.env):
            del self.env["PERCS_BIN_DIR"]
            job = self.submit(*line.split())
        state, code, log, folder = self.end_of(job)
        self.assertEqual(("COMPLETED", 0), (state, code), log)
        result = json.loads((folder / "result.json").read_text())
        alone = json.loads(self.run_tool(BIN / "percsctl", "run", SCENARIO, "--format", "json"))
        self.assertEqual(alone["digest"], result["digest"])
        self.assertIn("32 daemons", result["placement"])
        self.assert_nothing_runs()

    def sweep(self, folder, *options):
        return [BIN / "percsctl", "sweep", SCENARIO, "-o", folder, "--over",
                "workload.all_to_all.bytes=1KiB,2KiB,4KiB,8KiB", "--repeat", "3", *options]

    def test_a_sweep_as_a_job_array_is_killed_continued_and_has_the_same_table(self):
        def arrays():
            return {log.name.split("_")[0] for log in (self.work / "array/slurm").glob("*.log")}

        self.run_tool(*self.sweep("alone"))
        first = subprocess.Popen(list(map(str, self.sweep("array", "--slurm", "--jobs", "4"))),
                                 env=self.env, cwd=self.work, stderr=subprocess.DEVNULL)
        try:
            self.wait_for("a task of the array", arrays)
        finally:
            first.kill()
            first.wait()
        said = self.run_tool(*self.sweep("array", "--slurm", "--jobs", "4"))
        self.assertIn("12 points", said)
        self.assertEqual((self.work / "alone/table.csv").read_text(),
                         (self.work / "array/table.csv").read_text())
        self.assertEqual(1, len(arrays()), "the second command waits for the array of the first")
        self.assertIn(" 0 of them computed now", self.run_tool(*self.sweep("array", "--slurm")))
        self.assertEqual(1, len(arrays()))
        self.assert_nothing_runs()

    def waiting(self, command):
        """The command, once its array is submitted."""
        process = subprocess.Popen(list(map(str, command)), env=self.env, cwd=self.work, text=True,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for("an array", lambda: self.run_tool("squeue", "--noheader"))
        return process

    def test_a_job_array_that_is_refused_or_cancelled_says_so_and_is_submitted_again(self):
        command = self.sweep("gone", "--slurm", "--jobs", "2")
        with unittest.mock.patch.dict(self.env, SBATCH_TIMELIMIT="nonsense"):
            self.assertIn("Invalid --time specification", self.run_tool(*command))
        states = ("scontrol", "update", f"NodeName={','.join(NODES)}", "Reason=test")
        self.run_tool(*states, "State=drain")
        try:
            self.waiting(command).kill()
            self.assertIn("wait for it with --slurm", self.run_tool(*self.sweep("gone")))
            self.run_tool("scancel", "--me")
            self.wait_for("no array", lambda: not self.run_tool("squeue", "--noheader"))
            waiting = self.waiting(command)
            self.run_tool("scancel", "--me")
            said = waiting.communicate(timeout=LIMIT_SECONDS)[1]
        finally:
            self.run_tool(*states, "State=resume")
        self.assertRegex(said, "job array [0-9]+ has ended, and 12 of 12 points are missing")
        self.assertIn("12 points, 12 of them computed now", self.run_tool(*command))

    def test_a_job_that_fails_says_why_and_leaves_nothing_behind(self):
        wrong = self.work / "wrong.yaml"
        wrong.write_text("name: wrong\ntopology: {super_nodes: 1}\n")
        state, code, log, folder = self.end_of(self.submit("--nodes=4", SCRIPT, wrong))
        self.assertEqual(("FAILED", 3), (state, code), log)
        self.assertIn("unknown field; did you mean", log)
        self.assertEqual(4, len(list(folder.glob("percsd-*.log"))))
        self.assert_nothing_runs()

    def test_a_running_job_answers_percsctl_and_can_be_cancelled(self):
        job = self.submit("--nodes=2", SCRIPT, SCENARIO, *SMALLER, "--hold")
        log = self.work / f"percs-{job}.log"
        first = self.wait_for("the controller's address", lambda: re.search(
            r"^controller of 2 daemons: (\S+) on pn1$", log.read_text() if log.exists() else "",
            re.M))

        operator = self.work / f"percs-{job}" / "tls" / "operator"

        def held():
            answer = self.run_tool(BIN / "percsctl", "status", "--controller", first[1],
                                   "--tls", operator, "--format", "json")
            return answer.startswith("{") and json.loads(answer)["state"] == "idle"

        self.wait_for("the end of the traffic", held)
        self.run_tool("scancel", job)
        self.assertEqual("CANCELLED", self.end_of(job)[0])
        self.assert_nothing_runs()


if __name__ == "__main__":
    unittest.main()
