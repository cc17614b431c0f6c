"""Pages whose blocks are run: commands, programs, and what they print.

A block marked `sh` or `python` is run, in order, in one folder; a block marked `text` straight
after it is what it prints. In such a text `...` stands for anything in a line, and a line of `...`
for any number of lines: wall-clock times, process numbers. `run_page(page, write=True)` writes
what was printed where it does not fit.
"""

import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess

from fabric import BIN, ROOT

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.S | re.M)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+\.svg)\)")
RUN = ("sh", "python")
LIMIT_SECONDS = 300


def fits(wanted, printed):
    """Whether `printed` is what the page says, with its gaps."""
    parts = []
    for line in wanted.rstrip().split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            # Columns of a table move with what is in a gap.
            gaps = [re.sub(r"(\\ )+", " +", re.escape(part)) if "..." in line else re.escape(part)
                    for part in line.split("...")]
            parts.append("[^\n]*".join(gaps) + r"[ ]*\n")
    return re.fullmatch("".join(parts), printed.rstrip() + "\n") is not None


def run_shell(body, folder):
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", COLUMNS="100",
                       PYTHONPATH=str(BIN.parent / "python"))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", body], cwd=folder, text=True,
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}: {body}\n{done.stdout}")
    return done.stdout


def run_python(body, folder, names, where):
    printed, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(body, where, "exec"), names)
    finally:
        os.chdir(before)
    return printed.getvalue()


def run_page(page, folder, write=False):
    """Runs what the page has; what does not fit, as texts. The tree is at `folder`, as links."""
    for name in ("deploy", "docs"):
        (folder / name).symlink_to(ROOT / name)
    text, names, wrong, changes = page.read_text(), {"__name__": "page"}, [], []
    blocks = list(BLOCK.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None]):
        if block[1] not in RUN:
            continue
        where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 1}"
        printed = (run_shell(block[2], folder) if block[1] == "sh"
                   else run_python(block[2], folder, names, where))
        output = after is not None and after[1] == "text" and not text[block.end():
                                                                      after.start()].strip()
        if output and not fits(after[2], printed):
            wrong.append(f"{where} prints\n{printed}\nand not\n{after[2]}")
            changes.append((after.start(2), after.end(2), printed.rstrip() + "\n"))
    for name in PICTURE.findall(text):
        made, kept = folder / pathlib.Path(name).name, page.parent / name
        if write:
            shutil.copy(made, kept)
        elif made.read_bytes() != kept.read_bytes():
            wrong.append(f"{page.name}: {name} is no longer what the commands draw")
    if write:
        for start, end, printed in reversed(changes):
            text = text[:start] + printed + text[end:]
        page.write_text(text)
        return []
    return wrong
