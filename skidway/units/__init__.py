"""The systemd units of our programs, as files beside this page: the one source of them.

`skidway unit show` prints them; the Ansible roles, the Debian package and the snippet install what
the installed version prints, so a unit always belongs to its program's version. They are static:
what an operator changes goes into drop-ins, /etc/systemd/system/<unit>.d/*.conf.

What they have in common:

- ExecStart is /opt/skidway/current/<program>/bin/skidway: a link per program to a version.
- `Type=notify` (skidway.systemd): "started" means that the program can do its work.
- `Restart=on-failure`, but not after 65 or 78: a refused state or configuration needs a person, and
  the unit is failed, where one sees it, in place of failing again and again. For the same reason
  there is no ExecStartPre: systemd knows no exit status of one that would keep it from a restart.
  `run` itself refuses first of all what `validate` refuses.
- What a timer starts (the load, the recount) is `Type=oneshot` without a restart: one that ends
  with any status but 0 is a failed unit until a later one is good.
- `KillMode=mixed`: only our process gets SIGTERM and stops its children (JVM, Spark's workers).
- A user of its own, state in /var/lib/skidway/<program>, which is also where it runs (crash files
  of a JVM); everything else read-only or out of sight. Exposure by `systemd-analyze security` is at
  most 1.5. A JVM compiles at run time: only those units lack MemoryDenyWriteExecute.
- LimitNOFILE sets both limits: programs that would raise theirs find nothing to do; the filter of
  system calls would refuse it (@resources).
"""

from __future__ import annotations

from importlib import resources

from skidway.errors import UsageError

SUFFIXES = (".service", ".timer")
PREFIX = "skidway-"


def names() -> list[str]:
    """The file names of all units, sorted."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name for file in files if file.name.endswith(SUFFIXES))


def text(unit: str) -> str:
    """A unit's file. `unit` is its name, or in short: agent, audit-count@, loader.timer.

    Raises UsageError for one that there is not.
    """
    name = unit if unit.startswith(PREFIX) else f"{PREFIX}{unit}"
    name = name if name.endswith(SUFFIXES) else f"{name}.service"
    if name not in names():
        raise UsageError(f"there is no unit {name}; `skidway unit list` has them")
    return (resources.files(__name__) / name).read_text(encoding="utf-8")


def description(unit: str) -> str:
    """What the unit says it is."""
    lines = text(unit).splitlines()
    return next(line for line in lines if line.startswith("Description=")).partition("=")[2]
