"""The notebook of the documents runs from start to end, with --full.

Method: nbconvert executes it and writes a page with its pictures to <build>/python_tour.
"""

import base64
import json
import os
import shutil
import subprocess
import unittest

from fabric import BIN, ROOT
from python_package import PackageTest

NOTEBOOK = ROOT / "docs" / "python_tour.ipynb"


class NotebookTest(PackageTest):
    def test_it_has_no_outputs_in_the_tree(self):
        cells = json.loads(NOTEBOOK.read_text())["cells"]
        self.assertEqual([], [c for c in cells if c.get("outputs") or c.get("execution_count")])

    @unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "only with --full")
    def test_every_cell_runs_and_draws_what_it_should(self):
        target = BIN.parent / "python_tour"
        shutil.rmtree(target, ignore_errors=True)
        environment = dict(os.environ, PYTHONPATH=str(BIN.parent / "python"),
                           PERCS_BIN_DIR=str(BIN), JUPYTER_PATH="/usr/share/jupyter",
                           IPYTHONDIR=str(self.folder / "ipython"),
                           JUPYTER_CONFIG_DIR=str(self.folder / "jupyter"))
        done = subprocess.run(
            ["/usr/bin/jupyter-nbconvert", "--to", "notebook", "--execute", "--output-dir",
             target, "--ExecutePreprocessor.timeout=600", NOTEBOOK],
            cwd=ROOT / "docs", env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        cells = json.loads((target / NOTEBOOK.name).read_text())["cells"]
        pictures = {"image/png": 0, "image/svg+xml": 0}
        for cell in cells:
            for output in cell.get("outputs", []):
                self.assertNotEqual("error", output["output_type"], output)
                for kind, data in output.get("data", {}).items():
                    if kind not in pictures:
                        continue
                    number = sum(pictures.values())
                    pictures[kind] += 1
                    data = "".join(data)
                    if kind == "image/png":
                        (target / f"{number}.png").write_bytes(base64.b64decode(data))
                        self.assertGreater(len(data), 5000, "an empty picture")
                    else:
                        (target / f"{number}.svg").write_text(data)
                        self.assertGreater(data.count("<line"), 300)
        self.assertEqual({"image/png": 5, "image/svg+xml": 1}, pictures)
