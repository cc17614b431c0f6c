"""The Debian packages of this tree, built with the preset `package`."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build():
    """Each package by its name, as a file; those of other versions are deleted first."""
    folder = ROOT / "build-package"
    for old in folder.glob("*.deb"):
        old.unlink()
    for command in (["--preset", "package", "--log-level=WARNING"],
                    ["--build", "--preset", "package", "-j", os.environ.get("PERCS_JOBS", "2")]):
        done = subprocess.run(["cmake", *command], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-4000:]
    return {file.name.partition("_")[0]: file for file in folder.glob("*.deb")}
