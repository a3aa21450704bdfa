"""The name of this host, as messages, reports and printed commands give it.

All programs of a host must give it the same name, because the audit connects what they say by this
name, and people look for it in their inventory. So each program has the setting `host.name`; the
Ansible roles set it to the host's name in the inventory. Without the setting, it is the kernel's
name. Addresses for clients do not come from here.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

from skidway.settings import DEFAULT_DIRECTORY, peek, setting

KEY: Final = "host.name"
_PROGRAMS: Final = ("audit", "agent", "loader")
"""The programs whose users run commands that have no settings of their own."""


def host_name_setting() -> Any:
    """Declares the field `host_name: str | None` of a program's settings class."""
    return setting(
        KEY,
        None,
        help="Name of this host in messages and printed commands, the same for all its programs; if"
        " not set, the kernel's name.",
    )


def host_name(given: str | None) -> str:
    """Returns the name of this host. given: the setting of the program."""
    return given or socket.gethostname()


def installed_host_name(directory: Path = DEFAULT_DIRECTORY) -> str:
    """Returns the name of this host for a command without settings: the first that a configuration
    gives which is installed here and which this user can read."""
    found = (peek(KEY, None, program=x, directory=directory) for x in _PROGRAMS)
    return host_name(next(filter(None, found), None))
