"""The errors that people see, and the exit status of each.

`str(error)` is one clear sentence: what is wrong, with which thing, and what to do about it where
that is known. A program's outermost loop prints that sentence and ends with `exit_code`; nothing
else in the program maps errors to exit statuses. A programmer's error is none of these: it stays a
plain exception, is logged with its traceback, and ends the program with `UNEXPECTED_EXIT_CODE`.
"""

from __future__ import annotations

from typing import ClassVar

UNEXPECTED_EXIT_CODE = 70
"""Exit status of a program that failed by its own mistake (sysexits.h: EX_SOFTWARE)."""


class SkidwayError(Exception):
    """Something a person has to know. Status 1: unhealthy, incomplete or incompatible."""

    exit_code: ClassVar[int] = 1


class UsageError(SkidwayError):
    """The command line makes no sense."""

    exit_code: ClassVar[int] = 2


class Unreachable(SkidwayError):
    """A peer (broker, ZooKeeper, registry, HDFS) did not answer in time."""

    exit_code: ClassVar[int] = 3


class ConfigurationRefused(SkidwayError):
    """A configuration that must not be run (sysexits.h: EX_CONFIG)."""

    exit_code: ClassVar[int] = 78


class StateRefused(SkidwayError):
    """State on disk that must not be used: corrupt, another machine's, an older copy, in use.

    It has its own status (sysexits.h: EX_DATAERR): only a person can repair it, so units do not
    restart such a program.
    """

    exit_code: ClassVar[int] = 65
