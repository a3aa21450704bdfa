"""The errors that people see, and the exit status of each.

`str(error)` is one clear sentence. The sentence names the thing that has a problem. It says what
the problem is and, if known, what to do about the problem. A program's outermost loop prints that
sentence and ends with `exit_code`; no other code maps errors to exit statuses. A bug raises a
different exception. That exception is logged with its traceback, and ends the program with
`UNEXPECTED_EXIT_CODE`.
"""

from __future__ import annotations

from typing import ClassVar

UNEXPECTED_EXIT_CODE = 70
"""Exit status of a program that fails because of a bug (sysexits.h: EX_SOFTWARE)."""


class SkidwayError(Exception):
    """A problem about which a person must know. Exit status 1 means that something is unhealthy,
    incomplete or incompatible."""

    exit_code: ClassVar[int] = 1


class UsageError(SkidwayError):
    """The command line, or an argument of a method that applications call, is not valid."""

    exit_code: ClassVar[int] = 2


class Unreachable(SkidwayError):
    """A peer (broker, ZooKeeper, registry, HDFS) did not answer in time."""

    exit_code: ClassVar[int] = 3


class ConfigurationRefused(SkidwayError):
    """The configuration is invalid, so the program must not run with it (sysexits.h: EX_CONFIG)."""

    exit_code: ClassVar[int] = 78


class StateRefused(SkidwayError):
    """State on disk must not be used: it is corrupt, belongs to another machine, is an older copy,
    or is in use.

    This error has an exit status of its own (sysexits.h: EX_DATAERR). The systemd units do not
    restart a program after this status, because only a person can repair the state.
    """

    exit_code: ClassVar[int] = 65
