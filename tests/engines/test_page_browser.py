"""The page in Debian's chromium, against real daemons: what it shows, and what a click does.

Method: WebDriver opens the link that percsctl printed, reads what the page shows, and clicks at the
place where a link is drawn; percsctl says whether that is so. Needs chromium, chromium-driver and
python3-selenium (deploy/install --browser), and runs under --full. PERCS_SCREENSHOTS=FOLDER keeps
pictures of every view.
"""

import json
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "distributed")]
from test_cli import CliTest  # noqa: E402

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
LINK = "sn0-d0-h0:LL3"


@FULL
class BrowserTest(CliTest):
    def open(self, scenario, daemons, *flags):
        from selenium import webdriver
        self.record = self.good_json("up", "--daemons", daemons)
        self.good("apply", self.write("page.yaml", scenario), "--hold")
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={self.folder / 'browser'}", *flags):
            options.add_argument(flag)
        self.browser = webdriver.Chrome(options=options)
        self.addCleanup(self.browser.quit)
        self.browser.get(self.record["page"])
        return self.browser

    def js(self, code, *arguments):
        return self.browser.execute_script(f"return {code}", *arguments)

    def text(self, css):
        return self.js("document.querySelector(arguments[0])?.textContent ?? ''", css)

    def shoot(self, name):
        if folder := os.environ.get("PERCS_SCREENSHOTS"):
            self.browser.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def fact(self, name):
        return self.text(f"[data-fact='{name}']")

    def wait_for_hubs(self, hubs):
        self.wait_for(f"{hubs} hubs on the page",
                      lambda: self.js("document.querySelector('#map').dataset.hubs") == str(hubs))

    def click(self, css):
        self.js("document.querySelector(arguments[0]).click()", css)

    def click_link(self, name):
        """With the mouse, in the middle of where it is drawn."""
        from selenium.webdriver.common.action_chains import ActionChains
        canvas = self.browser.find_element("id", "map")
        size = canvas.rect
        at = self.js("percs.ring.middleOf(arguments[0])", name)
        ActionChains(self.browser).move_to_element_with_offset(
            canvas, at["x"] - size["width"] / 2, at["y"] - size["height"] / 2).click().perform()

    def test_a_click_previews_cuts_shows_the_reroute_and_restores(self):
        self.open(SUPERNODE, 4)
        self.wait_for_hubs(32)
        self.assertEqual("496", self.js("document.querySelector('#map').dataset.links"))
        self.wait_for("traffic", lambda: not self.fact("delivered").startswith("0 "))
        self.wait_for("points of the charts", lambda: self.js("percs.model.samples.length") > 12)
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
        self.click("#pause")
        self.wait_for("pause", lambda: self.fact("state") == "paused")
        total = self.good_json("counters")["nodes"][0]
        self.wait_for("the last numbers", lambda: self.js(
            "Number(percs.model.counters.packets_delivered)") == total["packets_delivered"])
        self.click("#theme")
        self.shoot("dark")
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": str(self.folder)})
        self.click("#save")
        (saved,) = self.wait_for("the saved page", lambda: list(self.folder.glob("*.html")))
        self.assertLess(saved.stat().st_size, 2_000_000)
        self.browser.get(f"file://{saved}")
        self.assertEqual("32", self.js("document.querySelector('#map').dataset.hubs"))
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


if __name__ == "__main__":
    unittest.main()
