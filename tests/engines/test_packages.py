"""The Debian packages: what they hold, and what a machine that has nothing else can do with them.

Only with --full: it builds the programs of the preset `package`, and makes a Debian root with
debootstrap (needs root). Its units run under the systemd of such a root, in systemd-nspawn.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULL = os.environ.get("PERCS_FULL") == "1"
# In a root that is otherwise empty: the first hour of a user.
FIRST_HOUR = """\
set -eu
cd /tmp
export HOME=/tmp
percsctl --version | head -n 1
percsctl up --name lab --daemons 2
percsctl apply /usr/share/percs/scenarios/live.yaml --name lab
percsctl fault link-down sn0-d0-h0/sn0-d1-h0 --name lab
percsctl links --down --name lab
echo q | TERM=xterm script -qec "percsctl top --name lab" /tmp/top.log >/tmp/top.out
grep -q "sn0-d.-h" /tmp/top.log
percsctl stop --wait --name lab
percsctl result --name lab --format json >/tmp/result.json
percsctl down --name lab
percsctl run /usr/share/percs/scenarios/two-hubs.yaml --format json >/tmp/run.json
getent passwd percs
rm -rf /tmp/.local
"""
PYTHON = """\
import os
os.environ["HOME"] = "/tmp"
import percs
print(percs.run("/usr/share/percs/scenarios/two-hubs.yaml").digest)
live = percs.Scenario.load("/usr/share/percs/scenarios/live.yaml").set("run.pace", "max")
with percs.Fabric.local(daemons=2) as fabric:
    fabric.apply(live, hold=True)
    with fabric.fault("cut", kind="link_down", link="sn0-d0-h0:LR0"):
        print(len(fabric.links(down=True)) == 1)
    fabric.stop()
"""
TRY_UNITS = """\
[Service]
Type=oneshot
ExecStart=/bin/bash /usr/sbin/try-units
ExecStopPost=/usr/bin/systemctl --no-block poweroff
StandardOutput=file:/units.log
StandardError=inherit
"""
# What docs/deploy.md asks of an administrator.
UNITS = """\
set -eux
percsctl ca /etc/percs/tls
chown -R percs: /etc/percs/tls
sed -i s/PERCS_DAEMONS=1/PERCS_DAEMONS=2/ /etc/percs/controller.env
at="--controller 127.0.0.1:18515 --tls /etc/percs/tls/operator"
systemctl start percs-controller percsd@0 percsd@1
for i in $(seq 600); do
  percsctl status $at | grep -q '2 of 2 connected' && break
  sleep 0.1
done
percsctl apply /usr/share/percs/scenarios/two-hubs.yaml --wait --format json $at >/units.json
systemctl is-active percs-controller percsd@0 percsd@1
systemctl stop percsd@0 percsd@1 percs-controller
for unit in percs-controller percsd@0 percsd@1; do
  test "$(systemctl is-active $unit)" = inactive
done
results=$(systemctl show --property=Result --value percs-controller percsd@0 percsd@1)
test "$(xargs -n 1 <<<"$results" | sort -u)" = success
echo "all units started and stopped"
systemctl enable --now percs-controller percsd@0 percsd@1
systemctl is-active percs-controller percsd@0 percsd@1
dpkg --purge python3-percs percs
test ! -e /etc/percs
test ! -e /var/lib/percs
test -z "$(find /etc/systemd -name '*percs*')"
test -z "$(find /proc/[0-9]*/exe -lname '*percs*' 2>&1)"
echo "removed while they ran"
"""
FIVE_LINES = """\
cmake_minimum_required(VERSION 3.25)
project(mine CXX)
find_package(percs REQUIRED)
add_executable(mine /usr/share/doc/libpercs-dev/examples/counter.cc)
target_link_libraries(mine PRIVATE percs::percs)
"""
# One program, built twice, each time two of it that share a counter.
PROGRAM = """\
set -eu
cd /tmp/mine
export HOME=/tmp
cmake -S . -B build >cmake.log
cmake --build build >>cmake.log
g++ -std=c++20 /usr/share/doc/libpercs-dev/examples/counter.cc $(pkg-config --cflags --libs percs) \
  -o other
for program in build/mine ./other; do
  percsctl up --name lab --daemons 2 >up.log
  percsctl apply /usr/share/percs/scenarios/two-windows.yaml --name lab --hold >>up.log
  at=unix:/tmp/.local/state/percs/lab/controller.sock
  $program $at sn0-d0-h0 0 own 100 >owner.log &
  until grep -qs ready owner.log; do sleep 0.1; done
  $program $at sn0-d1-h0 1 add sn0-d0-h0 0 100
  wait
  cat owner.log
  rm owner.log
  percsctl down --name lab >>up.log
done
"""
ZSH = """\
_describe() { print -l -- ${(P)2} }
_files() { print files }
compdef() { true }
source $1
words=(percsctl ${(z)2}) CURRENT=$((${#words}))
_percsctl
"""


NEEDS_A_ROOT = unittest.skipUnless(os.geteuid() == 0 and shutil.which("debootstrap"),
                                   "needs root and debootstrap")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise AssertionError(f"{command[-3:]}: {done.returncode}\n{done.stdout[-2000:]}"
                             f"{done.stderr[-4000:]}")
    return done.stdout


@unittest.skipUnless(FULL, "packages are built with --full only")
class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        debs = packages.build()
        cls.deb, cls.dev, cls.python = (debs[name] for name in
                                        ("percs", "libpercs-dev", "python3-percs"))
        cls.mpi = debs.get("percs-mpi")  # where Open MPI's headers are
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for deb in (cls.deb, cls.dev, cls.python):
            run("dpkg-deb", "-x", deb, cls.folder / "files")
        cls.usr = cls.folder / "files" / "usr"

    def test_the_programs_package_has_what_it_says(self):
        for name in ("bin/percsctl", "bin/percsd", "bin/percs-controller",
                     "share/percs/scenarios/one-drawer.yaml", "share/man/man1/percsctl.1.gz",
                     "share/man/man1/percsctl-sweep.1.gz", "share/man/man8/percsd.8.gz",
                     "share/bash-completion/completions/percsctl",
                     "share/zsh/vendor-completions/_percsctl",
                     "share/fish/vendor_completions.d/percsctl.fish", "share/doc/percs/cli.md",
                     "lib/systemd/system/percsd@.service", "lib/sysusers.d/percs.conf"):
            self.assertTrue((self.usr / name).is_file(), name)
        commands = run(self.usr / "bin" / "percsctl", "__complete", "").splitlines()
        pages = {page.name for page in (self.usr / "share/man/man1").iterdir()}
        self.assertEqual({"percsctl.1.gz"} | {f"percsctl-{line.split()[0]}.1.gz"
                                              for line in commands}, pages)

    def test_lintian_finds_no_error(self):
        debs = [deb for deb in (self.deb, self.dev, self.python, self.mpi) if deb]
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", *debs], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)

    def test_every_man_page_is_formatted_without_a_warning(self):
        for page in sorted(self.usr.glob("share/man/man*/*.gz")):
            done = subprocess.run(["man", "--warnings", "-l", page], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
            self.assertEqual((0, ""), (done.returncode, done.stderr), page.name)
            self.assertIn("OPTIONS", done.stdout.upper(), page.name)

    def test_installed_completions_work_in_their_shells(self):
        env = dict(os.environ, PATH=f"{self.usr}/bin:{os.environ['PATH']}")
        fish = run("fish", "--no-config", "-c", f"source {self.usr}/share/fish/"
                   "vendor_completions.d/percsctl.fish; complete -C 'percsctl run --thr'", env=env)
        self.assertTrue(fish.startswith("--threads\tThreads to run on"), fish)
        zsh = self.usr / "share/zsh/vendor-completions/_percsctl"
        answer = run("zsh", "-fc", ZSH, "zsh", zsh, "run --thr", env=env)
        self.assertTrue(answer.startswith("--threads:Threads to run on"), answer)
        bash = run("bash", "-c", f"source {self.usr}/share/bash-completion/completions/percsctl; "
                   "compopt() { :; }; COMP_LINE='percsctl run --thr' COMP_POINT=18; _percsctl; "
                   'echo "${COMPREPLY[@]}"', env=env)
        self.assertEqual("--threads\n", bash)

    def test_headers_include_nothing_of_the_inside(self):
        (header,) = [path for path in self.usr.glob("include/**/*") if path.is_file()]
        includes = re.findall(r'#include ([<"]\S+)', header.read_text())
        self.assertEqual([], [name for name in includes
                              if not re.match(r"<[a-z_]+>|\"absl/", name)])

    def test_the_package_for_mpi_has_the_component_of_open_mpi(self):
        if not self.mpi:
            self.skipTest("no headers of Open MPI here; deploy/install --mpi installs them")
        component = "./usr/lib/percs/mca_coll_percs.so\n"
        self.assertIn(component, run("dpkg-deb", "-c", self.mpi))
        self.assertNotIn(component, run("dpkg-deb", "-c", self.deb), "one package has it")
        self.assertRegex(run("dpkg-deb", "-f", self.mpi, "Depends"), r"\bpercs \(= .*openmpi-bin")

    def files_of(self, root):
        """Without what apt and dpkg write about themselves."""
        skip = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "tmp", "proc", "dev", "run",
                "etc/ld.so.cache")
        names = run("find", ".", "-xdev", cwd=root).splitlines()
        return {name for name in names if not name[2:].startswith(skip)}

    def root(self, name):
        """A Debian root of its own, with nothing in it but Debian's smallest set of packages."""
        base = self.folder / "base"
        if not base.exists():
            mirror = run("apt-get", "indextargets", "--format", "$(REPO_URI)",
                         "Codename: bookworm").splitlines()[0]
            run("debootstrap", "--variant=minbase", "bookworm", base, mirror)
            shutil.copy("/etc/resolv.conf", base / "etc/resolv.conf")
            self.inside(base, "apt-get", "-q", "update")
            for deb in (self.deb, self.dev, self.python):
                shutil.copy(deb, base / "tmp")
        run("cp", "-a", "--reflink=auto", base, self.folder / name)
        return self.folder / name

    @staticmethod
    def inside(root, *command):
        script = ('mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; ip link set lo up'
                  ' 2>/dev/null; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin '
                  'DEBIAN_FRONTEND=noninteractive chroot "$0" "$@"')
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
                   script, root, *command)

    def install(self, root, *packages):
        self.inside(root, "apt-get", "-qy", "--no-install-recommends", "install", *packages)

    @NEEDS_A_ROOT
    def test_a_root_with_nothing_else_runs_a_fabric_and_is_left_as_it_was(self):
        root = self.root("root")
        # What they need stays when they go; only their own files are compared.
        needs = ", ".join(run("dpkg-deb", "-f", deb, "Depends") for deb in (self.deb, self.python))
        names = {need.split()[0] for need in needs.split(", ")} - {"percs"}
        self.install(root, *sorted(names))
        before = self.files_of(root), (root / "etc/passwd").read_text()
        self.install(root, f"/tmp/{self.deb.name}", f"/tmp/{self.python.name}")
        self.assertFalse((root / "usr/bin/g++").exists())
        self.inside(root, "bash", "-c", FIRST_HOUR)
        self.assertEqual([], json.loads((root / "tmp/result.json").read_text())["violations"])
        digest = json.loads((root / "tmp/run.json").read_text())["digest"]
        here = run(self.usr / "bin/percsctl", "run", "--format", "json",
                   self.usr / "share/percs/scenarios/two-hubs.yaml")
        self.assertEqual(json.loads(here)["digest"], digest)
        self.assertEqual(f"{digest}\nTrue\n", self.inside(root, "python3", "-c", PYTHON))
        if shutil.which("systemd-nspawn"):
            self.start_and_stop_units(root, digest)
        self.inside(root, "apt-get", "-qy", "purge", "python3-percs", "percs")
        self.assertEqual(before[0], self.files_of(root))
        self.assertEqual(before[1], (root / "etc/passwd").read_text())

    def start_and_stop_units(self, root, digest):
        """As installed, by a systemd of its own: a copy of the root is booted."""
        copy = self.folder / "booted"
        run("cp", "-a", "--reflink=auto", root, copy)
        (copy / "usr/sbin/try-units").write_text(UNITS)
        (copy / "usr/lib/systemd/system/try-units.service").write_text(TRY_UNITS)
        wants = copy / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        (wants / "try-units.service").symlink_to("/usr/lib/systemd/system/try-units.service")
        subprocess.run(["systemd-nspawn", "--quiet", "--directory", copy, "--boot",
                        "--register=no", "--keep-unit", "--private-network"],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.STDOUT, timeout=300)
        log = (copy / "units.log").read_text()
        self.assertIn("\nall units started and stopped\n", log)
        self.assertIn("\nremoved while they ran\n", log)
        self.assertEqual(digest, json.loads((copy / "units.json").read_text())["digest"], log)

    @NEEDS_A_ROOT
    def test_a_program_of_a_user_is_built_in_a_root_with_a_compiler_and_runs(self):
        root = self.root("compiler")
        self.install(root, "g++", "cmake", "make", "pkg-config", f"/tmp/{self.deb.name}",
                     f"/tmp/{self.dev.name}")
        mine = root / "tmp/mine"
        mine.mkdir()
        (mine / "CMakeLists.txt").write_text(FIVE_LINES)
        self.assertEqual(5, len(FIVE_LINES.splitlines()))
        said = self.inside(root, "bash", "-c", PROGRAM)
        self.assertEqual(2, said.count("100 numbers, the last 99\n"), said)
        self.assertEqual(2, said.count("counted to 100\n"), said)


if __name__ == "__main__":
    unittest.main()
