"""Finds which wheels and which Python a version of Skidway needs on a host, and which versions to
remove from the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

_VERSION = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
"""Matches a normalized version (PEP 440). `make wheels` uses such versions as names of folders."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*([^\s;]+)")


def wheels_for(requirements: str, files: Iterable[str], installed: Iterable[str] = ()) -> list[str]:
    """Returns the wheels that a requirements file lists, and the wheel of pip itself.

    `installed` has the requirements files that are already installed in the virtual environment;
    the result leaves out the wheels of these files. Raises ValueError if a wheel is missing, or if
    a package is installed in the listed version, but with another hash.
    """
    by_release: dict[tuple[str, str], list[str]] = {}
    for path in files:
        name, version = path.rsplit("/", 1)[-1].split("-")[:2]
        by_release.setdefault((_canonical(name), version), []).append(path)
    there = {release: line for text in installed for release, line in _releases(text).items()}
    wanted = {release for release in by_release if release[0] == "pip"}
    for release, line in _releases(requirements).items():
        title = "==".join(release)
        if there.get(release, line) != line:
            raise ValueError(
                f"{title} on this host was made of another wheel: new wheels need a new version"
            )
        if release not in by_release:
            raise ValueError(f"there is no wheel of {title}")
        if release not in there:
            wanted.add(release)
    return sorted(path for release in wanted for path in by_release[release])


def _releases(requirements: str) -> dict[tuple[str, str], str]:
    """Returns {(package, version): the line about it} for a requirements file. A line includes the
    hashes."""
    lines = requirements.replace("\\\n", " ").splitlines()
    return {
        (_canonical(found[1]), found[2]): " ".join(line.split())
        for line in lines
        if (found := _REQUIREMENT.match(line))
    }


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def python_problem(found: str, manifest: Mapping[str, Any], path: str) -> str:
    """Returns a message if the wheels are not for the host's Python, else "".

    `found` has the version, implementation and platform of the host's Python, and `path` is this
    Python's path. `manifest` is the content of wheels.json.
    """
    needed = " ".join(str(manifest[key]) for key in ("python", "implementation", "platform"))
    if found.split() == needed.split():
        return ""
    return (
        f"The wheels of {manifest['version']} are for {needed}, and {path} here is "
        f"{found.strip()}: make wheels with the Python that the hosts have, or set skidway_python. "
        "Nothing was changed."
    )


def is_older(version: object, than: str) -> bool:
    """Whether `version` is older than the version `than` by PEP 440. If `than` is empty, the result
    is False.

    `version` may also be a number, because YAML reads 0.2 in an inventory as a number. Raises
    InvalidVersion for a text that is no version.
    """
    return bool(than) and Version(str(version)) < Version(than)


def superfluous(
    versions: Iterable[Mapping[str, Any]], links: Iterable[str], kept: int
) -> list[str]:
    """Returns the directories of the versions to remove. At least `kept` versions remain: the
    versions in use, and if these are fewer than `kept`, also the newest of the others.

    `versions` has results of Ansible's module `find`; a directory whose name is not a version is
    not removed. `links` has the versions in use: those to which a link leads, and those to which a
    roll-back can return. Each item is a version, or a path that ends with a version.
    """
    in_use = {link.rstrip("/").rsplit("/", 1)[-1] for link in links}
    newest_first = sorted(versions, key=lambda each: float(each["mtime"]), reverse=True)
    named = [(each["path"], each["path"].rsplit("/", 1)[-1]) for each in newest_first]
    idle = [path for path, name in named if _VERSION.fullmatch(name) and name not in in_use]
    return idle[max(0, int(kept) - len(in_use)) :]
