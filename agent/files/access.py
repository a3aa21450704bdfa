"""Decides which files a pattern may lead to. Asks the host only for users' groups.

Whoever may write into a directory of logs may make a link there, also to a file that only the agent
may read. So a link counts only if it belongs to root, to the agent's user, or to the owner of the
file to which it leads: to read a file of one's own through a link gives nothing away. Some
directories never have logs, but secrets; there the agent reads nothing, whatever leads there.

If the agent may read every file of the host, it also matters who may have put a file where it is:
whoever may write into a directory on the way may have moved a file or directory of another user
there, which he may not read, and the kernel may let everybody make further names of a file (hard
links).
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from skidway.dataclass import dataclass
from skidway.ways import End, Link, Passed

Rule = Literal["owner", "all", "none"]

SYSTEM: Final = (
    "/proc", "/sys", "/dev", "/etc/skidway", "/run/secrets", "/var/run/secrets",
)  # fmt: skip
"""Directories without logs on every host."""


DISTRIBUTIONS: Final = "/var/log"
"""Into this directory, a group of the distribution (Ubuntu's syslog) writes the system's logs."""


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
                f"it is a file of user {owner} {doubt[0]}, user {doubt[1].status.st_uid} or group"
                f" {doubt[1].status.st_gid} may have moved it to {doubt[1].path}, and the agent may"
                " read every file"
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


def _doubt(end: End) -> tuple[str, Passed] | None:
    """Returns what makes it doubtful that whoever put a file, or a directory above it, where it is
    may read the file, and where that is; None if nothing does. What everybody may reach and read
    gives nothing away."""
    status, passed = end.status, end.directories
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_nlink > 1 and status.st_uid != passed[-1].status.st_uid:
        return f"with {status.st_nlink} names", passed[-1]
    for index, above in enumerate(passed):
        below = [*(each.status for each in passed[index + 1 :]), status]
        after = passed[index + 1 : index + 2]
        is_directory = any(os.path.dirname(each.path) == above.path for each in after)
        for user, group in _movers(above, status.st_uid, is_directory=is_directory):
            if not all(_is_open(each, user, group) for each in below):
                return "that not everybody may read", above
    return None


def _movers(
    above: Passed, owner: int, *, is_directory: bool
) -> Iterator[tuple[int | None, int | None]]:
    """Yields the users and groups, None for any, that may have moved into a directory what is in
    it. If everybody may write into it, but remove nothing of others (the sticky bit), nobody can
    have moved a directory of another user there. An owner can give a directory only to groups of
    his own, so he may read what such a group may read."""
    status = above.status
    if status.st_uid not in (0, owner):
        yield status.st_uid, status.st_gid
    if is_directory and status.st_mode & stat.S_ISVTX:
        return
    is_groups = status.st_mode & stat.S_IWGRP and above.path != DISTRIBUTIONS
    if is_groups and status.st_gid not in (0, _group_of(owner)):
        yield None, status.st_gid
    if status.st_mode & stat.S_IWOTH:
        yield None, None


def _is_open(status: os.stat_result, user: int | None, group: int | None) -> bool:
    """Whether a user, or members of a group, may search a directory or read a file."""
    bit = stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
    if status.st_mode & bit or status.st_uid == user:
        return True
    return status.st_gid == group and bool(status.st_mode & bit << 3)


@lru_cache(1024)
def _group_of(user: int) -> int | None:
    """Returns the group of a user; None if the host does not know the user."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return None
