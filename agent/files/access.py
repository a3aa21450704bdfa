"""Decides which files a pattern may lead to. Does no I/O.

Whoever may write into a directory of logs may make a link there, also to a file that only the agent
may read. So a link counts only if it belongs to root, to the agent's user, or to the owner of the
file to which it leads: to read a file of one's own through a link gives nothing away. Some
directories never have logs, but secrets; there the agent reads nothing, whatever leads there.

If the agent may read every file of the host, it also matters who may have put a file where it is:
the owner of the directory may have moved a file of another user there, which he may not read, and
the kernel may let everybody make further names of a file (hard links).
"""

from __future__ import annotations

import os
import stat
from dataclasses import field
from pathlib import Path
from typing import Final, Literal

from skidway.dataclass import dataclass
from skidway.ways import End, Link

Rule = Literal["owner", "all", "none"]

SYSTEM: Final = (
    "/proc", "/sys", "/dev", "/etc/skidway", "/run/secrets", "/var/run/secrets",
)  # fmt: skip
"""Directories without logs on every host."""


def may_read_all() -> bool:
    """Whether this process has CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH."""
    with open("/proc/self/status") as lines:
        effective = next(line for line in lines if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) & 0b110)


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one agent. closed: the beginnings of paths below which the agent reads nothing.
    opened: beginnings of paths inside of these, below which it reads nevertheless. user: the
    agent's own user. reads_all: whether the agent may read every file."""

    rule: Rule = "owner"
    closed: tuple[str, ...] = tuple(f"{each}/" for each in SYSTEM)
    opened: tuple[str, ...] = ()
    user: int = field(default_factory=os.geteuid)
    reads_all: bool = field(default_factory=may_read_all)

    def refusal(self, path: str, end: End) -> tuple[str, str] | None:
        """Returns the path to name, and why the agent does not follow `path`, which leads to `end`;
        None if it follows. The real path of a directory ends in a slash."""
        real_path, status, links, _ = end
        owner = status.st_uid
        if real_path.startswith(self.closed) and not real_path.startswith(self.opened):
            directory = next(each for each in self.closed if real_path.startswith(each))
            return path, f"it leads to a file below {directory}, where the agent reads nothing"
        doubt = _doubt(end) if self.reads_all else None
        if doubt is not None:
            return path, (
                f"it is a file of user {owner} {doubt}, in a directory of user"
                f" {end.directory.st_uid}, and the agent may read every file"
            )
        if not links or self.rule == "all":
            return None
        if self.rule == "none":
            return links[0].path, "it is a link, and links: none lets the agent follow no link"
        for link in links:
            if self.is_users(link) and link.owner != owner:
                return link.path, (
                    f"it is a link of user {link.owner} to something of user {owner}, so the agent"
                    " does not follow it; give it to root (chown -h), or see the setting links"
                )
        return None

    def is_users(self, link: Link) -> bool:
        """Whether a link proves nothing but that its owner wants the agent to follow it."""
        return self.rule != "all" and link.owner not in (0, self.user)


def access_of(rule: Rule, state_dir: Path) -> Access:
    """Returns the rules of an agent with this state. In the directory of its state, the agent reads
    only the files that `skidway agent replay` makes."""
    state = os.path.realpath(state_dir)
    secrets = os.environ.get("CREDENTIALS_DIRECTORY")
    own = [state] if secrets is None else [state, os.path.realpath(secrets)]
    closed = tuple(f"{each.rstrip('/')}/" for each in (*SYSTEM, *own))
    return Access(rule, closed, (f"{state}/replay/",))


def _doubt(end: End) -> str | None:
    """Returns what makes it doubtful that whoever put a file there may read it; None if nothing
    does. What everybody may read gives nothing away. An owner can give a directory only to groups
    of his own, so he may read what such a group may read."""
    status, directory = end.status, end.directory
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_nlink > 1 and status.st_uid != directory.st_uid:
        return f"with {status.st_nlink} names"
    if status.st_mode & stat.S_IROTH:
        return None
    if directory.st_mode & stat.S_IWOTH:
        return "that not everybody may read but everybody may have put there"
    is_shared = status.st_mode & stat.S_IRGRP and status.st_gid == directory.st_gid
    if directory.st_uid in (0, status.st_uid) or is_shared:
        return None
    return "that not everybody may read"
