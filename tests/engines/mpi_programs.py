"""Programs as Debian ships them, and ours, and what of their output says what they computed."""

import dataclasses
import pathlib
import re
import shutil

from mpi_fixture import PROGRAMS, SCALAPACK, MpiFixture

LIMIT_SECONDS = 600
FOUR_BY_EIGHT = "name: four by eight\ntopology: {supernodes: 1, drawers: 4, hubs: 8}\n"
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 10
run 100
"""
HPCC = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


@dataclasses.dataclass
class Shipped:
    """A program, and which lines of its output say what it computed."""
    ranks: int
    command: list
    result: str  # pattern: the part of a line that has nothing to do with time
    least: int   # such lines
    file: str = ""  # where they are, if not in standard output
    digest: bool = True  # else it sends memory that it never wrote, which has addresses


SHIPPED = {
    "suite": Shipped(5, ["{path}/suite"], r"^.* [0-9a-f]{16}$", 8),
    "ring": Shipped(5, ["{path}/ring"], r"^sum, least, seconds.*", 1),
    "mpi4py": Shipped(4, ["/usr/bin/python3", str(PROGRAMS / "pickles.py")], r"^[\[r].*", 7),
    "NetPIPE": Shipped(2, ["sh", "-c", "exec NPopenmpi -n 20 -u 65536 2>&1"],
                       r"^ *\d+: +\d+ bytes +20 times", 60),
    "NetPIPE's check": Shipped(2, ["sh", "-c", "exec NPopenmpi -i -n 3 -u 65536 2>&1"],
                               r"^.* bytes .*Integrity check passed", 28),
    "LAMMPS": Shipped(32, ["lmp", "-in", "in.melt", "-log", "none"], r"^ +\d+ +[\d.]+ +-[\d.]+ .*",
                      11),
    # Not the scaled residual of StarDGEMM, which draws its matrices by the clock.
    "HPCC": Shipped(4, ["hpcc"],
                    r"^(WALL|CPU)( +\d+){6}|^(Found|Node.s. with|Solution).*|"
                    r"^(?!Scaled).*(residual|tests comp).*|"
                    r"^\w+(residual|Errors\w*|maxErr|Success)=.*",
                    20, "hpccoutf.txt", digest=False),
}


class ProgramsFixture(MpiFixture):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.compile(PROGRAMS / "ring.f90")
        (cls.path / "in.melt").write_text(MELT)
        (cls.path / "four.yaml").write_text(FOUR_BY_EIGHT)
        for file in SCALAPACK.glob("*.dat"):
            shutil.copy(file, cls.path)
        if HPCC.exists():  # small
            text = HPCC.read_text().replace("1000         Ns", "64           Ns")
            (cls.path / "hpccinf.txt").write_text(text.replace("80           NBs", "16 NBs"))

    def command(self, shipped):
        return [word.format(path=self.path) for word in shipped.command]

    def output(self, shipped, printed):
        """Lines of ranks come in any order."""
        file = self.path / shipped.file
        text = printed
        if shipped.file:
            text += file.read_text()
            file.unlink()
        return sorted(text.splitlines())

    def on_machine(self, shipped, *options):
        printed, report = self.report(shipped.ranks, *options, program=self.command(shipped),
                                      cwd=self.path, limit=LIMIT_SECONDS)
        return self.output(shipped, printed), report

    def results(self, shipped, lines):
        found = [match.group(0) for line in lines if (match := re.search(shipped.result, line))]
        self.assertGreaterEqual(len(found), shipped.least, lines)
        return found

    def assert_same_program(self, shipped, one, other):
        if not shipped.digest:
            one, other = {**one, "digest": ""}, {**other, "digest": ""}
        self.assert_same_run(one, other)
