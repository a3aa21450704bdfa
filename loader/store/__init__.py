"""A file tree with the few operations that a commit needs; `state/layout.py` names what lies in it.

    Store        what every kind offers; the commit relies on nothing else
    local        LocalStore, a directory of this machine (link(2), fsync)
    hdfs         HdfsStore, HDFS through hdfs-native (rename without overwrite, hsync)

A store is read like every output (audit/output), as the audit's recount does; paths and errors are
described there. `OutcomeUnclear` says that a change may or may not have happened: the caller has to
look again. `open_store` refuses other kinds of URL, because a commit is only sound where a name can
be taken once (docs/delivery.md, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from skidway.audit.output import Output
from skidway.errors import ConfigurationRefused, SkidwayError

PARTIAL_SUFFIX: Final = ".partial"
"""Names with this suffix are unfinished files; our readers and listings skip them."""


class OutcomeUnclear(SkidwayError):
    """A change was asked for and its answer was lost: it may have happened or not."""


class StoreWriter(Protocol):
    """A new file. After `close` its bytes are durable; until then nobody relies on them."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Appends; returns the number of bytes taken, which is all of them."""

    def close(self) -> None:
        """Flushes to disk and closes. Raises StoreFailed."""

    def abandon(self) -> None:
        """Closes without any promise, after a failure."""


class Store(Output, Protocol):
    """An output that can also be written."""

    def create(self, path: str) -> StoreWriter:
        """A new file with its directories; a leftover of that name is overwritten."""

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        """Makes `path` hold `data`, whole and durable, unless it exists (then False).

        `scratch` is a directory of the caller for what has to be written first. Raises
        OutcomeUnclear if the answer was lost.
        """

    def rename(self, source: str, target: str) -> bool:
        """Moves a file, durably, making directories. False when the target exists or the source
        does not: the caller looks again."""

    def delete(self, path: str) -> None:
        """Removes a file or a whole directory; not being there is fine."""

    def sync(self, paths: Sequence[str]) -> None:
        """Makes the names in these directories durable, if `rename` does not already do that."""


def open_store(url: str) -> Store:
    """The store at `url`. Raises ConfigurationRefused for a scheme on which no commit is sound."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme == "file":
        from skidway.loader.store.local import LocalStore

        return LocalStore(url.removeprefix("file://"))
    if scheme == "hdfs":
        from skidway.loader.store.hdfs import HdfsStore

        return HdfsStore(url)
    raise ConfigurationRefused(
        f"output: {url} is refused: a load is committed by taking a name exactly once, which is "
        "done on a local directory and on hdfs://host:port/folder; no other store is supported"
    )
