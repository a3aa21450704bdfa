"""Makes a command that root runs the user to whom the state belongs, before it writes there.

Whoever owns a directory can exchange what is in it for links. If root wrote there, this user could
make root write anywhere. And what root made there, a program of this user could not use.
"""

from __future__ import annotations

# Python itself imports these two modules only when they are needed: too late where only root may
# read Python, for example below /root.
import encodings.idna  # noqa: F401
import importlib.readers  # noqa: F401
import os
import pwd
from pathlib import Path

from skidway.errors import SkidwayError
from skidway.ways import way


def become_owner(directory: Path) -> None:
    """If this process is root's, and a directory of state belongs to another user, or another user
    could exchange it, gives this process for good to that user, with the user's own groups. If the
    directory is missing, its nearest parent decides. Raises SkidwayError if that is impossible."""
    if os.geteuid() != 0:
        return
    place = directory.absolute()
    try:
        while not place.exists():
            place = place.parent
        with way(str(place)) as found:
            user = found.user
            group = found.end.status.st_gid
        if user:
            _become(user, group)
    except OSError as error:
        raise SkidwayError(
            f"root cannot become the user of {directory}: {error.strerror}; run this as that user"
            " (runuser -u USER -- ...)"
        ) from error


def _become(user: int, group: int) -> None:
    """Takes all identities of a user. group: the group, if the host does not know the user."""
    groups = [group]
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        os.environ["HOME"] = "/"  # not root's
    else:
        group = entry.pw_gid
        groups = os.getgrouplist(entry.pw_name, group)
        os.environ.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)
    os.setgroups(groups)
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
