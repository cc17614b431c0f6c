"""The Python package: scenarios, results, errors, fabrics, faults, streams.

Method: the package of the build with real daemons; digests and figures beside those of percsctl.
"""

import asyncio
import itertools
import math
import threading

from fabric import percsctl_json, wait_for
from python_package import ENDLESS, MEASURED, PackageTest, SCENARIOS, percs

CUT = "sn0-d0-h0:LR0"


class ScenarioTest(PackageTest):
    def test_a_run_is_the_run_of_percsctl(self):
        file = SCENARIOS / "one-drawer.yaml"
        raw = percsctl_json("run", file, "--set", "workload.pattern.load=0.2", "--seed", 5)
        scenario = percs.Scenario.load(file).set("workload.pattern.load", 0.2)
        scenario.seed = 5
        result = percs.run(scenario, threads=2)
        self.assertEqual(raw["digest"], result.digest)
        self.assertEqual(raw["latency_ns"]["packet"]["mean"], result.latency.mean)
        self.assertEqual(raw["measured"]["offered_bytes_per_second_per_hub"], result.offered)
        self.assertEqual(raw["packets_delivered"], result.counters["packets_delivered"])
        self.assertFalse(result.saturated)
        self.assertEqual(0, result.drops.sum())
        self.assertIn("mean", result._repr_html_())

    def test_where_there_is_no_sample_there_is_no_number(self):
        result = percs.run(percs.Scenario.from_text(
            "name: quiet\ntopology: {supernodes: 1, drawers: 1, hubs: 2}\nstop_at: 1us\n"))
        self.assertEqual(0, result.latency.count)
        for value in (result.latency.mean, result.latency.p99, result.message_latency.max,
                      result.offered, result.hops_mean):
            self.assertTrue(math.isnan(value), value)
        self.assertTrue(result.link_utilisation.loc["D", ["mean", "max"]].isna().all())
        self.assertTrue(result.reroutes.empty and result.faults.empty)

    def test_saturation_is_said_and_has_no_latency(self):
        result = percs.run(percs.Scenario.from_text(MEASURED)
                           .set("workload.pattern.load", 1.0)
                           .set("workload.pattern.pattern", "hotspot"))
        self.assertTrue(result.saturated)
        self.assertGreater(result.latency.count, 0)
        self.assertTrue(math.isnan(result.latency.mean))
        self.assertTrue(result.latency_by_path["mean_ns"].isna().all())

    def test_the_warm_up_is_found_or_the_run_is_unstable(self):
        scenario = (percs.Scenario.from_text(MEASURED)
                    .set("workload.pattern.measure", "120us")
                    .set("workload.pattern.load", 0.05)
                    .set("workload.pattern.auto_warm_up", True))
        steady = percs.run(scenario)
        self.assertFalse(steady.unstable)
        self.assertEqual(steady.latency.count, steady.latency_by_path["packets"].sum())
        self.assertLess(0.9, steady.source_fairness)
        self.assertLess(0, steady.least_injected)
        overloaded = percs.run(scenario.set("workload.pattern.load", 1.0))
        self.assertTrue(overloaded.unstable)
        self.assertEqual(62e6, overloaded.warm_up)  # 2 us, and half of 120 us
        self.assertTrue(math.isnan(overloaded.latency.mean))

    def wrong(self, kind, field, value, expected, call, *arguments, **options):
        with self.assertRaises(kind) as caught:
            call(*arguments, **options)
        error = caught.exception
        self.assertIsInstance(error, percs.PercsError)
        self.assertEqual(field, error.field, error)
        self.assertEqual(value, error.value, error)
        self.assertIn(expected, error.expected, error)

    def test_errors_have_field_value_and_what_would_be_right(self):
        scenario = percs.Scenario.from_text(MEASURED)
        for path, value, wrong, expected in (
                ("workload.pattern.load", 2, 2, "above 0, at most 1"),
                ("workload.pattern.load", "much", "much", "0.5"),
                ("topology.hubs", 99, 99, "1 to 8"),
                ("workload.pattern.warm_up", "5", "5", "40us"),
                ("workload.pattern.warm_up", "5parsec", "5parsec", "ps, ns, us, ms, s"),
                ("workload.pattern.warm_up", 1.5, 1.5, "a number and a unit"),
                ("workload.pattern.reliable", "perhaps", "perhaps", "true or false"),
                ("workload.pattern.pattern", "uniformly", "uniformly", "uniform, hotspot"),
                ("workload.pattern.lod", 1, "lod", "load"),
                ("workload.pattern", 1, "pattern", "message_bytes"),
                ("seed.of", 1, "seed", 'end the path with "seed"'),
                ("seed", -1, -1, "0 to 18446744073709551615")):
            with self.subTest(path=path, value=value):
                self.wrong(percs.FieldError, path, wrong, expected, scenario.set, path, value)
        with self.assertRaisesRegex(percs.FieldError, 'did you mean "routing.selection" or "work'):
            scenario.set("selection", "random")
        self.assertEqual({}, scenario.settings)
        self.wrong(percs.FieldError, "threads", "0", "1 to 256", percs.run, scenario, threads=0)
        self.wrong(percs.FieldError, "operation", "allreduc", "allreduce", percs.collective,
                   "allreduc")
        self.wrong(percs.NotFoundError, "hub", "sn0-d0-h9", "the nearest are", percs.ping,
                   "sn0-d0-h0", "sn0-d0-h9")
        with self.assertRaises(percs.NotFoundError):
            percs.Scenario.load(self.folder / "no.yaml")

    def test_a_wrong_file_says_all_that_is_wrong_and_where(self):
        file = self.write("wrong.yaml", "name: x\ntopology: {hubs: 99, supernods: 1}\n")
        with self.assertRaises(percs.ScenarioError) as caught:
            percs.Scenario.load(file)
        self.assertEqual([("topology.hubs", "99", 2), ("topology.supernods", "", 2)],
                         [(p.field, p.value, p.line) for p in caught.exception.problems])
        self.assertIn("1 to 8", caught.exception.expected)

    def test_whole_numbers_are_base_units(self):
        a = percs.run(percs.Scenario.from_text(MEASURED).set("workload.pattern.measure", "10us"))
        b = percs.run(percs.Scenario.from_text(MEASURED).set("workload.pattern.measure", 10**7))
        self.assertEqual(a.digest, b.digest)

    def test_a_field_of_all_groups_is_set_at_once(self):
        both = percs.Scenario.from_text(MEASURED).set("routing.mode", "hw_direct_striped")
        each = percs.Scenario.from_text(MEASURED)
        for kind in ("fifo", "rdma"):
            each.set(f"routing.{kind}.mode", "hw_direct_striped")
        self.assertEqual(percs.run(each).digest, percs.run(both).digest)
        with self.assertRaises(percs.FieldError):
            both.set("topology.mode", "hw_indirect")

    def test_fields_are_described(self):
        fields = percs.fields("pattern.load")
        self.assertEqual("above 0, at most 1", fields.loc["workload.pattern.load", "range"])
        self.assertEqual(len(percs.fields()), percs.fields().index.nunique())


class FabricTest(PackageTest):
    def test_the_digest_is_that_of_one_process(self):
        scenario = percs.Scenario.from_text(MEASURED)
        with percs.Fabric.local(daemons=2) as fabric:
            run = fabric.apply(scenario)
            self.assertEqual(percs.run(scenario).digest, run.result().digest)
            self.assertEqual(4, run.nodes)
            self.assertEqual("finished", fabric.status().state)
        self.assertTrue(percs.fabrics().empty)

    def test_a_fault_of_a_block_ends_with_it(self):
        with percs.Fabric.local(daemons=2) as fabric:
            fabric.apply(percs.Scenario.from_text(ENDLESS), hold=True)
            fabric.pause()
            with fabric.fault("cut", kind="link_down", link=CUT) as cut:
                at = fabric.step("50us")
                status = fabric.status()
                self.assertEqual("paused", status.state)
                self.assertLessEqual(status.virtual_ps, at)
                self.assertEqual([CUT], list(fabric.links(down=True).index))
                self.assertEqual("active", cut.phase)
                self.assertEqual(["cut"], list(fabric.faults().index))
                self.assertTrue(math.isnan(cut.status["recovered_at_ps"]))
                health = fabric.health()
                self.assertEqual([CUT], health.links_down)
                self.assertRegex(repr(health), rf"(?m)^health +degraded\n(.*\n)*links down +{CUT}$")
                self.assertIn(f">{CUT}<", health._repr_html_())
                self.assertRegex(repr(status), r"(?m)^state +paused\ndaemons +2 of 2 connected$")
                self.assertRegex(fabric._repr_svg_(), f"{CUT}[^<]*, down")
            fabric.step("50us")
            self.assertTrue(fabric.links(down=True).empty)
            events = fabric.events()
            self.assertEqual(2, (events["kind"] == "reroute").sum())
            self.assertTrue(events["at_ps"].is_monotonic_increasing)
            self.assertEqual(2, len(fabric.health().reroutes))
            with self.assertRaises(percs.NotFoundError):
                fabric.get_fault("cut")

    def test_a_fault_of_a_program_that_died_ends_with_its_lease(self):
        with percs.Fabric.local(daemons=1, loss_deadline="90s") as fabric:
            fabric.apply(percs.Scenario.from_text(ENDLESS))
            fabric.create_fault("short", kind="link_down", link=CUT, lease="200ms")
            wait_for(lambda: fabric.faults().empty, "the lease to expire")
            fabric.stop()

    def test_counters_are_those_of_percsctl(self):
        with percs.Fabric.local(daemons=2) as fabric:
            fabric.apply(percs.Scenario.from_text(MEASURED)).result()
            frame = fabric.counters()
            shown = percsctl_json("counters", "--per-node", "--controller", fabric.address)
            for row in shown["nodes"]:
                mine = frame.loc[row["node"]]
                for name in percs.counter_list().index:
                    if name.startswith(("ports.", "vcs.")):
                        continue
                    value = row
                    for part in name.split("."):
                        value = value[int(part) if isinstance(value, list) else part]
                    self.assertEqual(value, mine[name], name)
                for of, quantile in itertools.product(("packet", "message"),
                                                      ("mean", "p50", "p99", "max")):
                    value = row["latency_ns"][of][quantile]
                    got = mine[f"latency_ns.{of}.{quantile}"]
                    self.assertTrue(math.isnan(got) if value is None else
                                    math.isclose(value, got), (of, quantile, value, got))
            total = fabric.counters(per_hub=False)
            self.assertEqual(frame["packets_delivered"].sum(), total["packets_delivered"].iloc[0])
            some = fabric.counters(nonzero=True)
            self.assertTrue((some.drop(columns=some.filter(like="latency")) != 0).any().all())
            self.assertEqual("packets", some.attrs["units"]["packets_delivered"])
            vcs = fabric.counters("sn0-d0-h0", vc=True)
            listed = percsctl_json("counters", "sn0-d0-h0", "--vc", "--controller",
                                   fabric.address)["nodes"][0]["vcs"]
            self.assertEqual([(v["port"], str(v["vc"]), v["flits"]) for v in listed],
                             [(*key, flits) for key, flits in vcs["flits"].items()])

    def test_events_are_followed_as_they_happen(self):
        with percs.Fabric.local(daemons=1) as fabric:
            fabric.apply(percs.Scenario.from_text(ENDLESS))
            seen = []

            def follow():
                for event in fabric.events(follow=True):
                    seen.append(event)
                    if event.kind == "fault_deleted":
                        return
            reader = threading.Thread(target=follow)
            reader.start()
            for number in range(5):
                with fabric.fault(f"f{number}", kind="link_down", link=CUT):
                    pass
            wait_for(lambda: any(e.kind == "fault_deleted" for e in seen), "a deleted fault")
            reader.join()
            numbers = [event.sequence for event in seen]
            self.assertEqual(list(range(1, len(numbers) + 1)), numbers)
            fabric.stop()

    def test_the_same_with_asyncio(self):
        async def main(fabric):
            run = fabric.apply(percs.Scenario.from_text(ENDLESS))
            progress = percs.aio.progress(run, every=0.05)
            first = await progress.__anext__()
            self.assertIn(first.state, ("running", "configuring", "paused"))
            events = percs.aio.events(fabric)
            fabric.link_down(CUT)
            kinds = ["fault_selected"]
            while kinds[-1] in ("fault_selected", "fault_injected"):
                kinds.append((await asyncio.wait_for(events.__anext__(), 60)).kind)
            self.assertIn(kinds[-1], ("alert", "reroute"), kinds)
            await events.aclose()
            fabric.stop(wait=False)
            states = [p.state async for p in progress]
            self.assertLessEqual(set(states), {"running", "finished", "idle"})
            both = await asyncio.gather(percs.aio.result(run),
                                        percs.aio.run(percs.Scenario.from_text(MEASURED)))
            self.assertEqual("measured", both[1].scenario)
            with self.assertRaises(percs.FieldError):
                await percs.aio.run(percs.Scenario.from_text(MEASURED), threads=0)
        with percs.Fabric.local(daemons=1) as fabric:
            asyncio.run(main(fabric))

    def test_a_dead_controller_is_said_by_every_kind_of_call(self):
        fabric = percs.Fabric.local(daemons=1)
        fabric.process("controller").kill()
        scenario = percs.Scenario.from_text(MEASURED)
        for call in (fabric.status, fabric.counters, lambda: fabric.apply(scenario),
                     fabric.result, lambda: fabric.window("sn0-d0-h0"),
                     lambda: list(fabric.events(follow=True)),
                     lambda: list(percs.Run(fabric, 1).progress()),
                     lambda: percs.connect(fabric.address),
                     lambda: fabric.routes("sn0-d0-h0", "sn0-d0-h1")):
            with self.assertRaises(percs.UnreachableError):
                call()

        async def follow():
            async for _ in percs.aio.events(fabric):
                pass
        with self.assertRaises(percs.UnreachableError):
            asyncio.run(follow())
        fabric.close()

    def test_certificates_decide_who_may_do_what(self):
        with percs.Fabric.local(daemons=1, tls=True, tcp=True) as fabric:
            self.assertEqual("empty", fabric.status().state)
            scenario = percs.Scenario.from_text(MEASURED)
            viewer = percs.connect(fabric.address, fabric.tls.parent / "viewer")
            self.assertEqual("empty", viewer.status().state)
            with self.assertRaisesRegex(percs.RefusedError, "needs the role operator"):
                viewer.pause()
            with self.assertRaisesRegex(percs.RefusedError, "needs the role operator"):
                viewer.apply(scenario)
            with self.assertRaisesRegex(percs.RefusedError, "percsctl ca"):
                percs.connect(fabric.address, self.folder / "nothing")
            other = percs.ca(self.folder / "other")
            with self.assertRaisesRegex(percs.RefusedError, "trusts this identity"):
                percs.connect(fabric.address, other["operator"])
            with self.assertRaises(percs.UnreachableError):  # plaintext
                percs.connect(fabric.address)
            fabric.apply(scenario, wait_endpoints=1)
            with fabric.window("sn0-d0-h0", seconds=60.0) as window:
                self.assertEqual(0, window.node)
            self.assertEqual("measured", fabric.result(wait=True).scenario)

    def test_what_a_fabric_refuses_is_of_its_own_kind(self):
        with percs.Fabric.local(daemons=1) as fabric:
            with self.assertRaises(percs.StateError):
                fabric.counters()
            with self.assertRaises(percs.StateError):
                fabric.run
            run = fabric.apply(percs.Scenario.from_text(ENDLESS))
            with self.assertRaises(percs.StateError):
                fabric.apply(percs.Scenario.from_text(MEASURED))
            with self.assertRaises(percs.StateError):
                run.result(wait=False)
            fabric.create_fault("one", kind="link_down", link=CUT)
            with self.assertRaises(percs.ExistsError):
                fabric.create_fault("one", kind="hub_down", in_="sn0-d0-h1")
            with self.assertRaises(percs.NotFoundError) as caught:
                fabric.links("sn0-d0-h9")
            self.assertEqual("sn0-d0-h9", caught.exception.value)
            self.assertIn("sn0-d0-h", caught.exception.expected)
            for field, options in (("kind", {"kind": "link_dwn"}),
                                   ("flit_error_rte", {"kind": "bit_errors",
                                                       "flit_error_rte": 1}),
                                   ("flit_error_rate", {"kind": "bit_errors",
                                                        "flit_error_rate": 2})):
                with self.assertRaises(percs.FieldError) as caught:
                    fabric.create_fault("two", **options)
                self.assertEqual(field, caught.exception.field)
                self.assertTrue(caught.exception.expected)
            with self.assertRaises(percs.WaitError):
                fabric.wait_until("100s", seconds=0.01)
            fabric.stop()
