"""The page in Debian's chromium, against real daemons: what it shows, and what a click does.

Method: WebDriver opens the link that percsctl printed, reads what the page shows, and clicks at the
place where a link is drawn; percsctl says whether that is so. Needs chromium, chromium-driver and
python3-selenium (deploy/install --browser), and runs under --full. PERCS_SCREENSHOTS=FOLDER keeps
pictures of every view.
"""

import http.server
import json
import os
import pathlib
import re
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "distributed")]
from test_cli import SCENARIOS, CliTest  # noqa: E402
import test_run_page  # noqa: E402

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1280,863")
FULL = unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "needs a browser: --full")
SUPERNODE = """\
name: supernode-live
topology: {supernodes: 1, drawers: 4, hubs: 8}
workload:
  pattern: {pattern: uniform, load: 0.2, reliable: true, payload: verified}
run: {clock: live, pace: 5us/s}
"""
MACHINE = """\
name: six-supernodes
topology: {supernodes: 6, drawers: 1, hubs: 4}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true, payload: verified}
run: {clock: live, pace: 5us/s}
"""
HUB_WITH_TREES = """\
name: hub-with-trees
topology: {supernodes: 1, drawers: 4, hubs: 8}
trees:
- {name: world, members: all, fan_out: 3}
- {name: left, members: sn0-d0, relays: sn0-d1-h0, fan_out: 2}
workload:
  cau: {steps: "allreduce, multicast, barrier", iterations: 1000000, operation: sum, type: double,
        operands: 4, in_flight: 2}
run: {clock: live, pace: 5us/s}
"""
BLADES = """\
name: two-blades
topology: {supernodes: 1, drawers: 1, hubs: 4}
blades:
- type: QS20
  attach: sn0-d0-h0
  programs:
  - exchange: {peer: blade1, spes: 16, bytes: 16KiB, rounds: 100000}
- type: QS22
  attach: sn0-d0-h3
  programs:
  - exchange: {peer: blade0, spes: 16, bytes: 16KiB, rounds: 100000}
run: {clock: live, pace: 20us/s}
"""
CROSSBARS = """\
name: two-triblades
topology:
  supernodes: 1
  drawers: 1
  hubs: 4
  infiniband: {cus: 2, gateway: sn0-d0-h0}
blades:
- name: triblade
  type: triblade
  attach: cu0-leaf0
  programs: &collectives
  - collective: {operation: barrier, iterations: 1000000}
- {name: triblade, type: triblade, attach: cu0-leaf1, programs: *collectives}
run: {clock: live, pace: 20us/s}
"""
LINK = "sn0-d0-h0:LL3"
LINK_ENDS = ("sn0-d0-h0", "sn0-d0-h4")
HUB = "sn0-d0-h0"


@FULL
class BrowserTest(CliTest):
    def open(self, scenario, daemons, *flags):
        self.record = self.good_json("up", "--daemons", daemons)
        self.good("apply", self.write("page.yaml", scenario), "--hold")
        return self.start(self.record["page"], *flags)

    def start(self, address, *flags):
        from selenium import webdriver
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={self.folder / 'browser'}", *flags):
            options.add_argument(flag)
        self.browser = webdriver.Chrome(options=options)
        self.addCleanup(self.browser.quit)
        self.browser.get(address)
        return self.browser

    def js(self, code, *arguments):
        return self.browser.execute_script(f"return {code}", *arguments)

    def text(self, css):
        return self.js("document.querySelector(arguments[0])?.textContent ?? ''", css)

    def shoot(self, name):
        """As it is, and the other theme on a wide screen."""
        if not (folder := os.environ.get("PERCS_SCREENSHOTS")):
            return
        self.browser.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))
        size = self.browser.get_window_size()
        self.resize(1920, 1080)
        self.click("#theme")
        self.browser.save_screenshot(str(pathlib.Path(folder) / f"{name}_wide.png"))
        self.click("#theme")
        self.resize(size["width"], size["height"])

    def resize(self, width, height):
        """Returns when the page is laid out again."""
        self.browser.set_window_size(width, height)
        self.browser.execute_async_script(
            "const [done] = arguments;"
            "requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def frames_per_second(self):
        """Of the circle, over a second of wall time."""
        return self.browser.execute_async_script(
            "const [done] = arguments, begin = percs.ring.frames, at = performance.now();"
            "setTimeout(() => done(1000 * (percs.ring.frames - begin) / (performance.now() - at)),"
            " 1000)")

    def watch_a_run(self, file, *flags):
        """A browser with the page of `percsctl run`."""
        run = test_run_page.RunPageTest.running(self, file, *flags)
        page = run.__enter__()
        self.addCleanup(run.__exit__, None, None, None)
        return self.start(f"http://{page.host}:{page.port}/#{page.token}")

    def fact(self, name):
        return self.text(f"[data-fact='{name}']")

    def wait_for_hubs(self, hubs):
        self.wait_for(f"{hubs} hubs on the page",
                      lambda: self.js("document.querySelector('#map').dataset.hubs") == str(hubs))

    def click(self, css):
        self.js("document.querySelector(arguments[0]).click()", css)

    def click_link(self, name):
        self.click_at(self.js("percs.ring.middleOf(arguments[0])", name))

    def move_to(self, at):
        """The mouse, to where something is drawn on the map; performs nothing yet."""
        from selenium.webdriver.common.action_chains import ActionChains
        canvas = self.browser.find_element("id", "map")
        size = canvas.rect
        return ActionChains(self.browser).move_to_element_with_offset(
            canvas, at["x"] - size["width"] / 2, at["y"] - size["height"] / 2)

    def click_at(self, at):
        self.move_to(at).click().perform()

    def test_a_click_previews_cuts_shows_the_reroute_and_restores(self):
        self.open(SUPERNODE, 4)
        self.wait_for_hubs(32)
        self.assertEqual("496", self.js("document.querySelector('#map').dataset.links"))
        self.wait_for("traffic", lambda: not self.fact("delivered").startswith("0 "))
        self.wait_for("points of the charts", lambda: self.js("percs.model.samples.length") > 12)
        self.wait_for("30 frames in a second", lambda: self.frames_per_second() >= 30)
        self.shoot("supernode")
        self.click_link(LINK)
        self.wait_for("a preview", lambda: "It would touch" in self.text("#selection"))
        self.assertIn(f"Link {LINK}", self.text("#selection"))
        preview = self.good_json("fault", "preview", "cut", "--kind", "link_down", "--link", LINK)
        self.assertIn(f"touch {preview['routes']} routes of {preview['pairs']} pairs",
                      self.text("#selection").replace(",", ""))
        self.shoot("preview")
        self.click("#cut")
        self.wait_for("the reroute", lambda: "committed" in self.text("#faults") and re.search(
            r"committed[\d.,]+ \w+\+", self.text("#faults")))
        (fault,) = self.good_json("fault", "list")["faults"]
        self.assertEqual([LINK], fault["targets"])
        self.assertFalse(self.js("percs.model.links.get(arguments[0]).up", LINK))
        self.wait_for("hubs that got new tables", lambda: set(LINK_ENDS) <= set(self.js(
            "[...percs.model.hubCounts].filter(([, of]) => of.rerouted > 0).map(([hub]) => hub)")))
        self.shoot("cut")
        shown = self.js("percs.model.events.map(e => [e.sequence, e.at, e.kind])")
        listed = {e["sequence"]: e for e in map(json.loads, self.good(
            "events", "--format", "json").splitlines())}
        self.assertIn("reroute", {kind for _, _, kind in shown})
        for sequence, at, kind in shown:
            self.assertEqual((listed[sequence]["at_ps"], listed[sequence]["kind"]), (at, kind))
        self.click("#faults button")
        self.wait_for("the link to come back",
                      lambda: self.js("percs.model.links.get(arguments[0]).up", LINK))
        self.wait_for("no fault to be left",
                      lambda: not self.good_json("status")["faults_active"])
        reroutes = "percs.model.events.filter(e => e.kind === 'reroute').length"
        self.wait_for("a reroute for the cut and one for its end", lambda: self.js(reroutes) == 2)
        self.click("#pause")
        self.wait_for("pause", lambda: self.fact("state") == "paused")
        total = self.good_json("counters")["nodes"][0]
        self.wait_for("the last numbers", lambda: self.js(
            "Number(percs.model.counters.packets_delivered)") == total["packets_delivered"])
        self.assertEqual(2, self.good_json("health")["reroutes_count"])
        self.assertEqual(2, self.js(reroutes))
        self.assertEqual(str(self.good_json("status")["epoch"]), self.fact("route epoch"))
        self.assertLessEqual(set(self.js("[...percs.model.hubCounts.values()].map("
                                         "of => of.reroutes)")), {0, 1, 2})
        dropped = {hub["node"]: sum(hub["drops"].values())
                   for hub in self.good_json("counters", "--per-node")["nodes"]}
        shown_drops = dict(self.js("[...percs.model.hubCounts].filter(([, of]) => of.dropped > 0)"
                                   ".map(([hub, of]) => [hub, of.dropped])"))
        self.assertEqual({hub: packets for hub, packets in dropped.items() if packets}, shown_drops)
        self.click("#theme")
        self.shoot("dark")
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": str(self.folder)})
        self.click("#save")
        (saved,) = self.wait_for("the saved page", lambda: list(self.folder.glob("*.html")))
        self.assertLess(saved.stat().st_size, 2_000_000)
        self.browser.get(f"file://{saved}")
        self.wait_for_hubs(32)
        self.assertEqual(str(total["packets_delivered"]), self.js(
            "percs.model.counters.packets_delivered"))
        self.assertEqual(shown[0], self.js("(e => [e.sequence, e.at, e.kind])("
                                           "percs.model.events[0])"))
        self.shoot("saved")

    def test_a_machine_is_a_matrix_and_opens_supernodes(self):
        self.open(MACHINE, 2, "--force-prefers-reduced-motion")
        self.wait_for_hubs(24)
        self.assertEqual("machine", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("traffic", lambda: self.js("percs.model.samples.length") > 2)
        self.good("fault", "create", "cut", "--kind", "link_down", "--link", "sn0-d0-h0:D0")
        self.wait_for("a link down", lambda: self.js(
            "[...percs.model.links.values()].some(link => !link.up)"))
        self.shoot("machine")
        self.click("#view")
        self.assertEqual("supernode", self.js("document.querySelector('#map').dataset.view"))
        self.shoot("drilled")

    def test_a_large_machine_opens_down_to_a_hub(self):
        self.watch_a_run(self.write("large.yaml", test_run_page.LARGE))
        self.wait_for("the matrix", lambda: self.js("percs.model.cells?.size") == 17)
        self.wait_for("use of all rows", lambda: self.js(
            "percs.model.cells.used.filter(share => share > 0).length") > 200)
        self.shoot("large")
        self.click_at(self.js("percs.matrix.placeOf(3, 5)"))
        self.assertEqual("supernode", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("its hubs", lambda: self.js("percs.ring.hubs().map(hub => hub.name)") == [
            f"sn3-d{i // 8}-h{i % 8}" for i in range(32)])
        self.js("percs.select({hub: 'sn3-d0-h0'})")
        self.assertEqual("", self.text("#cut"), "there is no fault to be made")
        self.click("#open")
        self.wait_for("ports", lambda: self.js("percs.hubView.boxes.length") == 56)
        self.assertEqual("sn3-d0-h0", self.js("percs.inspected.hub"))

    def test_ranks_are_on_their_hubs_and_nothing_moves_for_those_who_want_that(self):
        self.watch_a_run(SCENARIOS / "trace-replay.yaml", "--set", "run.clock=live",
                         "--set", "run.pace=20us/s")
        self.wait_for_hubs(32)
        self.wait_for("ranks", lambda: self.js("percs.model.ranks.size") == 32)
        self.wait_for("some that wait", lambda: "waiting" in self.text("#selection"))
        frames = self.js("percs.ring.frames")
        self.wait_for("frames", lambda: self.js("percs.ring.frames") > frames + 20)
        self.js("percs.select({hub: 'sn0-d1-h2'})")
        self.assertIn("10", self.text("#selection"))
        self.shoot("ranks")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        messages = self.js("percs.messages")
        self.wait_for("more of the feed", lambda: self.js("percs.messages") > messages + 4)
        frames, messages = self.js("[percs.ring.frames, percs.messages]")
        self.wait_for("more of the feed", lambda: self.js("percs.messages") > messages + 4)
        after, messages_after = self.js("[percs.ring.frames, percs.messages]")
        self.assertLessEqual(after - frames, messages_after - messages + 1, "one for each message")

    def pace(self):
        return self.good_json("status")["pace_ps_per_wall_second"]

    def test_the_pace_is_set_and_the_tip_has_what_virtual_channels_count(self):
        self.open(SUPERNODE, 2)
        self.wait_for_hubs(32)
        self.assertEqual("5000000", self.js("document.querySelector('#pace').value"))
        self.js("(pace => { pace.value = '20000000'; pace.dispatchEvent(new Event('change')); })("
                "document.querySelector('#pace'))")
        self.wait_for("the pace", lambda: self.pace() == 20_000_000)
        self.wait_for("it on the page",
                      lambda: self.js("percs.model.status.pace") == "20000000")
        self.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: '-'}))")
        self.wait_for("half of it", lambda: self.pace() == 10_000_000)
        self.good("pace", "max")
        self.wait_for("none", lambda: self.js("document.querySelector('#pace').value") == "0")
        self.good("pause")
        self.move_to(self.js("percs.ring.middleOf(arguments[0])", LINK)).perform()
        self.wait_for("virtual channels in the tip", lambda: "VC 0 forward" in self.text("#tip"))
        (counters,) = self.good_json("counters", HUB, "--vc")["nodes"]
        (vc,) = (vc for vc in counters["vcs"] if (vc["port"], vc["vc"]) == ("LL3", 0))
        self.wait_for("the numbers of percsctl", lambda: (
            f"VC 0 forward: {vc['packets']:,} packets," in self.text("#tip")
            and f"buffer at most {vc['most_held']} flits" in self.text("#tip")))

    def test_another_page_may_not_act(self):
        """As a page of another site that knows the address and even the token."""
        self.open(SUPERNODE, 2)
        page = self.record["page"].split("/#")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                 http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.browser.get(f"http://127.0.0.1:{server.server_port}/none")
        for mode, headers in (("cors", {"X-Percs-Token": page[1]}), ("no-cors", {})):
            told = self.browser.execute_async_script(
                "const [url, mode, headers, done] = arguments;"
                "fetch(url, {method: 'POST', mode, headers, body: '{}'}).then("
                "answer => done(answer.type), error => done(String(error)))",
                f"{page[0]}/api/Pause", mode, headers)
            self.assertIn(told, ("opaque", "TypeError: Failed to fetch"), mode)
        self.assertEqual("running", self.good_json("status")["state"])

    def channels_shown(self):
        """Packets that the virtual channels of all ports have sent, by the page."""
        rows = self.js("percs.hubView.boxes.flatMap(({port}) => port.channels.map("
                       "(vc, i) => [port.name, i, vc.packets, vc.held]))")
        return {(port, vc): (packets, held) for port, vc, packets, held in rows if packets}

    def test_a_hub_shows_its_ports_and_the_trees_of_its_cau(self):
        self.open(HUB_WITH_TREES, 2)
        self.wait_for_hubs(32)
        self.js("percs.select({hub: arguments[0]})", HUB)
        self.click("#open")
        self.assertEqual("hub", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("shares of two looks", lambda: self.js("Boolean(percs.inspected.earlier)"))
        self.wait_for("operations", lambda: self.js("percs.trees.trees.some(t => t.lately > 0)"))
        self.shoot("hub")
        self.good("pause")
        (counters,) = self.good_json("counters", HUB, "--vc")["nodes"]
        counted = {(vc["port"], vc["vc"]): (vc["packets"], vc["most_held"])
                   for vc in counters["vcs"] if vc["packets"]}
        self.assertGreater(len(counted), 3)
        self.wait_for("the numbers of percsctl", lambda: counted == self.channels_shown())
        self.click_at(self.js("percs.hubView.middleOf('LL3')"))
        self.wait_for("a preview", lambda: "It would touch" in self.text("#selection"))
        self.assertIn(f"Link {LINK}", self.text("#selection"))
        self.good("resume")
        self.good("fault", "create", "cut", "--kind", "link_down", "--link", LINK)
        self.wait_for("the port to be down", lambda: self.js(
            "percs.inspected.links.find(link => link.name === arguments[0])?.up !== true", LINK))
        self.click("#trees")
        self.assertEqual("supernode", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("trees", lambda: self.js("percs.trees.trees.every(t => t.state === 'ready')"))
        for name in ("world", "left"):
            (tree,) = self.good_json("tree", "list", name)["trees"]
            shown = self.js("percs.trees.trees.find(t => t.name === arguments[0]).vertices.map("
                            "v => [v.node, v.parent ?? null, v.participant])", name)
            self.assertEqual([[v["hub"], v["parent"], v["participant"]]
                              for v in tree["vertices"]], shown)
        self.wait_for("packets under way", lambda: self.js("percs.trees.dots") > 0)
        self.shoot("trees")
        self.good("pause")
        self.wait_for("the pause", lambda: self.fact("state") == "paused")
        packets, held = self.js(
            "percs.trees.trees.flatMap(tree => tree.vertices.map((vertex, number) =>"
            " percs.model.flights.ofTree(vertex.node, tree.id, number))).filter(Boolean).reduce("
            "([packets, held], of) => [of.sent.reduce((sum, [, more]) => sum + more, packets),"
            " held + of.held], [0, 0])")
        self.assertGreater(packets + held, 0)
        told = self.js("[...document.querySelectorAll('#selection table')].at(-1).innerText")
        columns = [line.split("\t") for line in told.splitlines()]
        self.assertEqual(["tree", "state", "CAUs", "under way", "held"], columns[0][:5])
        self.wait_for("their sums beside the map", lambda: [packets, held] == self.js(
            "[3, 4].map(column => [...document.querySelectorAll('#selection tbody tr,"
            " #selection tr')].filter(row => ['world', 'left'].includes(row.cells[0].innerText))"
            ".reduce((sum, row) => sum + Number(row.cells[column].innerText), 0))"))

    def test_a_cell_blade_shows_its_buses_and_what_moved(self):
        self.open(BLADES, 2)
        self.wait_for("blades", lambda: self.js("percs.model.blades") == ["blade0", "blade1"])
        self.click("#selection .row button")
        self.assertEqual("blade", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("DMA", lambda: self.js("percs.bladeView.lately().dma") > 0)
        self.wait_for("commands under way", lambda: self.js("percs.bladeView.dots") > 0)
        self.shoot("blade")
        self.good("pause")
        self.wait_for("the pause", lambda: self.fact("state") == "paused")
        spes = self.js("percs.model.flights.of('blade0').spes")
        for spe in spes:
            commands = sum(move["commands"] for move in spe["moves"])
            self.assertIn(commands + spe["queued"], range(1, 17), "a queue has 16 places")
            for move in spe["moves"]:
                self.assertIn(move["cell"], (0, 1))
                self.assertIn(move["unit"], range(12))
        self.wait_for("a dot for each command", lambda: self.js("percs.bladeView.dots") == sum(
            move["commands"] for spe in spes for move in spe["moves"]))
        (counters,) = self.good_json("counters", "blade0")["nodes"]
        self.assertGreater(counters["blades"]["dma_bytes"], 0)
        self.wait_for("the numbers of percsctl", lambda: self.js(
            "percs.bladeView.lately().sum") == counters["blades"]["dma_bytes"])

    def test_the_tree_of_crossbars_shows_its_levels_and_what_is_down(self):
        self.open(CROSSBARS, 2)
        self.wait_for("crossbars", lambda: not self.js("document.querySelector('#tree').hidden"))
        self.click("#tree")
        self.assertEqual("crossbars", self.js("document.querySelector('#map').dataset.view"))
        self.wait_for("levels", lambda: self.js("percs.crossbars.counts()") == {
            "leaf": 48, "spine": 24, "a": 96, "b": 96, "c": 96, "edge": 3})
        self.wait_for("load", lambda: self.js("percs.model.linksOf('cu0-leaf0').some("
                                              "link => link.forward.recent > 0)"))
        self.good("fault", "create", "dead", "--kind", "hub_down", "--in", "cu0-spine8")
        self.wait_for("its cables to be down", lambda: self.js(
            "percs.crossbars.tip('cu0-spine8')").startswith("cu0-spine8\n24 cables, 24 down"))
        self.shoot("crossbars")

    def visible(self, css):
        return self.js("document.querySelector(arguments[0]).checkVisibility()", css)

    def test_a_finished_run_opens_from_a_file_and_its_time_line_moves(self):
        scenario = SCENARIOS / "link-failure.yaml"
        result = self.good_json("run", scenario, "--events")
        self.good("view", scenario, "-o", "run.html")
        self.start(f"file://{self.folder / 'run.html'}")
        self.wait_for_hubs(32)
        self.assertTrue(self.visible("#timeline"))
        for acting in ("#pause", "#step", "#span", "#save", "#open", "#trees"):
            self.assertFalse(self.visible(acting), acting)
        self.assertEqual(result["packets_delivered"],
                         self.js("Number(percs.model.counters.packets_delivered)"))
        flits = ("[...percs.model.links.values()].reduce("
                 "(sum, link) => sum + link.forward.flits + link.backward.flits, 0)")
        self.assertEqual(result["flit_hops"], self.js(flits))
        events = [[e["sequence"], e["at_ps"], e["kind"]] for e in result["events"]]
        shown = "percs.model.events.map(e => [e.sequence, e.at, e.kind])"
        self.assertEqual(events, self.js(shown))
        self.shoot("view_end")
        last = self.js("Number(document.querySelector('#moment').max)")
        cut = min(at for _, at, kind in events if kind == "fault_injected")
        down = "[...percs.model.links.values()].filter(link => !link.up).length"
        seen = set()
        for moment in (0, last // 2, last // 3, last):
            self.js("percs.go(arguments[0])", moment)
            at = self.js("Number(percs.model.status.virtual_time)")
            so_far = self.js(shown)
            self.assertEqual(events[:len(so_far)], so_far)
            self.assertTrue(all(e[1] <= at for e in so_far) and
                            all(e[1] >= at for e in events[len(so_far):]), (at, so_far))
            self.assertLessEqual(self.js(flits), result["flit_hops"])
            self.assertTrue(at > cut or self.js(down) == 0)
            seen.add(self.js(flits))
        self.assertEqual(4, len(seen))
        self.js("percs.go(0)")
        self.labels_are_apart()
        self.js("percs.go(arguments[0])", last // 2)
        self.labels_are_apart()
        self.js("percs.select({hub: 'sn0-d0-h0'})")
        self.assertEqual(0, self.js("document.querySelectorAll('#cut').length"))
        self.shoot("view")

    def test_switches_stand_as_their_network_is(self):
        self.good("view", SCENARIOS / "torus.yaml", "-o", "run.html")
        self.start(f"file://{self.folder / 'run.html'}")
        self.wait_for_hubs(64)
        size = self.js("[document.querySelector('#map').clientWidth, "
                       "document.querySelector('#map').clientHeight]")
        places = self.js("[...percs.model.hubs.keys()].map(name => percs.ring.placeOf(name))")
        self.assertEqual(64, len({(place["x"], place["y"]) for place in places}))
        for place in places:
            self.assertTrue(0 < place["x"] < size[0] and 0 < place["y"] < size[1], place)
        self.assertFalse(self.visible("#view"))
        for ends in ("s0-0-0/s0-0-1", "s0-0-0/s0-0-3"):  # to a neighbour, and round the ring
            self.click_link(self.js("[...percs.model.links.values()].find("
                                    "link => link.ends.join('/') === arguments[0]).name", ends))
            self.assertIn(ends.replace("/", " / "), self.text("#selection"))
        self.shoot("torus")
        self.good("view", SCENARIOS / "fat-tree.yaml", "-o", "tree.html")
        self.browser.get(f"file://{self.folder / 'tree.html'}")
        self.wait_for_hubs(48)
        self.shoot("fat_tree")

    def labels_are_apart(self):
        """Also where p50 and p99 are both 0."""
        places = sorted(map(float, self.js(
            "document.querySelector('#latency').dataset.labels").split()))
        self.assertEqual(2, len(places))
        self.assertGreaterEqual(places[1] - places[0], 12)
        height = self.js("document.querySelector('#latency').clientHeight")
        self.assertLessEqual(places[1], height - 15)


if __name__ == "__main__":
    unittest.main()
