"""The committed files of the page: small, without anything from elsewhere, and made from the
program beside them. Under --full they are made again.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tidy"))
import npm_program  # noqa: E402

PROGRAM = ROOT / "daemon" / "page" / "web"
BYTES_MAX = 200_000


class PageTest(unittest.TestCase):
    def test_files_are_those_that_the_program_wrote(self):
        files = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"]
        files += [f"src/{path.name}" for path in (PROGRAM / "src").iterdir()]
        files += [f"built/{path.name}" for path in (PROGRAM / "built").iterdir()
                  if path.name != "SHA256SUMS"]
        npm_program.check_sums(self, PROGRAM, PROGRAM / "built" / "SHA256SUMS", files)

    def test_the_page_asks_nothing_of_other_machines(self):
        for path in (PROGRAM / "built").iterdir():
            text = path.read_text()
            self.assertEqual([], re.findall(r"(?:https?:|wss?:)?//[\w.-]+\.\w+", text), path.name)
            self.assertLess(len(text), BYTES_MAX, path.name)

    def test_the_program_has_no_any_and_no_cast(self):
        npm_program.check_types(self, PROGRAM)

    @npm_program.FULL
    def test_the_program_writes_the_same_again(self):
        npm_program.check_same_again(self, PROGRAM, "built")


if __name__ == "__main__":
    unittest.main()
