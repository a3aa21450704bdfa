"""Builds Skidway's wheels from this source tree, and installs Skidway's programs and packages for
tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Collection, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from deploy.packaging import own_wheel, wheels

VERSION = "9.8.7"


@cache
def wheels_of(version: str) -> Path:
    """Makes the wheels of the current source tree, as `make wheels VERSION=...` does. Returns the
    directory with the wheels."""
    return wheels.collect(version)


def install(programs: list[str], folder: Path, into: Path) -> None:
    """Makes the virtual environment `into`, and installs Skidway's `programs` there. The wheels in
    `folder` contain pip and all packages, as on a host that has only Python."""
    run([sys.executable, "-m", "venv", "--without-pip", str(into)])
    (pip,) = folder.glob("pip-*.whl")
    lists = [word for program in programs for word in ("-r", str(folder / f"{program}.txt"))]
    run(
        [
            *(str(into / "bin" / "python"), str(pip / "pip"), "install", "--quiet"),
            *("--no-index", "--find-links", str(folder), "--require-hashes", *lists),
        ]
    )


def run(command: list[str], **options: object) -> str:
    """Runs a command, and returns its standard output. Fails the test if the exit status is not
    0."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


def copy_installed(requirement: str, into: Path, without: Collection[str] = ()) -> None:
    """Installs `requirement` (skidway with some extras) into the virtual environment `into`, as pip
    would. Skidway comes from this source tree, and its dependencies come from the environment of
    this process.

    `without` contains the names of dependencies that are not installed.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = into / "lib" / version / "site-packages"
    for each in required_by(Requirement(requirement)):
        if each.name not in {"skidway", *without}:
            for file in each.files or ():
                if ".." not in file.parts:  # leave out commands, which lie outside site-packages
                    _place(Path(str(each.locate_file(file))), packages / file)
    with zipfile.ZipFile(own_wheel.build(VERSION, into.parent)) as wheel:
        wheel.extractall(packages)


def required_by(wanted: Requirement) -> Iterator[metadata.Distribution]:
    """Yields the installed distributions that a requirement needs, directly or through other
    distributions. Yields a distribution once for each different requirement that names it."""
    pending, seen = [wanted], set[str]()
    while pending:
        each = pending.pop()
        if str(each) in seen:
            continue
        seen.add(str(each))
        found = metadata.distribution(each.name)
        yield found
        for text in found.requires or ():
            needed = Requirement(text)
            extras = each.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": x}) for x in extras):
                pending.append(needed)


def _place(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() or not source.is_file():
        return
    try:
        os.link(source, target)
    except OSError:  # a hard link cannot lead to another file system
        shutil.copy2(source, target)
