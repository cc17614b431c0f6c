"""The documents as a site: deploy/docs builds it without a warning, with --full.

The site stays in <build>/site.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
SITE = BIN.parent / "site"


@unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "the site is built with --full only")
@unittest.skipUnless(shutil.which("sphinx-build"), "needs deploy/install --docs")
class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run([ROOT / "deploy" / "docs", "--build", BIN.parent, "-o", SITE],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout

    def test_references_have_every_command_message_call_and_header(self):
        commands = subprocess.run([BIN / "percsctl", "__complete", ""], text=True, check=True,
                                  stdout=subprocess.PIPE).stdout
        page = (SITE / "reference" / "cli.html").read_text()
        for line in commands.splitlines():
            self.assertIn(f"<h2>{line.split()[0]}<", page)
        messages = (SITE / "reference" / "protobuf.html").read_text()
        for proto in (ROOT / "proto" / "percs" / "v1").glob("*.proto"):
            for name in re.findall(r"^message (\w+)", proto.read_text(), re.M):
                self.assertIn(f"<h3>{name}<", messages)
        self.assertIn("percs.Fabric.step", (SITE / "reference" / "python.html").read_text()
                      .replace("percs.fabric.", "percs."))
        self.assertIn("RdmaWrite", (SITE / "reference" / "cpp.html").read_text())

    def test_the_gallery_has_a_page_with_a_drawing_for_every_scenario(self):
        for file in (ROOT / "deploy" / "scenarios").glob("*.yaml"):
            page = (SITE / "gallery" / f"{file.stem}.html").read_text()
            self.assertRegex(page, rf'<img [^>]*src="[^"]*{file.stem}\.svg"')

    def test_every_link_of_the_site_leads_somewhere(self):
        lost = set()
        for page in SITE.rglob("*.html"):
            for target in re.findall(r'(?:href|src)="([^"#:?]+)["#?]', page.read_text()):
                if not (page.parent / target).resolve().exists():
                    lost.add(f"{page.relative_to(SITE)}: {target}")
        self.assertEqual(set(), lost)


if __name__ == "__main__":
    unittest.main()
