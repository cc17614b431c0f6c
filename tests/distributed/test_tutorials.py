"""Tutorials and experiments do what they say: every block is run, and prints what stands below
it. Examples of the other pages name what there is; those of README.md and python.md are run by
tests of their own.

`python3 test_tutorials.py --write [PAGE...]` writes outputs and pictures again; put the gaps
(`...`) back where wall-clock times and process numbers are.
"""

import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import page as pages
from fabric import BIN, ROOT
from python_package import percs

PAGES = sorted([*(ROOT / "docs" / "tutorials").glob("*.md"),
                *(ROOT / "docs" / "experiments").glob("*.md"),
                ROOT / "docs" / "other_languages.md"])
# Blocks that are neither run nor an output: files that a reader writes.
FILES = {"yaml", "cpp", "cmake"}


def commands_of(text):
    """The words of each percsctl in blocks, without the program that `--` begins."""
    code = [block[2] for block in pages.BLOCK.finditer(text) if block[1] == "sh"]
    code += re.findall(r"(?m)^(?: {4}.*\n)+", pages.BLOCK.sub("", text))
    for line in "\n".join(code).replace("\\\n", " ").splitlines():
        for part in re.split(r"[|&;()`]", line.partition(" #")[0]):
            found = re.search(r"(?:^|\s|/)percsctl (\w.*)", part)
            if found:
                words = found[1].replace("'", "").split()
                yield words[:words.index("--")] if "--" in words else words


def help_of(words, known):
    """The options of a command, as `--help` lists them."""
    name = tuple(word for word in itertools.takewhile(
        lambda word: re.fullmatch("[a-z][a-z0-9-]*", word), words))
    for command in (name[:2], name[:1]):
        if command not in known:
            done = subprocess.run([BIN / "percsctl", *command, "--help"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            usage = f"Usage: percsctl {' '.join(command)} "
            known[command] = set(re.findall(r"--[a-z0-9-]+", done.stdout)
                                 if usage in done.stdout else ())
        if known[command]:
            return known[command]
    return set()


@contextlib.contextmanager
def of_its_own():
    """A folder, and a state directory in it whose fabrics are shut down."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, unittest.mock.patch.dict(
            os.environ, XDG_STATE_HOME=f"{folder}/state"):
        try:
            yield pathlib.Path(folder)
        finally:
            percs.down_all()


class TutorialsTest(unittest.TestCase):
    def test_every_block_is_run_or_is_the_output_of_one_or_a_file(self):
        for page in PAGES:
            before = ""
            for block in pages.BLOCK.finditer(page.read_text()):
                if block[1] not in (*pages.RUN, *FILES):
                    self.assertEqual("text", block[1], f"{page.name}: {block[2]}")
                    self.assertIn(before, pages.RUN, f"{page.name}: output of what? {block[2]}")
                before = block[1]

    def test_every_page_prints_and_draws_what_it_says(self):
        for page in PAGES:
            with self.subTest(page=page.name), of_its_own() as folder:
                self.assertEqual("", "\n".join(pages.run_page(page, folder)))

    def test_examples_of_the_other_pages_name_commands_options_and_fields_that_there_are(self):
        helps, wrong, seen = {}, [], 0
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            text = page.read_text()
            self.assertNotIn("", [b[1] for b in pages.BLOCK.finditer(text)], page.name)
            for words in commands_of(text):
                seen += 1
                missing = [option for option in words if option.startswith("--")
                           and option.partition("=")[0] not in help_of(words, helps)]
                wrong += [f"{page.name}: {' '.join(words)}: no {option}" for option in missing]
            for block in pages.BLOCK.finditer(text):
                if block[1] == "yaml" and re.search("^topology:", block[2], re.M):
                    wrong += self.check(page.name, block[2])
        self.assertEqual([], wrong)
        self.assertGreater(seen, 100)

    @staticmethod
    def check(page, text):
        with of_its_own() as folder:
            (folder / "traces").symlink_to(ROOT / "deploy" / "scenarios" / "traces")
            (folder / "example.yaml").write_text(text)
            done = subprocess.run([BIN / "percsctl", "check", folder / "example.yaml"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return [f"{page}: {done.stdout}"] if done.returncode else []

    def test_a_text_with_gaps_fits_what_differs_there_only(self):
        self.assertTrue(pages.fits("a ... c\n...\nend\n", "a bb c\nx\ny\nend\n"))
        self.assertTrue(pages.fits("a\n...\n", "a\n"))
        self.assertFalse(pages.fits("a\n", "a\nb\n"))
        self.assertFalse(pages.fits("a ... c\n", "a b d\n"))


def write(names):
    for page in PAGES:
        if not names or page.stem in names:
            with of_its_own() as folder:
                pages.run_page(page, folder, write=True)


if __name__ == "__main__":
    if "--write" in sys.argv:
        write(sys.argv[sys.argv.index("--write") + 1:])
    else:
        unittest.main()
