"""Makes a command that root runs the user to whom the state belongs, before it works there.

Whoever owns a directory can exchange what is in it for links. If root wrote there, this user could
make root write anywhere. And what root made there, a program of this user could not use. A command
that only reads the state, and also reads what only root may read, acts as the user meanwhile.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from skidway import import_path
from skidway.errors import SkidwayError
from skidway.ways import way


class Owner(NamedTuple):
    """A user of this host, with the user's own groups. entry: None if the host does not know the
    user."""

    user: int
    group: int
    groups: list[int]
    entry: pwd.struct_passwd | None


def become_owner(directory: Path) -> None:
    """If this process is root's, and a directory of state belongs to another user, or another user
    could exchange it, gives this process for good to that user, with the user's own groups. If the
    directory is missing, its nearest parent decides. Raises SkidwayError if that is impossible."""
    owner = owner_of(directory)
    if owner is None:
        return
    if owner.entry is None:
        os.environ["HOME"] = "/"  # not root's
    else:
        name = owner.entry.pw_name
        os.environ.update(HOME=owner.entry.pw_dir, USER=name, LOGNAME=name)
    try:
        with import_path.kept_open():
            os.setgroups(owner.groups)
            os.setresgid(owner.group, owner.group, owner.group)
            os.setresuid(owner.user, owner.user, owner.user)
    except OSError as error:
        raise _impossible(f"user {owner.user}", error) from error


def owner_of(path: Path) -> Owner | None:
    """Returns as whom a process of root works on a directory or file; None if this process is not
    root's, or if nobody but root can exchange the path. If the path is missing, its nearest parent
    decides. Raises SkidwayError if the path cannot be followed."""
    if os.geteuid() != 0:
        return None
    place = path.absolute()
    try:
        while not place.exists():
            place = place.parent
        with way(str(place)) as found:
            user, group = found.user, found.end.status.st_gid
    except OSError as error:
        raise _impossible(f"the user of {path}", error) from error
    if not user:
        return None
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return Owner(user, group, [group], None)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return Owner(user, entry.pw_gid, groups, entry)


@contextmanager
def acting_as(owner: Owner | None) -> Iterator[None]:
    """In the `with` block, all threads of this process open and change files as this user, with
    none of root's rights. Without owner, or if the process is not root's, changes nothing. The user
    cannot send signals to the process, because it stays root's. Raises SkidwayError if that is
    impossible."""
    if owner is None or os.geteuid() != 0:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    try:
        try:
            os.setgroups(owner.groups)
            os.setegid(owner.group)
            os.seteuid(owner.user)
        except OSError as error:
            raise _impossible(f"user {owner.user}", error) from error
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _impossible(whom: str, error: OSError) -> SkidwayError:
    return SkidwayError(
        f"root cannot become {whom}: {error.strerror}; run this as that user"
        " (runuser --pty -u USER -- ...)"
    )
