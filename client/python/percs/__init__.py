"""The PERCS network emulator from Python: scenarios, runs, sweeps, fabrics of daemons, plots.

For example::

    import percs
    sc = percs.Scenario.load("one-drawer.yaml").set("workload.pattern.load", 0.2)
    r = percs.run(sc, threads=2)
    r.latency.mean, r.saturated

    with percs.Fabric.local(daemons=4) as f:
        run = f.apply(sc, hold=True)
        with f.fault("cut", kind="link_down", link="sn0-d0-h0:LL0"):
            f.step("50us")
            f.links(down=True)

docs/python.md has the whole story. All times are virtual (of the emulated machine),
unless a name says ``wall``. NaN means that there is no sample.
"""

from percs import aio, plot
from percs._fields import print_time
from percs._machine import check_routes, diff_routes, dump_routes, graph
from percs._program import percsctl
from percs.errors import (CancelledError, DeadlockError, ExhaustedError, ExistsError, FieldError,
                          NotFoundError, PercsError, Problem, RefusedError, ScenarioError,
                          StateError, UnreachableError, ViolationError, WaitError)
from percs.fabric import Event, Fabric, Health, Status, connect
from percs.faults import Fault
from percs.local import (Process, ca, contexts, delete_context, down_all, export_context, fabrics,
                         import_context)
from percs.measure import (capture, collective, collective_roots, journal, mpirun, perf, picture,
                           ping, replay, restore, run, sweep, sweep3d, trace, validate,
                           validation_page, version, view)
from percs.parquet import to_parquet
from percs.result import Latency, Result
from percs._run import Progress, Run
from percs.scenario import Scenario, check, fields, schema
from percs.tables import counter_list
from percs.window import Atomic, Completion, Notification, Packet, Pending, Window, WindowError

__all__ = [
    "Atomic", "CancelledError", "Completion", "DeadlockError", "Event", "ExhaustedError",
    "ExistsError", "Fabric", "Fault", "FieldError", "Health", "Latency", "NotFoundError",
    "Notification", "Packet", "Pending", "PercsError", "Problem", "Process", "Progress",
    "RefusedError", "Result", "Run", "Scenario", "ScenarioError", "StateError", "Status",
    "UnreachableError", "ViolationError", "WaitError", "Window", "WindowError", "aio", "ca",
    "capture", "check", "check_routes", "collective", "collective_roots", "connect", "contexts",
    "counter_list", "delete_context", "diff_routes", "down_all", "dump_routes", "export_context",
    "fabrics", "fields", "graph", "import_context", "journal", "mpirun", "percsctl", "perf",
    "picture", "ping", "plot", "print_time", "replay", "restore", "run", "schema", "sweep",
    "sweep3d", "to_parquet", "trace", "validate", "validation_page", "version", "view"]
