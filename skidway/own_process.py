"""Keeps objects with connections and threads from being used after a fork.

A fork copies an object, but not its threads; and both processes then read and write the same
sockets. So parent and child would take each other's answers, and a lock that a thread of the parent
held would stay locked in the child forever.
"""

from __future__ import annotations

import os

from skidway.errors import UsageError


class OwnProcess:
    """The process that made an object. Each public method of the object calls `require` before it
    takes a lock or touches a socket.
    """

    __slots__ = ("_pid", "_what")

    def __init__(self, what: str) -> None:
        """`what` is what an error calls the object, such as `producer`."""
        self._what, self._pid = what, os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the calling process made the object."""
        return os.getpid() == self._pid

    def require(self) -> None:
        """Raises UsageError if another process made the object."""
        if not self.is_here:
            raise UsageError(
                f"this {self._what} belongs to process {self._pid}; make one in each process"
            )
