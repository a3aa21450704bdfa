"""Collects the third-party wheels that Skidway's programs need, and keeps them for later versions
of Skidway.

    dist/wheels/third-party/
        *.whl        one version of each package, including pip itself
        index.json   key, programs: {program: [file, ...]}, sha256: {file: hash}

The wheels have the versions that are installed in the virtual environment in which this code runs.
The tests run with these versions, too. The `key` in index.json is a hash of Skidway's dependencies,
the version of Python and the kind of machine. While the key and the installed versions stay the
same, this code neither downloads nor builds a wheel again. (PyPI has only the sources of pyspark,
so this code has to build the wheel of pyspark.)
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sysconfig
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from deploy.packaging.directories import replacement
from deploy.packaging.own_wheel import PackagingFailed, pip, project

PROGRAMS = ("zookeeper", "broker", "registry", "agent", "audit", "loader")
"""Skidway's programs. For each program, the package `skidway` has an extra of the same name."""

INDEX = "index.json"
TEMPORARY_BYTES = 3_000_000_000
"""pip unpacks and builds pyspark in the directory for temporary files, and needs so much space."""

UNBOUND = frozenset({"skidway", "pip", "setuptools", "wheel"})
"""Skidway's own package, and packages that only install other packages. Their wheels need not have
the versions that are installed in the environment."""


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
        _fetch(f"skidway[{','.join(PROGRAMS)}] @ {own.as_uri()}", fresh)
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
                wheel.unlink()  # this is the wheel `own`, which pip also copies
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
    depends = [about["dependencies"], about["optional-dependencies"], PROGRAMS, target()]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _read(folder: Path, key: str) -> ThirdParty | None:
    try:
        document: dict[str, Any] = json.loads((folder / INDEX).read_text())
    except FileNotFoundError:
        return None
    there = {file.name for file in folder.glob("*.whl")}
    if document["key"] != key or there != set(document["sha256"]):
        return None
    if not all(_is_installed(file) for file in there):
        return None
    return ThirdParty(folder, document["programs"], document["sha256"])


def _is_installed(file: str) -> bool:
    """Returns whether the wheel `file` has the version that is installed in the environment. Also
    returns True if the version does not matter: the environment does not have the package, or the
    package is in UNBOUND."""
    name, given, *_ = file.split("-")
    try:
        return name in UNBOUND or version(name) == given
    except PackageNotFoundError:
        return True


def _fetch(requirement: str, folder: Path) -> None:
    """Downloads the wheels of a requirement and its dependencies, in the versions that the
    environment has. Builds the wheel of a package if PyPI has only the package's sources."""
    temporary = Path(tempfile.gettempdir())
    if (free := shutil.disk_usage(temporary).free) < TEMPORARY_BYTES:
        raise PackagingFailed(
            f"{temporary} has {free / 1e9:.1f} GB free, and building pyspark needs "
            f"{TEMPORARY_BYTES / 1e9:.0f} GB: make room, or set TMPDIR=/var/tmp"
        )
    installed = sorted(
        f"{each.name}=={each.version}" for each in distributions() if each.name not in UNBOUND
    )
    with tempfile.TemporaryDirectory() as name:
        constraints = Path(name) / "constraints.txt"
        constraints.write_text("\n".join(installed) + "\n")
        pip(
            # pip below 23.1, as in Debian 12, else builds sources without pyproject.toml (pyspark)
            # with the environment's own setuptools, and fails if there is no package `wheel`.
            *("wheel", "--use-pep517", "--wheel-dir", str(folder), "-c", str(constraints)),
            *(requirement, "pip"),
        )


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
