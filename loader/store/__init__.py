"""A file tree with the few operations that a commit needs; `state/layout.py` names what lies in it.

    Store        what every kind offers; the commit relies on nothing else
    local        LocalStore, a directory of this machine (link(2), fsync)
    hdfs         HdfsStore, HDFS through hdfs-native (rename without overwrite, hsync)

Reading is that of every output (audit/output), which the audit's recount shares; paths and errors
are described there. `OutcomeUnclear` says that a change may or may not have happened and has to be
looked at again. Other kinds of URL are refused by `open_store`: a commit is only sound where a name
can be taken once (docs/delivery.md, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from skidway.audit.output import Output
from skidway.errors import ConfigurationRefused, SkidwayError

PARTIAL_SUFFIX: Final = ".partial"
"""Names with this end are files in the making; readers and listings of ours pass over them."""


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
    """An output that is written, too."""

    def create(self, path: str) -> StoreWriter:
        """A new file with its directories; a leftover of that name is overwritten."""

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        """Makes `path` hold `data`, whole and durable, unless it exists (then False).

        `scratch` is a directory of the caller for what has to be written first. OutcomeUnclear
        when the answer was lost.
        """

    def rename(self, source: str, target: str) -> bool:
        """Moves a file, durably, making directories. False when the target exists or the source
        does not: the caller looks again."""

    def delete(self, path: str) -> None:
        """Removes a file or a whole directory; not being there is fine."""

    def sync(self, paths: Sequence[str]) -> None:
        """Makes the names in these directories durable, where that is not implied by `rename`."""


def open_store(url: str) -> Store:
    """The store behind `output`. ConfigurationRefused for a scheme on which no commit is sound."""
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
