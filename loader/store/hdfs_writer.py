"""Writes one file to HDFS in pieces of about `WRITE_BYTES`, and calls hsync before it closes the
file.

The NameNode notices only after ten minutes that a DataNode has died. Until then, the NameNode still
chooses this DataNode for new blocks. The client (hdfs-native) does not ask for another DataNode. If
the first DataNode of a block is dead, the client raises an error at once. If another DataNode of
the block is dead, the client's hsync never returns. So the writer waits for an hsync only for a
limited time, and then begins the file again, with other DataNodes. The writer can begin a file
again only while it has all bytes of the file in memory. After it has written a piece, it removes
the piece from memory. So the writer can begin a file of several pieces again only while it writes
the first piece.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from skidway.audit.output import StoreUnreachable
from skidway.audit.output.hdfs.answer import Answers
from skidway.audit.output.hdfs.failures import failures

WRITE_BYTES: Final = 4 << 20
"""A writer collects this many bytes before it calls the client's `write`. Otherwise it would make
many small calls, one for each Parquet page."""

BEGINNINGS_MAX: Final = 60
BEGINNING_S: Final = 120.0
"""If writing fails, a writer begins the file again. It gives up after this many seconds, after
`BEGINNINGS_MAX` attempts, or if the NameNode refuses to create the file again."""

CREATION_PAUSE_S: Final = BEGINNING_S / BEGINNINGS_MAX
"""If the NameNode does not answer when a writer creates its file again, the writer waits this many
seconds. Without this pause, refused connections would use up all attempts at once."""

SYNC_S: Final = 3.0
"""For a file that is still whole in memory: the writer waits at most this many seconds for an
hsync, and then begins the file again. After each `SYNCS_ALIKE` hsyncs that did not return, the
writer doubles this time, up to `LARGE_SYNC_S`. If all DataNodes work, such an hsync takes 50 ms."""

SYNCS_ALIKE: Final = 3
"""After this many hsyncs that did not return, the writer doubles its waiting time (see `SYNC_S`).
If the writer doubled the time after each hsync that did not return, it would make only a few
attempts in `BEGINNING_S` seconds. If one of three DataNodes is dead and HDFS stores each block on
two DataNodes, about half of the hsyncs do not return. With this value, a writer gives up only if
about twelve hsyncs in a row do not return."""

LARGE_SYNC_S: Final = 60.0
"""The writer waits at most this many seconds for the hsync of a file that it cannot begin again,
because it no longer has all bytes in memory."""


class HdfsFile(Protocol):
    """An open file of the HDFS client."""

    def write(self, data: bytes, /) -> int: ...

    def hsync(self) -> None: ...

    def close(self) -> None: ...


class HdfsWriter:
    """A new HDFS file.

    create: a function that creates the file, and overwrites an existing file.
    """

    def __init__(self, path: str, create: Callable[[], HdfsFile], answers: Answers) -> None:
        self._path, self._create, self._answers = path, create, answers
        self._file = self._created()
        self._pending = bytearray()
        self._written = False

    def write(self, data: bytes | memoryview, /) -> int:
        """See StoreWriter."""
        self._pending += data
        if len(self._pending) >= WRITE_BYTES:
            self._flush()
        return len(data)

    def close(self) -> None:
        if self._written or not self._pending:
            self._flush()
            self._end(LARGE_SYNC_S)
            return
        data = bytes(self._pending)

        def write_whole(within_s: float) -> None:
            self._append(data)
            self._end(within_s)

        self._repeat(write_whole)

    def abandon(self) -> None:
        """See StoreWriter. Does not close the file on HDFS; the NameNode ends the file's lease
        after a while."""

    def _flush(self) -> None:
        if not self._pending:
            return
        data = bytes(self._pending)
        if self._written:
            self._append(data)
        else:
            self._repeat(lambda _within_s: self._append(data))
        self._pending.clear()
        self._written = True

    def _repeat(self, work: Callable[[float], None]) -> None:
        """Calls `work`, which writes the file from its beginning. Passes to `work` the number of
        seconds that `work` may wait for an hsync. If a DataNode does not answer, creates the file
        again and calls `work` again. If the NameNode does not answer then, waits and tries
        again."""
        until, syncs, within_s = time.monotonic() + BEGINNING_S, 0, SYNC_S
        for attempt in range(BEGINNINGS_MAX):
            created = not attempt
            try:
                if not created:
                    self._file = self._created()
                    created = True
                work(within_s)
            except StoreUnreachable as error:
                if attempt + 1 == BEGINNINGS_MAX or time.monotonic() > until:
                    raise
                if not created:
                    time.sleep(CREATION_PAUSE_S)
                elif isinstance(error.__cause__, TimeoutError):
                    syncs += 1
                    within_s = min(SYNC_S * 2 ** (syncs // SYNCS_ALIKE), LARGE_SYNC_S)
            else:
                return

    def _created(self) -> HdfsFile:
        with failures("write", self._path):
            return self._answers.get(self._create)

    def _append(self, data: bytes) -> None:
        with failures("write", self._path):
            self._answers.get(lambda: self._file.write(data))

    def _end(self, within_s: float) -> None:
        with failures("write", self._path):
            if self._pending or self._written:
                self._answers.get(self._file.hsync, within_s)
            self._answers.get(self._file.close)
