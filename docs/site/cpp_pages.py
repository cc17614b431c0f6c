"""The reference of the C++ headers of users, from Doxygen's XML, drawn by Breathe."""

import pathlib
import subprocess
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
DIRECTIVES = {"class": "doxygenclass", "struct": "doxygenstruct", "enum": "doxygenenum",
              "typedef": "doxygentypedef", "variable": "doxygenvariable",
              "function": "doxygenfunction"}


def doxygen(root, headers, out):
    """Comments of this code are `//`, which Doxygen reads as its own after a filter."""
    inputs = " ".join(str(root / name) for name in headers)
    settings = (HERE / "Doxyfile").read_text()
    settings += (f"INPUT = {inputs}\nOUTPUT_DIRECTORY = {out}\nSTRIP_FROM_PATH = {root}\n"
                 f'INPUT_FILTER = "awk -f {HERE / "comments.awk"}"\n')
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)


def entities(xml):
    """(file, line, kind, name) of what namespaces hold, and of classes that are in no other."""
    for file in sorted(xml.glob("*.xml")):
        compound = ET.parse(file).getroot().find("compounddef")
        if compound is None:
            continue
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        if kind in ("class", "struct"):
            at = compound.find("location")
            outer = name.rpartition("::")[0]
            if at is not None and not (xml / f"class{outer.replace('::', '_1_1')}.xml").exists():
                yield at.get("file"), int(at.get("line")), kind, name
        elif kind == "namespace":
            for member in compound.iter("memberdef"):
                at, what = member.find("location"), member.get("kind")
                full = f"{name}::{member.findtext('name')}"
                if what == "function":
                    full += member.findtext("argsstring")
                yield at.get("file"), int(at.get("line")), what, full


def opening(header):
    """The comment that a header begins with, which says what it is for."""
    text = []
    for line in header.read_text().splitlines():
        if not line.startswith("//"):
            return text
        text.append(line.removeprefix("//").removeprefix(" "))


def page(root, headers, xml):
    lines = ["# C++", "", "What the headers of the package `libpercs-dev` declare. "
             "[Programs at windows](../docs/endpoint.md) explains how to use them.", ""]
    found = sorted(set(entities(xml)))
    for header in headers:
        lines += [f"## {header}", "", "```text", *opening(root / header), "```", "",
                  "```{eval-rst}"]
        for file, _, kind, name in found:
            if file == header:
                lines += [f".. {DIRECTIVES[kind]}:: {name}"]
                members = ["   :members:", "   :undoc-members:"]
                lines += [*(members if kind in ("class", "struct") else []), ""]
        lines += ["```", ""]
    return "\n".join(lines)
