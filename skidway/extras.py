"""What each program needs beside the kernel, and the pip command that installs it.

`pip install 'skidway[agent]'` finds nothing where pip's package index lacks this project, so our
command names the missing packages. Source: the installed distribution's metadata (PEP 508).
"""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires, version

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(.*?); *extra == ['\"]([^'\"]+)['\"]")


def needed(extra: str) -> list[str]:
    """The requirements of an extra, as pip takes them, without those of the kernel."""
    found = []
    for text in requires("skidway") or ():
        match = _REQUIREMENT.fullmatch(text)
        if match is not None and match[3] == extra and match[1] != "skidway":
            found.append(match[1] + match[2])
    return found


def lacking(extra: str) -> list[str]:
    """The requirements of an extra that are not installed here, in any version."""
    return [each for each in needed(extra) if not _is_installed(each)]


def how(extra: str) -> str:
    """The command that installs what is lacking, or the whole extra if nothing is."""
    wanted = lacking(extra) or needed(extra) or [f"skidway[{extra}]"]
    return f"{sys.executable} -m pip install {' '.join(map(shlex.quote, wanted))}"


def _is_installed(requirement: str) -> bool:
    name = _NAME.match(requirement)
    assert name is not None
    try:
        version(name[0])
    except PackageNotFoundError:
        return False
    return True
