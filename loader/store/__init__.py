"""Defines stores. A store is a file tree with the few operations that a commit needs.
`state/layout.py` has the names of a store's files.

    Store            the operations of every kind of store; the commit uses nothing else
    StoreConnection  how a program reaches a store; all stores are opened here
    local            LocalStore, a directory of this machine (link(2), fsync)
    hdfs_writer      HdfsWriter, a new file on HDFS (hsync)
    hdfs             HdfsStore, HDFS through hdfs-native (rename without overwrite)

The loader and the audit's recount read a store through the same interface, `Output` (audit/output
describes paths and errors). `OutcomeUnclear` means that a change may or may not have happened; the
caller must check this. `StoreConnection` refuses every store except HDFS and local directories.
Commits are safe only on a store that lets only one of several writers create a given name
(docs/delivery.md, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from skidway.audit.output import Output, OutputConnection
from skidway.errors import ConfigurationRefused, SkidwayError

PARTIAL_SUFFIX: Final = ".partial"
"""The suffix of files that are still being written. The loader never reads the content of these
files."""


@dataclass(frozen=True, slots=True)
class Modes:
    """The permissions of the files and the directories that a store creates. Rows are log lines, so
    by default only the owner and the group may read them."""

    file: int = 0o640
    directory: int = 0o750


DEFAULT_MODES: Final = Modes()


class OutcomeUnclear(SkidwayError):
    """Raised if the answer to a request was lost, so that the requested change may or may not have
    happened."""


class StoreWriter(Protocol):
    """A new file. The bytes of the file are durable only after `close`."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Appends all of `data` to the file, and returns the number of bytes in `data`."""

    def close(self) -> None:
        """Makes all bytes of the file durable, and closes the file. Raises StoreFailed and
        StoreUnreachable."""

    def abandon(self) -> None:
        """Closes the file after a failure. Does not make the file's bytes durable."""


class Store(Output, Protocol):
    """An output that can also be written to."""

    @property
    def connection(self) -> StoreConnection:
        """The connection with which a task opens the same store in any directory."""

    def create(self, path: str) -> StoreWriter:
        """Creates a file, and its directories. Overwrites any file at this path; an earlier, failed
        attempt may have left one."""

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        """Creates the file `path` durably with the content `data`. Readers see either the whole
        file or no file. Returns False if `path` already exists.

        `scratch` is a directory in which this method may create a temporary file. Raises
        OutcomeUnclear if the store's answer was lost.
        """

    def rename(self, source: str, target: str) -> bool:
        """Moves a file durably. Makes the target's directories if they are missing. Returns False
        if the target exists or the source is missing. In this case the caller must check again
        which of the two files exist."""

    def replace(self, source: str, target: str) -> bool:
        """Moves a file durably, and overwrites the target. At any time, the target has either the
        old content or the new content. Makes the target's directories if they are missing. Returns
        False if there is no source."""

    def delete(self, path: str) -> None:
        """Removes a file or a whole directory. A missing path is no error."""

    def sync(self, paths: Sequence[str]) -> None:
        """Makes the names of the files in these directories durable. Does nothing in a store in
        which names are always durable."""


@dataclass(frozen=True, slots=True)
class StoreConnection(OutputConnection):
    """How a program reaches a store. modes: the permissions of what it creates there; what exists
    already keeps its own."""

    modes: Modes = DEFAULT_MODES

    def check(self) -> None:
        """Raises ConfigurationRefused if commits are not safe on stores with such a URL."""
        if self.directory is None and not self.is_hdfs:
            raise ConfigurationRefused(
                f"output: {self.url or 'nothing'} is refused: a load is committed by taking a name "
                "exactly once, which is done on a local directory and on hdfs://host:port/folder; "
                "no other store is supported"
            )

    def store(self) -> Store:
        """Opens the store for reading and writing. Raises ConfigurationRefused if `check` does, or
        if the directory is a file."""
        self.check()
        if self.directory is not None:
            from skidway.loader.store.local import LocalStore, refuse_file

            store = LocalStore(str(self.directory), self.modes)
            refuse_file(store.url)
            return store
        from skidway.loader.store.hdfs import HdfsStore

        return HdfsStore(self)
