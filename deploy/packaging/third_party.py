"""Collects the third-party wheels that Skidway's programs need, and keeps them for later versions
of Skidway.

    dist/wheels/third-party/
        *.whl        one version of each package, including pip itself
        index.json   key, programs: {program: [file, ...]}, sha256: {file: hash}

The packages are those of `requirements/wheels.txt`, and pip takes only files that have the hashes
there; the tests run with the same versions. PyPI has only the sources of pyspark, so this code
builds that wheel, with the setuptools of the same list. The `key` in index.json is a hash of this
list, of Skidway's dependencies, the version of Python and the kind of machine. While the key stays
the same, this code neither downloads nor builds a wheel again.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deploy.packaging.directories import replacement
from deploy.packaging.own_wheel import ROOT, PackagingFailed, pip, project

PROGRAMS = ("zookeeper", "broker", "registry", "agent", "audit", "loader")
"""Skidway's programs. For each program, the package `skidway` has an extra of the same name."""

INDEX = "index.json"
TEMPORARY_BYTES = 3_000_000_000
"""pip unpacks and builds pyspark in the directory for temporary files, and needs so much space."""

LOCK = ROOT / "requirements" / "wheels.txt"
BUILDER = "setuptools"


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """The content of the folder third-party: for each program the file names of its wheels, and for
    each file its hash."""

    folder: Path
    programs: dict[str, list[str]]
    sha256: dict[str, str]

    @property
    def pip(self) -> str:
        """Returns the file name of pip's own wheel, from which a host without pip runs pip to
        install the other wheels."""
        return next(file for file in self.sha256 if file.startswith("pip-"))


def collect(folder: Path, own: Path) -> ThirdParty:
    """Returns the content of `folder`, the folder third-party. If the folder is out of date, this
    function first fills it again with the dependencies of the wheel `own`."""
    key = _key()
    known = _read(folder, key)
    if known is not None:
        return known
    with replacement(folder) as fresh:
        _fetch(fresh)
        programs: dict[str, list[str]] = {}
        sha256: dict[str, str] = {}
        for program in PROGRAMS:
            needs = _needs(program, own, fresh)
            programs[program] = sorted(needs)
            sha256 |= needs
        boot = next(fresh.glob("pip-*.whl"))
        sha256[boot.name] = sha256_of(boot)
        for wheel in fresh.glob("*.whl"):
            if wheel.name not in sha256:
                wheel.unlink()  # no program needs it: it built other wheels
        document = {"key": key, "programs": programs, "sha256": sha256}
        (fresh / INDEX).write_text(json.dumps(document, indent=1))
    return ThirdParty(folder, programs, sha256)


def sha256_of(file: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits, as in pip's requirements."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def target() -> dict[str, str]:
    """Returns the version of Python and the kind of machine for which the wheels are built: those
    of this process."""
    return {
        "python": sysconfig.get_python_version(),
        "implementation": platform.python_implementation(),
        "platform": sysconfig.get_platform(),
    }


def _key() -> str:
    about = project()["project"]
    locked = sha256_of(LOCK)
    depends = [about["dependencies"], about["optional-dependencies"], PROGRAMS, target(), locked]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _read(folder: Path, key: str) -> ThirdParty | None:
    try:
        document: dict[str, Any] = json.loads((folder / INDEX).read_text())
    except FileNotFoundError:
        return None
    there = {file.name for file in folder.glob("*.whl")}
    if document["key"] != key or there != set(document["sha256"]):
        return None
    return ThirdParty(folder, document["programs"], document["sha256"])


def _fetch(folder: Path) -> None:
    """Downloads the wheels of LOCK. Builds the wheel of a package if PyPI has only the package's
    sources."""
    temporary = Path(tempfile.gettempdir())
    if (free := shutil.disk_usage(temporary).free) < TEMPORARY_BYTES:
        raise PackagingFailed(
            f"{temporary} has {free / 1e9:.1f} GB free, and building pyspark needs "
            f"{TEMPORARY_BYTES / 1e9:.0f} GB: make room, or set TMPDIR=/var/tmp"
        )
    by_hash = ("--require-hashes", "--no-deps")
    with tempfile.TemporaryDirectory() as name:
        builder, tools = Path(name, "builder.txt"), Path(name, "tools")
        builder.write_text(locked(BUILDER))
        pip("install", *by_hash, "--target", str(tools), "-r", str(builder))
        pip(
            # With build isolation, pip would download what builds a wheel without its hash. pip
            # below 23.1, as in Debian 12, would build sources without pyproject.toml (pyspark) in
            # the old way without --use-pep517, and fail if there is no package `wheel`.
            *("wheel", *by_hash, "--no-build-isolation", "--use-pep517"),
            *("--wheel-dir", str(folder), "-r", str(LOCK)),
            modules=tools,
        )


def locked(package: str) -> str:
    """Returns the lines of LOCK about a package: its version and its hashes."""
    lines = LOCK.read_text().splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if line.startswith(f"{package}=="))
    end = begin + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return "".join(lines[begin:end])


def _needs(program: str, own: Path, wheels: Path) -> dict[str, str]:
    """Returns {file: hash} for the third-party wheels that pip would install for a program. pip
    resolves the dependencies offline."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "report.json"
        pip(
            *("install", "--dry-run", "--ignore-installed", "--no-index"),
            *("--find-links", str(wheels), "--report", str(file)),
            f"skidway[{program}] @ {own.as_uri()}",
        )
        report = json.loads(file.read_text())
    needs = {}
    for each in report["install"]:
        info = each["download_info"]
        wheel = Path(unquote(urlsplit(info["url"]).path))
        if wheel.name != own.name:
            needs[wheel.name] = sha256_of(wheels / wheel.name)
    if not needs:
        raise PackagingFailed(f"pip found nothing that {program} needs")
    return needs
