"""The packages of a program's extra, and the pip command that installs them. Every program needs
the packages of the kernel. An extra has the packages that one program needs in addition.

No package index has this project yet, so anybody could publish a package of this name. Therefore
the pip command that `how` returns names the missing packages themselves. The names come from the
installed distribution's metadata (PEP 508).
"""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires, version

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(.*?); *extra == ['\"]([^'\"]+)['\"]")


def needed(extra: str) -> list[str]:
    """Returns the requirements of an extra, in the form that pip accepts, without the kernel's
    requirements."""
    found = []
    for text in requires("skidway") or ():
        match = _REQUIREMENT.fullmatch(text)
        if match is not None and match[3] == extra and match[1] != "skidway":
            found.append(match[1] + match[2])
    return found


def lacking(extra: str) -> list[str]:
    """Returns those requirements of an extra whose packages are not installed here in any
    version."""
    return [each for each in needed(extra) if not _is_installed(each)]


def how(extra: str) -> str:
    """Returns the pip command that installs the missing requirements of an extra. If none is
    missing, the command installs all requirements of the extra."""
    wanted = lacking(extra) or needed(extra)
    return f"{sys.executable} -m pip install {' '.join(map(shlex.quote, wanted))}"


def _is_installed(requirement: str) -> bool:
    name = _NAME.match(requirement)
    assert name is not None
    try:
        version(name[0])
    except PackageNotFoundError:
        return False
    return True
