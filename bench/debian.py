"""Installs the Debian packages that a benchmark needs, without starting their services."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from support import peers

POLICY = Path("/usr/sbin/policy-rc.d")
"""The script that Debian's packages run before they start a service (invoke-rc.d(8)). Its exit
status 101 forbids the start."""


def provide(command: str, packages: Sequence[str], why: str) -> str:
    """The path of a command. If the command is missing and the user is root, the function installs
    `packages` first.

    Raises SkidwayError if the command is still missing. The error says why the command is needed
    and what to install.
    """
    with _services_not_started():
        return peers.provide(command, packages, why)


@contextlib.contextmanager
def _services_not_started() -> Iterator[None]:
    try:
        with POLICY.open("x") as out:
            out.write("#!/bin/sh\nexit 101\n")
    except OSError:  # a policy exists already, or the user is not root and can install nothing
        yield
        return
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
