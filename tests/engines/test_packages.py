"""The Debian packages: what they hold, and what a machine that has nothing else can do with them.

Only with --full: it builds the programs of the preset `package`, and makes a Debian root with
debootstrap (needs root).
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-package"
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
percsctl stop --wait --name lab
percsctl result --name lab --format json >/tmp/result.json
percsctl down --name lab
percsctl run /usr/share/percs/scenarios/two-hubs.yaml --format json >/tmp/run.json
getent passwd percs
rm -rf /tmp/.local
"""
ZSH = """\
_describe() { print -l -- ${(P)2} }
_files() { print files }
compdef() { true }
source $1
words=(percsctl ${(z)2}) CURRENT=$((${#words}))
_percsctl
"""


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


@unittest.skipUnless(FULL, "packages are built with --full only")
class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        jobs = os.environ.get("PERCS_JOBS", "2")
        run("cmake", "--preset", "package", "--log-level=WARNING", cwd=ROOT)
        run("cmake", "--build", "--preset", "package", "-j", jobs, cwd=ROOT)
        cls.deb, = BUILD.glob("percs_*.deb")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.dev, = BUILD.glob("libpercs-dev_*.deb")
        for deb in (cls.deb, cls.dev):
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
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", self.deb,
                               self.dev], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
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

    def test_a_program_of_a_user_is_built_by_cmake_and_by_pkg_config(self):
        source = self.usr / "share/doc/libpercs-dev/examples/counter.cc"
        folder = self.folder / "mine"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(f"""\
cmake_minimum_required(VERSION 3.25)
project(mine CXX)
find_package(percs REQUIRED)
add_executable(mine {source})
target_link_libraries(mine PRIVATE percs::percs)
""")
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.usr}")
        run("cmake", "--build", folder / "build")
        pkg = self.usr / "lib" / run("gcc", "-print-multiarch").strip() / "pkgconfig"
        # The packages of Debian are where they are, and this one is not: its prefix is another.
        flags = run("pkg-config", f"--define-variable=prefix={self.usr}", "--cflags", "--libs",
                    "percs", env=dict(os.environ, PKG_CONFIG_PATH=str(pkg))).split()
        run("g++", "-std=c++20", source, *flags, "-o", folder / "other")
        for program in (folder / "build" / "mine", folder / "other"):
            done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertGreater(done.returncode, 0, "it says how it is called")

    def files_of(self, root):
        """Without what apt and dpkg write about themselves."""
        skip = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "tmp", "proc", "dev", "run",
                "etc/ld.so.cache")
        names = run("find", ".", "-xdev", cwd=root).splitlines()
        return {name for name in names if not name[2:].startswith(skip)}

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("debootstrap"),
                         "needs root and debootstrap")
    def test_a_root_with_nothing_else_runs_a_fabric_and_is_left_as_it_was(self):
        root = self.folder / "root"
        mirror = run("apt-get", "indextargets", "--format", "$(REPO_URI)",
                     "Codename: bookworm").splitlines()[0]
        run("debootstrap", "--variant=minbase", "bookworm", root, mirror)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        shutil.copy(self.deb, root / "tmp")

        def inside(*command):
            script = ('mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; ip link set lo up'
                      ' 2>/dev/null; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin '
                      'DEBIAN_FRONTEND=noninteractive chroot "$0" "$@"')
            return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
                       script, root, *command)

        inside("apt-get", "-q", "update")
        # What it needs stays when it goes; only its own files are compared.
        needs = run("dpkg-deb", "-f", self.deb, "Depends")
        names = [need.split()[0] for need in needs.split(", ")]
        inside("apt-get", "-qy", "--no-install-recommends", "install", *names)
        before = self.files_of(root), (root / "etc/passwd").read_text()
        inside("apt-get", "-qy", "--no-install-recommends", "install", f"/tmp/{self.deb.name}")
        self.assertFalse((root / "usr/bin/g++").exists())
        inside("bash", "-c", FIRST_HOUR)
        self.assertEqual([], json.loads((root / "tmp/result.json").read_text())["violations"])
        digest = json.loads((root / "tmp/run.json").read_text())["digest"]
        here = run(self.usr / "bin/percsctl", "run", "--format", "json",
                   self.usr / "share/percs/scenarios/two-hubs.yaml")
        self.assertEqual(json.loads(here)["digest"], digest)
        inside("apt-get", "-qy", "purge", "percs")
        self.assertEqual(before[0], self.files_of(root))
        self.assertEqual(before[1], (root / "etc/passwd").read_text())


if __name__ == "__main__":
    unittest.main()
