"""Every command of percsctl has a call of the Python package, and the call works.

Method: the table of docs/python.md beside the commands and options that `percsctl --help` lists;
each command is called once, on one fabric. Then the program and the outputs of that page.
"""

import contextlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import unittest

from fabric import BIN, PATIENCE_SECONDS, ROOT, percsctl, percsctl_json
from python_package import ENDLESS, MEASURED, PackageTest, SCENARIOS, percs

sys.path.insert(0, str(ROOT / "docs" / "site"))
from cli_pages import inner_commands  # noqa: E402

PAGE = (ROOT / "docs" / "python.md").read_text()
CUT = "sn0-d0-h0:LR0"
# Of the fabric, of the scenario, or how it is printed: the page says what they are.
EVERYWHERE = {"help", "version", "name", "controller", "tls", "format", "set", "seed", "progress"}
RENAMED = {"from": "from_", "for": "for_", "in": "in_", "size": "sizes", "bytes": "sizes"}
# Options that are calls of their own, or arguments of another name.
ELSEWHERE = {("collective", "every_root"): "percs.collective_roots",
             ("apply", "wait"): "percs.Run.result", ("counters", "list"): "percs.counter_list",
             ("counters", "per_node"): "percs.Fabric.counters:per_hub",
             ("down", "all"): "percs.down_all", ("sweep", "over"): "percs.sweep",
             ("sweep", "output"): "percs.sweep:cache", ("replay", "list"): "percs.journal",
             ("replay", "distributed"): "percs.Fabric.replay",
             ("restore", "distributed"): "percs.Fabric.restore",
             ("trace", "apply"): "percs.Fabric.trace:scenario",
             ("trace", "follow"): "percs.percsctl",
             ("ping", "bytes"): "percs.ping:bytes"}


def help_of(*command):
    return percsctl(*command, "--help").stdout


def commands():
    """Those that do something: groups only where they do something themselves."""
    for name in inner_commands(help_of()):
        if name == "fabric":  # Fabric.command has all of them
            yield "fabric COMMAND"
            continue
        inner = inner_commands(help_of(name))
        if not inner or name == "routes":
            yield name
        yield from (f"{name} {one}" for one in inner)


def table():
    """The calls of each command."""
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE.partition("| command | call |")[2], re.M)
    return {command: re.findall(r"`([\w.]+)(?:\(\))?`", calls) for command, calls in rows}


def resolve(name):
    found = percs
    for part in name.removeprefix("percs.").split("."):
        found = inspect.getattr_static(found, part)
    found = getattr(found, "__func__", found)
    return getattr(found, "fget", found)


class TableTest(unittest.TestCase):
    def test_every_command_has_a_row_and_every_row_a_command(self):
        self.assertEqual(sorted(commands()), sorted(table()))

    def test_every_call_of_the_table_is_there_and_says_what_it_does(self):
        for command, calls in table().items():
            for call in calls:
                with self.subTest(command=command, call=call):
                    self.assertTrue(inspect.getdoc(resolve(call)), "no docstring")

    def test_every_option_is_an_argument(self):
        for command, calls in table().items():
            names = set()
            for call in calls:
                signature = inspect.signature(resolve(call)) if callable(resolve(call)) else None
                for name, parameter in (signature.parameters if signature else {}).items():
                    names.add(name)
                    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                        names |= {"**"}
            text = help_of(*command.removesuffix(" COMMAND").split())
            for option in re.findall(r"^  (?:-\w,)?--([a-z][a-z-]*)", text, re.M):
                option = option.replace("-", "_")
                other, _, argument = ELSEWHERE.get((command, option), "").partition(":")
                with self.subTest(command=command, option=option):
                    if other:
                        there = resolve(other)
                        self.assertTrue(not argument or
                                        argument in inspect.signature(there).parameters)
                    elif "**" not in names:
                        self.assertIn(RENAMED.get(option, option), names | EVERYWHERE)

    def test_every_public_name_has_a_docstring(self):
        for name in percs.__all__:
            value = getattr(percs, name)
            self.assertTrue(inspect.getdoc(value), name)
            members = vars(value).items() if inspect.isclass(value) else ()
            for member, function in members:
                if not member.startswith("_") and inspect.isfunction(function):
                    self.assertTrue(inspect.getdoc(function), f"{name}.{member}")


class CallsTest(PackageTest):
    """Each test calls commands of its name's part of the table."""

    called = set()

    def call(self, command, function, *arguments, **options):
        self.called.add(command)
        self.assertIn(command, table())
        return function(*arguments, **options)

    def test_in_this_process(self):
        scenario = percs.Scenario.from_text(MEASURED)
        call = self.call
        result = call("run", percs.run, scenario, threads=2, events=True,
                      checkpoint=self.folder / "at10", checkpoint_at="10us")
        self.assertEqual(result.digest, call("restore", percs.restore, self.folder / "at10").digest)
        links = []
        looked_at = percs.run(scenario, page="127.0.0.1:0", on_page=links.append)
        self.assertRegex("".join(links), r"^http://127\.0\.0\.1:\d+/#[0-9a-f]{32}$")
        self.assertEqual(percs.run(scenario).digest, looked_at.digest)
        self.assertTrue(call("check", percs.check, sorted(SCENARIOS.glob("*.yaml")))[0]["ok"])
        self.assertIn("definitions", call("schema", percs.schema))
        frame = call("collective", percs.collective, "allreduce", nodes=2, tasks=2,
                     sizes=[8, "1KiB"], iterations=3)
        self.assertEqual([8, 1024], list(frame["bytes"]))
        self.assertTrue((frame["fastest_ns"] <= frame["mean_ns"]).all())
        roots = percs.collective_roots("broadcast", nodes=1, tasks=4, algorithm="shm:one-buffer")
        self.assertEqual([0, 1, 2, 3, "rotating"], list(roots.index))
        self.assertLess(roots[0], roots["rotating"])
        blade = percs.collective("barrier", blade="QS20", iterations=3)
        self.assertGreater(blade["nanoseconds"].iloc[0], 0)
        self.assertRegex(call("mpirun", percs.mpirun, ["true"], ranks=2, dry_run=True),
                         r"mpirun\S* -n 2")
        trips = call("ping", percs.ping, "sn0-d0-h0", "sn1-d0-h0", count=3)
        raw = percsctl_json("ping", "sn0-d0-h0", "sn1-d0-h0", "--count", 3)
        self.assertEqual([ps / 1000 for ps in raw["round_trips_ps"]], list(trips["round_trip_ns"]))
        frame = call("perf", percs.perf, "sn0-d0-h0", "sn0-d0-h1", sizes=[8, 64], mode="fifo",
                     iterations=3)
        self.assertEqual("fifo", frame.attrs["mode"])
        self.assertEqual(2, len(frame))
        self.assertEqual(1, len(percs.perf("triblade0:spe0", "triblade0:spe8", sizes=64)))
        grid = {"workload.pattern.load": [0.1, 0.2], "topology.hubs": "2..4:2"}
        swept = call("sweep", percs.sweep, scenario, grid, repeat=2, jobs=2,
                     cache=self.folder / "grid")
        self.assertEqual(8, len(swept))
        self.assertEqual(percs.run(scenario.copy().set("workload.pattern.load", 0.1)
                                   .set("topology.hubs", 2)).digest, swept["digest"].iloc[0])
        self.assertTrue(swept["message_latency_mean_ns"].isna().all())
        before = (self.folder / "grid" / "table.csv").read_bytes()
        self.assertTrue(percs.sweep(scenario, grid, repeat=2, cache=self.folder / "grid")
                        .equals(swept))
        self.assertEqual(before, (self.folder / "grid" / "table.csv").read_bytes())
        for wrong in ({"workload.pattern.lod": [1]}, {"workload.pattern.load": [7]}):
            with self.assertRaises(percs.FieldError) as caught:
                percs.sweep(scenario, wrong)
            self.assertIn(caught.exception.field, wrong)
        call("help", percs.percsctl, "help", "run")
        self.assertIn("<svg", call("graph", percs.graph, SCENARIOS / "one-drawer.yaml"))
        self.assertIn("graph", percs.graph(SCENARIOS / "one-drawer.yaml", type="dot"))
        self.assertIn("graph LR", percs.graph(SCENARIOS / "one-drawer.yaml",
                                               self.folder / "drawer.mmd"))
        frame = call("validate", percs.validate, "roadrunner", only="RR-03")
        self.assertTrue(frame["holds"].all())
        self.assertIn("<html", percs.validation_page("roadrunner", only="RR-03"))
        self.assertEqual(percsctl_json("version"), call("version", percs.version))
        self.assertIn("complete", call("completion", percs.percsctl, "completion", "bash"))
        frame = call("trace", percs.trace, scenario, from_="sn0-d0-h0", count=2)
        self.assertEqual("sn0-d0-h0", frame.loc[(0, 0), "hub"])
        percs.capture(scenario, self.folder / "two.pcapng", count=2, kind=["all"], until="3us")
        self.assertTrue((self.folder / "two.pcapng").read_bytes().startswith(b"\n\r\r\n"))
        (self.folder / "run.json").write_text(
            percs.percsctl("run", self.write("measured.yaml", MEASURED), "--format", "json"))
        call("plot", percs.picture, "latency", [self.folder / "run.json"], self.folder / "a.svg")
        self.assertIn("<svg", (self.folder / "a.svg").read_text())
        digest = call("view", percs.view, SCENARIOS / "two-hubs.yaml", self.folder / "a.html",
                      threads=2)
        self.assertEqual(percs.run(SCENARIOS / "two-hubs.yaml").digest, digest)
        self.assertIn("<html", (self.folder / "a.html").read_text())
        tables = call("routes dump", percs.dump_routes, SCENARIOS / "two-hubs.yaml",
                      self.folder / "tables.json")
        self.assertTrue(tables)
        proven = call("routes load", percs.check_routes, self.folder / "tables.json",
                      SCENARIOS / "two-hubs.yaml")
        self.assertEqual(0, proven["unreachable_pairs"])
        self.assertEqual([], call("routes diff", percs.diff_routes, self.folder / "tables.json",
                                  self.folder / "tables.json"))
        self.assertEqual([1], list(call("sweep3d", percs.sweep3d, cus=[1])["cus"]))

    def test_of_local_fabrics_and_of_others(self):
        call = self.call
        fabric = call("up", percs.Fabric.local, 2, name="lab", tls=True, tcp=True)
        self.assertEqual(["lab"], list(call("ps", percs.fabrics).index))
        self.assertEqual("empty", call("status", percs.Fabric.named("lab").status).state)
        text = call("context export", percs.export_context, fabric.tls)
        call("context import", percs.import_context, "far", fabric.address,
             self.write("identity", text))
        self.assertEqual(["far"], list(call("context list", percs.contexts).index))
        self.assertEqual("empty", percs.Fabric.named("far").status().state)
        call("context delete", percs.delete_context, "far")
        self.assertTrue(percs.contexts().empty)
        self.assertIn("operator", call("ca", percs.ca, self.folder / "ca", days=2))
        daemon = fabric.process("d1")
        before = call("process stop", daemon.stop)
        self.assertEqual(before, call("process continue", daemon.continue_))
        self.assertEqual(before, call("process kill", daemon.kill))
        self.assertNotEqual(before, call("process restart", daemon.restart))
        self.assertGreaterEqual(call("process break", fabric.process("d0").break_streams), 0)
        with self.assertRaises(percs.NotFoundError):
            fabric.process("d9").kill()
        call("down", fabric.down)
        self.assertTrue(percs.fabrics().empty)

    def test_of_a_running_fabric(self):
        call = self.call
        with percs.Fabric.local(2) as f:
            run = call("apply", f.apply, percs.Scenario.from_text(ENDLESS), hold=True)
            self.assertEqual(8, run.nodes)
            at = call("pause", f.pause)
            self.assertGreaterEqual(call("pace", f.pace, "50us/s"), at)
            self.assertGreater(call("step", f.step, "5us"), at)
            self.assertTrue(call("health", f.health).healthy)
            self.assertEqual(percsctl_json("links", "--controller", f.address)["links"][0]["name"],
                             call("links", f.links).index[0])
            self.assertEqual(8, len(call("counters", f.counters)))
            frame = call("routes", f.routes, "sn0-d0-h0", "sn0-d1-h1", mode="hw_direct")
            self.assertEqual("sn0-d1-h1", frame["hub"].iloc[-1])
            f.dump_routes(self.folder / "live.json")
            self.assertEqual([], f.diff_routes(self.folder / "live.json"))
            self.assertIn(">endless at ", f.graph())  # not its address, which is long
            call("observe", f.observe, "sn0-d0-h0", metrics_detail="port", log_level="warning")
            call("tree", f.create_tree, "world", "all", fan_out=4)
            self.faults(f, call)
            f.step("50us")
            self.assertEqual("ready", f.trees("world").loc["world", "state"])
            f.delete_tree("world")
            self.assertGreater(len(call("events", f.events)), 0)
            call("fabric COMMAND", f.reset_arbiters)
            self.assertEqual(sorted(inner_commands(help_of("fabric"))), sorted(f.commands()))
            self.assertRaisesRegex(percs.FieldError, "reset-arbiters", f.command, "reset-arbiter")
            self.assertRaisesRegex(percs.FieldError, 'no field "soon"', f.command, "repeat",
                                   soon=True)
            call("resume", f.resume)
            self.assertFalse(f.trace(from_="sn0-d0-h0").empty)
            with self.assertRaises(percs.FieldError):  # it takes a terminal where it finds one
                call("top", f.top, interval="soon")
            saved = call("checkpoint", f.checkpoint, self.folder / "here")
            self.assertGreater(saved["virtual_ps"], 0)
            self.assertGreater(call("stop", f.stop), 0)
            self.assertEqual(run.result().digest, call("result", f.result).digest)
            state = self.folder / "state" / "percs" / f.name
            self.assertTrue(call("replay", percs.replay, state)["equal"])
            self.assertIn("create_fault", set(percs.journal(state)["command"]))
            self.assertEqual(saved["digest"], f.restore(self.folder / "here")["digest"])

    def faults(self, f, call):
        link = {"kind": "link_down", "link": CUT}
        self.assertGreater(call("fault preview", f.preview_fault, **link)["pairs"], 0)
        fault = call("fault create", f.create_fault, "one", lease="60s", **link)
        call("fault update", fault.update, kind="link_down", link=CUT, duration="1ms")
        self.assertEqual(60000, call("fault hold", fault.hold))
        self.assertEqual("link_down", call("fault get", f.get_fault, "one").status["kind"])
        f.step("1us")
        self.assertEqual(["one"], list(call("fault list", f.faults).index))
        call("fault delete", fault.delete)
        f.create_fault("two", **link)
        self.assertEqual(1, call("fault reset", f.reset_faults))
        call("fault link-down", f.link_down, CUT)
        f.step("1us")
        self.assertEqual([CUT], list(f.links(down=True).index))
        call("fault link-up", f.link_up, CUT)
        call("fault link-errors", f.link_errors, CUT, corrupt_next=2, from_="sn0-d0-h0")
        call("fault lanes", f.lanes, CUT, 1)
        with self.assertRaises(percs.FieldError):
            f.link_errors(CUT)
        with self.assertRaises(percs.FieldError):
            f.lanes(CUT, -1)

    def test_of_blades_held_runs_and_interfaces(self):
        call = self.call
        with percs.Fabric.local(1) as f:
            f.apply(SCENARIOS / "cell-blades.yaml")
            for command, function, arguments in (
                    ("fault eib-ring-lost", f.eib_ring_lost, ("blade0:CELL1:RING2",)),
                    ("fault chip-link-degraded", f.chip_link_degraded, ("blade0", 0.25)),
                    # last: the run fails with a deadlock if it is not over by then
                    ("fault spe-down", f.spe_down, ("blade0:SPE3",))):
                try:
                    call(command, function, *arguments)
                except (percs.StateError, percs.NotFoundError) as error:
                    self.assertRegex(str(error), "ended|over|blade")  # it was over before
            f.reset()
            run = f.apply(percs.Scenario.from_text(MEASURED.replace(
                "load: 0.2, warm_up: 2us, measure: 20us", "count: 5")), hold=True)
            for progress in run.progress(every=0.05):
                if progress.state == "idle":
                    break
            self.assertGreater(f.repeat(), 0)
            f.stop()
            process = call("tun", f.tun, "sn0-d0-h9", device="percs-test0")
            self.assertIn("sn0-d0-h9", process.communicate(timeout=PATIENCE_SECONDS)[1])
            self.assertNotEqual(0, process.returncode)

    @classmethod
    def tearDownClass(cls):
        missing = set(table()) - cls.called
        if missing and len(cls.called) > 20:  # not when one test runs alone
            raise AssertionError(f"never called: {sorted(missing)}")


class PageTest(PackageTest):
    def test_the_programs_of_the_page_print_what_it_says(self):
        blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE, re.S | re.M)
        self.assertGreater(len(blocks), 4)
        names = {"__name__": "page"}
        before = os.getcwd()
        os.chdir(ROOT)
        try:
            for program, output in blocks:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(program, "docs/python.md", "exec"), names)
                if output:
                    self.assertEqual(output, printed.getvalue())
        finally:
            os.chdir(before)


class InstallTest(PackageTest):
    @unittest.skipUnless((BIN.parent / "cmake_install.cmake").exists(), "no build folder here")
    def test_the_installed_package_is_complete(self):
        prefix = self.folder / "usr"
        subprocess.run(["cmake", "--install", BIN.parent, "--component", "python", "--prefix",
                        prefix], check=True, stdout=subprocess.DEVNULL)
        place = prefix / "lib" / "python3" / "dist-packages"
        shutil.copytree(place, self.folder / "moved")
        program = "import percs; print(percs.version()['software'], percs.__file__)"
        done = subprocess.run(["/usr/bin/python3", "-c", program], check=True, text=True,
                              stdout=subprocess.PIPE,
                              env=dict(os.environ, PYTHONPATH=str(self.folder / "moved"),
                                       PERCS_BIN_DIR=str(BIN)))
        self.assertIn(str(self.folder / "moved"), done.stdout)
