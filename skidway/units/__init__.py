"""The systemd units of Skidway's programs, as files in the folder of this module. The repository
has no other copy of them.

`skidway unit show` prints them. The Ansible roles, the Debian package and the install snippet copy
the units from the installed version, so a unit and its program always have the same version. The
units are static: operators put their changes into drop-ins, /etc/systemd/system/<unit>.d/*.conf.

What the units have in common:

- ExecStart is /opt/skidway/current/<program>/bin/skidway. The link current/<program> leads to the
  version of the program that is in use.
- `Type=notify` (skidway.systemd): systemd regards a unit as started as soon as the program can do
  its work.
- `Restart=on-failure`, but no restart after exit status 65 (the program refused its stored state)
  or 78 (it refused its configuration), because only a person can repair a state or a configuration.
  The unit then stays failed. So a person sees the failure, and the unit does not fail again and
  again. No unit runs `validate` as ExecStartPre, because systemd restarts a unit after any failure
  of ExecStartPre. Instead, the command `run` itself begins with the checks of `validate`. The unit
  skidway-loader-resident.service does not restart after status 2 (usage error) either, because a
  drop-in may set an invalid value for the time between the loader's runs.
- Units that a timer starts (the load, the recount) are `Type=oneshot` without a restart. After any
  status other than 0, the unit stays failed until a later run succeeds.
- The loader has two units for two ways to run it. The unit skidway-loader.service makes one run,
  which the timer or a person starts. The unit skidway-loader-resident.service keeps running, and
  begins one run after the other. Both units have the same user, state and protection.
- `KillMode=mixed`: only the program gets SIGTERM; the program stops its children (JVM, Spark's
  workers).
- Each program has its own user, and its state in /var/lib/skidway/<program>. Counters use the
  audit's user; the recount uses the loader's user and directories. The state directory is also the
  program's working directory, where a JVM puts its crash files. Apart from the state directory,
  /var/log/skidway/<program> and a private /tmp, all directories of the host are read-only or hidden
  for the program. The group of a program may read its state, but not the agent's, which has lines
  of logs. The exposure that `systemd-analyze security` reports is at most 1.5. Units with a JVM
  lack MemoryDenyWriteExecute, because a JVM compiles at run time.
- LimitNOFILE sets the soft and the hard limit of open files. So a program need not raise its soft
  limit, which the unit's system call filter (@resources) would forbid.
"""

from __future__ import annotations

from importlib import resources

from skidway.errors import UsageError

SUFFIXES = (".service", ".timer")
PREFIX = "skidway-"


def names() -> list[str]:
    """Returns the file names of all units, sorted."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name for file in files if file.name.endswith(SUFFIXES))


def text(unit: str) -> str:
    """Returns the text of a unit's file. `unit` is the file's name, or a short form of it, such as
    agent, audit-count@ or loader.timer.

    Raises UsageError for an unknown unit.
    """
    name = unit if unit.startswith(PREFIX) else f"{PREFIX}{unit}"
    name = name if name.endswith(SUFFIXES) else f"{name}.service"
    if name not in names():
        raise UsageError(f"there is no unit {name}; `skidway unit list` has them")
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def description(unit: str) -> str:
    """Returns the unit's Description."""
    lines = text(unit).splitlines()
    return next(line for line in lines if line.startswith("Description=")).partition("=")[2]
