"""Writes the source of the site: the pages of the tree, references and a gallery.

    stage.py OUTPUT --bin FOLDER_OF_PROGRAMS --python FOLDER_OF_THE_PACKAGE --doxygen FOLDER

References say what the programs, messages and headers say themselves: `percsctl --help`,
`percsctl counters --list`, protoc, Doxygen. deploy/docs calls this.
"""

import argparse
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cli_pages  # noqa: E402
import cpp_pages  # noqa: E402
import gallery  # noqa: E402
import proto_pages  # noqa: E402

ROOT = HERE.parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "emulator/README.md", "deploy/kubernetes/README.md"]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def public_headers():
    """Those that the package libpercs-dev installs."""
    text = (ROOT / "deploy/package/CMakeLists.txt").read_text()
    names = re.search(r"foreach\(_header ([^)]*)\)", text)[1].split()
    return [name for name in names if (ROOT / name).is_file()]


def resolved(page, text, out):
    """Links to pages stay; other files of the tree are copied, to be downloaded; folders are
    named, because a site has no listing of them."""
    def link(match):
        label, target, anchor = match[1], match[2], match[3] or ""
        path = (page.parent / target).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            raise SystemExit(f"{page.relative_to(ROOT)}: no {target}")
        name = path.relative_to(ROOT)
        if path == ROOT / "deploy/scenarios":
            up = "../" * len(page.relative_to(ROOT).parent.parts)
            return f"[{label}]({up}gallery/index.md)"
        if path.is_dir():
            return f"{label} (`{name}`)" if str(name) not in label else f"`{name}`"
        if path.suffix != ".md":
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, out / name)
        return f"[{label}]({target}{anchor})"

    fences = re.split(r"(?ms)(^```.*?^```\s*$)", text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in fences)


def pages(out):
    sources = [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md"))
    for page in sources:
        if page.is_relative_to(HERE):
            continue
        target = out / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(resolved(page, page.read_text(), out))
    for picture in [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "docs").glob("*.png")]:
        shutil.copy(picture, out / picture.relative_to(ROOT))
    shutil.copy(HERE / "index.txt", out / "index.md")
    shutil.copy(HERE / "conf.py", out / "conf.py")


def python_page(package):
    names = ["percs", "percs.fabric", "percs.faults", "percs.window", "percs.scenario",
             "percs.result", "percs.measure", "percs.local", "percs.tables", "percs.errors",
             "percs.aio", "percs.plot", "percs.parquet"]
    stray = {f"percs.{file.stem}" for file in (package / "percs").glob("[a-z]*.py")} - set(names)
    if stray:
        raise SystemExit(f"docs/site/stage.py: no section for {sorted(stray)}")
    lines = ["# Python", "", "Every public name of the package; `percs` itself has most of them. "
             "[Its page](../docs/python.md) has examples, and the call for each command.", ""]
    for name in names:
        members = ["   :no-members:"] if name == "percs" else []
        lines += [f"## {name}", "", "```{eval-rst}", f".. automodule:: {name}", *members, "```", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True)
    parser.add_argument("--doxygen", type=pathlib.Path, required=True, help="Doxygen's XML")
    arguments = parser.parse_args()
    out = arguments.output.resolve()
    shutil.rmtree(out, ignore_errors=True)
    (out / "reference").mkdir(parents=True)
    pages(out)
    cpp_pages.doxygen(ROOT, public_headers(), arguments.doxygen.resolve())
    percsctl = arguments.bin.resolve() / "percsctl"
    made = {"cli": cli_pages.commands(percsctl), "counters": cli_pages.counters(percsctl),
            "protobuf": proto_pages.page(ROOT / "proto", arguments.python),
            "cpp": cpp_pages.page(ROOT, public_headers(), arguments.doxygen / "xml"),
            "python": python_page(arguments.python)}
    for name, text in made.items():
        (out / "reference" / f"{name}.md").write_text(text)
    gallery.write(out / "gallery", percsctl, ROOT / "deploy/scenarios")


if __name__ == "__main__":
    main()
