"""Builds Skidway's own wheel from a copy of the sources, with the version that the caller gives."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

CANONICAL = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
"""Matches a version in the normal form of PEP 440, without an epoch. The caller must pass a version
in this form, so that directories and wheels have the same version in their names: a directory gets
the version that the caller passes, and a wheel gets its normal form."""

VERSION_LINE = re.compile(r'^version = "[^"]*"$', re.MULTILINE)


class PackagingFailed(Exception):
    """Raised if the build fails, or if the given version is not valid. The exception's message is
    for the person who called make."""


def project() -> dict[str, Any]:
    """Returns the whole content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def version_or_default(version: str | None) -> str:
    """Returns the given version; if it is None or empty, the version in pyproject.toml. Raises
    PackagingFailed if the given version is not in PEP 440's normal form."""
    if not version:
        return str(project()["project"]["version"])
    if not CANONICAL.fullmatch(version):
        raise PackagingFailed(
            f"'{version}' is no version in normal form (PEP 440): 1.2.3, 1.3.0rc1, 1.3.0.dev4"
        )
    return version


def build(version: str, folder: Path) -> Path:
    """Builds skidway-<version>-py3-none-any.whl in `folder`. Changes nothing in the source tree."""
    with tempfile.TemporaryDirectory(prefix="skidway-sources-") as name:
        copy = Path(name)
        _copy_sources(copy)
        _set_version(copy / "pyproject.toml", version)
        # Without build isolation, the locked hatchling of this environment builds the wheel.
        pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy))
    wheel = folder / f"skidway-{version}-py3-none-any.whl"
    if not wheel.exists():
        raise PackagingFailed(f"pip did not build {wheel.name}")
    return wheel


def pip(*arguments: str, modules: Path | None = None) -> None:
    """Runs the pip of this virtual environment. modules: a directory of further Python modules, for
    what builds wheels. Raises PackagingFailed with pip's output."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    environment = {**os.environ, **({} if modules is None else {"PYTHONPATH": str(modules)})}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
    if done.returncode:
        raise PackagingFailed(f"pip {arguments[0]} failed:\n{done.stdout}{done.stderr}")


def _copy_sources(target: Path) -> None:
    """Copies the sources of the wheel: the files that git tracks, and new files that git does not
    ignore. Without a git repository, copies all files except .pyc files."""
    about = project()
    parts = [
        "pyproject.toml",
        about["project"]["readme"],
        *about["project"]["license-files"],
        *about["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"],
    ]
    for file in _files(parts):
        if (ROOT / file).is_symlink():  # the list also has the link's target
            continue
        place = target / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, place)


def _files(parts: list[str]) -> list[Path]:
    if not (ROOT / ".git").exists():  # ROOT is an unpacked archive of the sources
        found = [p for part in parts for p in [ROOT / part, *(ROOT / part).rglob("*")]]
        return [p.relative_to(ROOT) for p in found if p.is_file() and p.suffix != ".pyc"]
    if shutil.which("git") is None:
        raise PackagingFailed("in a clone git must be installed (Debian: apt-get install git)")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *parts]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _set_version(file: Path, version: str) -> None:
    text, replaced = VERSION_LINE.subn(f'version = "{version}"', file.read_text())
    if replaced != 1:
        raise PackagingFailed(f"pyproject.toml has {replaced} lines that set the version, not one")
    file.write_text(text)
