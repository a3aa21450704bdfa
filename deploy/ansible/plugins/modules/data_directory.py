"""Makes a directory of a program's data and gives it to the program's user, or removes what is in
it.

Root does this, in directories that a user may fill. Whoever may change a directory on the way could
exchange the next name for a link, and so choose what root gives away or removes. So each step opens
the next name in the directory that the step before opened, and goes on only where no user but root
can change the way.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat

DOCUMENTATION = r"""
module: data_directory
short_description: Makes a directory of a program's data, or empties it
description:
  - Makes missing parents as root's, and gives only the directory itself to O(owner) and O(group).
  - Follows a link only if it is root's.
  - Refuses a path that a user other than root could lead elsewhere.
options:
  path:
    type: path
    required: true
    description: The absolute path of the directory.
  state:
    type: str
    choices: [present, empty]
    default: present
    description: Whether to make the directory, or to remove everything in it, if it is there.
  owner:
    type: str
    default: root
    description: The owner of the directory.
  group:
    type: str
    default: root
    description: The group of the directory.
  mode:
    type: str
    default: "0755"
    description: The mode of the directory, as an octal number.
author: Skidway (@skidway)
"""
EXAMPLES = r"""
- name: Make a directory of the broker
  skidway.fleet.data_directory:
    path: /data/disk1/skidway
    owner: skidway-broker
    group: skidway-broker
    mode: "0750"
"""
RETURN = r""" # """

LINKS_MAX = 40
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """A sentence that says why root must not act on a path."""


def main() -> None:
    """Does what the parameters of the task say."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "empty"], "default": "present"},
            "owner": {"type": "str", "default": "root"},
            "group": {"type": "str", "default": "root"},
            "mode": {"type": "str", "default": "0755"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        if wanted["state"] == "empty":
            changed = empty(wanted["path"], only_look=module.check_mode)
        else:
            owner, mode = (wanted["owner"], wanted["group"]), int(wanted["mode"], 8)
            changed = make(wanted["path"], owner, mode, only_look=module.check_mode)
    except (Refused, OSError, ValueError) as error:
        module.fail_json(msg=f"{wanted['path']}: {error}")
    module.exit_json(changed=changed)


def make(path: str, owner: tuple[str, str], mode: int, *, only_look: bool = False) -> bool:
    """Makes a directory, with its parents, and gives it its owner (user and group, by name or
    number) and mode. Returns whether something had to be done; only_look: without doing it. Raises
    Refused, OSError."""
    found = _reach(path, makes=not only_look)
    if found is None:
        return True
    try:
        user, group = _numbers(*owner)
        status = os.fstat(found)
        is_done = (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (
            user, group, mode,
        )  # fmt: skip
        if not is_done and not only_look:
            os.fchown(found, user, group)
            os.fchmod(found, mode)
        return not is_done
    finally:
        os.close(found)


def empty(path: str, *, only_look: bool = False) -> bool:
    """Removes everything in a directory, and nothing to which a link in it leads. Returns whether
    something was there; only_look: without removing it. Raises Refused, OSError."""
    found = _reach(path, makes=False)
    if found is None:
        return False
    try:
        names = os.listdir(found)
        for name in () if only_look else names:
            if stat.S_ISDIR(os.stat(name, dir_fd=found, follow_symlinks=False).st_mode):
                shutil.rmtree(f"/proc/self/fd/{found}/{name}")
            else:
                os.unlink(name, dir_fd=found)
        return bool(names)
    finally:
        os.close(found)


def _reach(path: str, *, makes: bool) -> int | None:
    """Opens the directory at the end of a path; makes what is missing as root's, or returns
    None."""
    if not path.startswith("/"):
        raise Refused("the path is not absolute")
    names, links, at = path.split("/")[::-1], 0, "/"
    place = os.open("/", _STEP)
    try:
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            _see_that_only_root_changes(place, at)
            if not _is_there(place, name):
                if not makes:
                    return None
                os.mkdir(name, 0o700, dir_fd=place)
                os.chmod(name, 0o755, dir_fd=place)  # noqa: S103 - whatever the umask of this run
            below = os.open(name, _STEP, dir_fd=place)
            status = os.fstat(below)
            here = os.path.join(at, name)
            if not stat.S_ISLNK(status.st_mode):
                os.close(place)
                place, at = below, here
                continue
            target = os.readlink("", dir_fd=below)
            os.close(below)
            links += 1
            if links > LINKS_MAX:
                raise Refused("the path leads through too many links")
            if status.st_uid != 0:
                raise Refused(
                    f"{here} is a link that {_user(status)} made; remove it, or let root make it"
                )
            names += target.split("/")[::-1]
            if target.startswith("/"):
                os.close(place)
                place, at = os.open("/", _STEP), "/"
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
    finally:
        os.close(place)


def _is_there(place: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _see_that_only_root_changes(place: int, at: str) -> None:
    """Raises Refused if another user may rename or remove what root has in this directory."""
    status = os.fstat(place)
    if status.st_uid != 0:
        who = f"belongs to {_user(status)}"
    elif status.st_mode & stat.S_ISVTX:
        return
    elif status.st_mode & stat.S_IWOTH:
        who = "may be written by everybody"
    elif status.st_mode & stat.S_IWGRP and status.st_gid != 0:
        who = "may be written by its group"
    else:
        return
    raise Refused(
        f"{at} {who}, who could put a link to any directory in its place; let only root write to"
        f" {at}, or choose a path elsewhere"
    )


def _numbers(user: str, group: str) -> tuple[int, int]:
    try:
        return (
            int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid,
            int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid,
        )
    except KeyError:
        raise Refused(f"this host has no user {user}, or no group {group}") from None


def _user(status: os.stat_result) -> str:
    try:
        return pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return f"the user {status.st_uid}"


if __name__ == "__main__":
    main()
