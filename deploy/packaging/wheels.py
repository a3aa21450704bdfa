"""`make wheels [VERSION=x]`: collects all wheels for hosts without internet in one directory.

    dist/wheels/<version>/
        skidway-<version>-py3-none-any.whl
        *.whl           third-party wheels, including pip's own
        <program>.txt   pip requirements with hashes: exactly the packages of that program
        wheels.json     version, python, implementation, platform; pip: the file of pip's wheel;
                        programs: {program: [file, ...]}, the files to copy for the program

Two builds from the same sources produce the same wheels and hashes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.packaging import own_wheel, third_party
from deploy.packaging.directories import replacement
from deploy.packaging.own_wheel import ROOT, PackagingFailed
from deploy.packaging.third_party import PROGRAMS, ThirdParty

WHEELS = ROOT / "dist" / "wheels"
MANIFEST = "wheels.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the directory of wheels, prints its path and returns 0. If the build fails, prints the
    reason and returns 1. Returns 2 if the version for the wheels is not in PEP 440's normal form.
    """
    parser = argparse.ArgumentParser(prog="make wheels", description="wheels for offline hosts")
    parser.add_argument("--version", help="instead of pyproject's; the tree is not changed")
    args = parser.parse_args(argv)
    try:
        version = own_wheel.version_or_default(args.version)
    except PackagingFailed as error:
        sys.stderr.write(f"make wheels: {error}\n")
        return 2
    try:
        folder = collect(version)
    except PackagingFailed as error:
        sys.stderr.write(f"make wheels: {error}\n")
        return 1
    count = len(list(folder.glob("*.whl")))
    sys.stdout.write(f"{count} wheels and {len(PROGRAMS)} lists of them in {folder}\n")
    return 0


def collect(version: str, wheels: Path = WHEELS) -> Path:
    """Builds the directory of a version, and replaces an earlier directory of this version. Raises
    PackagingFailed."""
    folder = wheels / version
    with replacement(folder) as fresh:
        own = own_wheel.build(version, fresh)
        others = third_party.collect(wheels / "third-party", own)
        for file in others.sha256:
            _link(others.folder / file, fresh / file)
        _write_lists(fresh, version, own, others)
    return folder


def requirement(wheel: str, sha256: str) -> str:
    """Returns a line of a requirements file for pip. The package and version in this line come from
    the wheel's file name (PEP 427)."""
    name, version, *_ = wheel.split("-")
    return f"{name.replace('_', '-')}=={version} --hash=sha256:{sha256}"


def _write_lists(folder: Path, version: str, own: Path, others: ThirdParty) -> None:
    hashes = {own.name: third_party.sha256_of(own), **others.sha256}
    programs = {program: [own.name, *others.programs[program]] for program in PROGRAMS}
    built_for = third_party.target()
    for program, files in programs.items():
        lines = [
            f"# What `skidway {version}` needs as {program}, for Python {built_for['python']}.",
            *(requirement(file, hashes[file]) for file in files),
        ]
        (folder / f"{program}.txt").write_text("\n".join(lines) + "\n")
    manifest = {"version": version, **built_for, "pip": others.pip, "programs": programs}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _link(source: Path, target: Path) -> None:
    """Makes a hard link, so that the directories of several versions share the file. Copies the
    file if the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


if __name__ == "__main__":
    raise SystemExit(main())
