"""A page for each scenario of deploy/scenarios: what it is, its machine as a drawing, its file, and
the beginning of its report."""

import re
import subprocess


def ask(percsctl, *arguments):
    return subprocess.run([percsctl, *arguments], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def title_of(text, file):
    found = re.search(r"^description: *(.*)$", text, re.M)
    return found[1].strip("\"'") if found else file.stem


def report(percsctl, file):
    """The report of a run; what runs on daemons only says so itself."""
    done = ask(percsctl, "run", file)
    if done.returncode not in (0, 3):
        raise SystemExit(f"percsctl run {file}: {done.stdout}")
    lines = done.stdout.replace(str(file), file.name).splitlines()
    return "\n".join(line for line in lines if not re.match(r"wall time ", line))


def page(percsctl, file, folder):
    text = file.read_text()
    picture = f"{file.stem}.svg"
    drawn = ask(percsctl, "graph", file, "-o", folder / picture)
    if drawn.returncode:
        raise SystemExit(f"percsctl graph {file}: {drawn.stdout}")
    (folder / f"{file.stem}.md").write_text("\n".join([
        f"# {file.stem}", "", title_of(text, file) + ".", "", f"![{file.stem}]({picture})", "",
        "## File", "", "```yaml", text.rstrip(), "```", "",
        "## Report", "", f"`percsctl run deploy/scenarios/{file.name}` prints:", "",
        "```text", report(percsctl, file), "```", ""]))
    return title_of(text, file)


def write(folder, percsctl, scenarios):
    folder.mkdir(parents=True)
    files = sorted(scenarios.glob("*.yaml"))
    rows = [(file.stem, page(percsctl, file, folder)) for file in files]
    lines = ["# Gallery of scenarios", "", "Every example of `deploy/scenarios`: its machine, its "
             "file and its report.", "", "| scenario | what it shows | machine |",
             "| --- | --- | --- |"]
    lines += [f"| [{name}]({name}.md) | {about} | ![]({name}.svg){{width=160px}} |"
              for name, about in rows]
    lines += ["", "```{toctree}", ":hidden:", "", *[name for name, _ in rows], "```", ""]
    (folder / "index.md").write_text("\n".join(lines))
