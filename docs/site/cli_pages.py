"""The reference of percsctl, from what it says itself."""

import json
import os
import re
import subprocess


def ask(percsctl, *arguments):
    environment = dict(os.environ, COLUMNS="96", NO_COLOR="1")
    return subprocess.run([percsctl, *arguments], check=True, text=True, stdout=subprocess.PIPE,
                          env=environment).stdout


def inner_commands(text):
    """Names below headings other than those of options and arguments."""
    names, inside = [], False
    for line in text.partition("\nExamples:")[0].splitlines():
        heading = re.fullmatch(r"(\S.*):", line)
        if heading:
            inside = heading[1] not in ("Options", "Positionals")
        elif inside and (match := re.match(r"  ([a-z][a-z0-9-]*) ", line)):
            names.append(match[1])
    return names


def section(percsctl, words, depth):
    text = ask(percsctl, *words, "--help").rstrip()
    about, _, rest = text.partition("\n")
    lines = [f"{'#' * depth} {' '.join(words)}", "", about, "", "```text", rest.strip("\n"),
             "```", ""]
    if f"Usage: percsctl {' '.join(words)} " in f"{rest} ":  # not `help`, which answers for all
        for name in inner_commands(text):
            lines += section(percsctl, [*words, name], depth + 1)
    return lines


def commands(percsctl):
    text = ask(percsctl, "--help")
    lines = ["# Commands and options", "",
             "What `percsctl COMMAND --help` prints, for every command. "
             "[Command line](../docs/cli.md) has the rules that hold for all of them, the exit "
             "codes, and the JSON of a report.", ""]
    for name in inner_commands(text):
        lines += section(percsctl, [name], 2)
    return "\n".join(lines)


def counters(percsctl):
    rows = json.loads(ask(percsctl, "counters", "--list", "--format", "json"))
    lines = ["# Counters", "", "Every counter of a hub, as `percsctl counters --list` has it. "
             "[Metrics](../docs/metrics.md) has the metrics of Prometheus and their healthy "
             "values.", "", "| counter | unit | since model | metric | meaning |",
             "| --- | --- | ---: | --- | --- |"]
    for row in rows:
        metric = f"`{row['metric']}`" if row["metric"] else ""
        lines.append(f"| `{row['name']}` | {row['unit']} | {row['since_model']} | {metric} | "
                     f"{row['meaning']} |")
    return "\n".join(lines) + "\n"
