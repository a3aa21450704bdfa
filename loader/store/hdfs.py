"""HDFS as a store, through hdfs-native: a client in Rust, without a JVM.

A name is taken once by the NameNode's rename without overwrite. Files are made durable by hsync
before they are closed. A request that got no answer may have happened (`OutcomeUnclear`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

from hdfs_native import Client, FileWriter, WriteOptions

from loader.store import (
    PARTIAL_SUFFIX,
    Entry,
    OutcomeUnclear,
    StoreFailed,
    StoreUnreachable,
    StoreWriter,
)
from skidway.errors import ConfigurationRefused

WRITE_BYTES = 4 << 20
"""Bytes handed to the client at once; one call per Parquet page would cost a crossing each."""

RETRIES = {"dfs.client.failover.max.attempts": "8", "dfs.client.failover.sleep.max.millis": "3000"}
"""About 20 s without an answer before an operation fails; the client's own default is 3 minutes."""


class HdfsStore:
    """Files below one directory of an HDFS."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if not parts.netloc or not parts.path.strip("/"):
            raise ConfigurationRefused(
                f"output: {url} must name a NameNode and a folder, as hdfs://host:port/folder"
            )
        self._server = f"hdfs://{parts.netloc}"
        self._root = "/" + parts.path.strip("/")
        with _failures("connect to", self._server):
            self._client = Client(self._server, RETRIES)

    @property
    def url(self) -> str:
        """NameNode and folder."""
        return self._server + self._root

    def create(self, path: str) -> StoreWriter:
        """See Store."""
        target = self._at(path)
        with _failures("write", self._server + target):
            options = WriteOptions(overwrite=True, create_parent=True)
            return HdfsWriter(self._server + target, self._client.create(target, options))

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        """See Store."""
        staged = f"{scratch}/{posixpath.basename(path)}.{uuid4().hex}{PARTIAL_SUFFIX}"
        writer = self.create(staged)
        writer.write(data)
        writer.close()
        self._make_parent(path)
        with _failures("rename", self._named(staged), unclear=True):
            try:
                self._client.rename(self._at(staged), self._at(path), overwrite=False)
            except FileExistsError:
                return False
        return True

    def rename(self, source: str, target: str) -> bool:
        """See Store."""
        self._make_parent(target)
        with _failures("rename", self._named(source)):
            try:
                self._client.rename(self._at(source), self._at(target), overwrite=False)
            except (FileExistsError, FileNotFoundError):
                return False
        return True

    def length(self, path: str) -> int | None:
        """See Store."""
        with _failures("look at", self._named(path)):
            try:
                return int(self._client.get_file_info(self._at(path)).length)
            except FileNotFoundError:
                return None

    def read(self, path: str) -> bytes | None:
        """See Store."""
        with _failures("read", self._named(path)):
            try:
                return bytes(self._client.read(self._at(path)).read())
            except FileNotFoundError:
                return None

    def files(self, path: str) -> list[Entry]:
        """See Store."""
        below = len(self._root) + 1
        with _failures("list", self._named(path)):
            try:
                found = [
                    Entry(urlsplit(status.path).path[below:], int(status.length))
                    for status in self._client.list_status(self._at(path), recursive=True)
                    if not status.isdir
                ]
            except FileNotFoundError:
                return []
        return sorted(found, key=lambda entry: entry.path)

    def names(self, path: str) -> list[str]:
        """See Store."""
        with _failures("list", self._named(path)):
            try:
                found = self._client.list_status(self._at(path), recursive=False)
                return sorted(posixpath.basename(status.path) for status in found)
            except FileNotFoundError:
                return []

    def delete(self, path: str) -> None:
        """See Store."""
        with _failures("delete", self._named(path)):
            try:
                self._client.delete(self._at(path), recursive=True)
            except FileNotFoundError:
                return

    def sync(self, paths: Sequence[str]) -> None:
        """Nothing to do: the NameNode logs every name before it answers."""

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _named(self, path: str) -> str:
        """For people: with the NameNode, since it may be the one that does not answer."""
        return self._server + self._at(path)

    def _make_parent(self, path: str) -> None:
        parent = posixpath.dirname(self._at(path))
        with _failures("make the directory", self._server + parent):
            self._client.mkdirs(parent, create_parent=True)


class HdfsWriter:
    """A new HDFS file, written in large pieces; `close` syncs it on the DataNodes."""

    def __init__(self, path: str, file: FileWriter) -> None:
        self._path, self._file = path, file
        self._pending = bytearray()
        self._written = False

    def write(self, data: bytes | memoryview, /) -> int:
        """See StoreWriter."""
        self._pending += data
        if len(self._pending) >= WRITE_BYTES:
            self._flush()
        return len(data)

    def close(self) -> None:
        """See StoreWriter."""
        self._flush()
        with _failures("write", self._path):
            if self._written:
                self._file.hsync()
            self._file.close()

    def abandon(self) -> None:
        """See StoreWriter. The NameNode takes the lease back by itself."""

    def _flush(self) -> None:
        if self._pending:
            with _failures("write", self._path):
                self._file.write(bytes(self._pending))
            self._pending.clear()
            self._written = True


@contextmanager
def _failures(verb: str, path: str, *, unclear: bool = False) -> Iterator[None]:
    """Turns what the client raises into one sentence; it raises OSError and its kin for all."""
    try:
        yield
    except (StoreFailed, StoreUnreachable):
        raise
    except PermissionError as error:
        raise StoreFailed(f"cannot {verb} {path}: {_sentence(error)}") from error
    except (OSError, RuntimeError, ValueError) as error:
        sentence = f"cannot {verb} {path}: {_sentence(error)}"
        if unclear:
            raise OutcomeUnclear(sentence) from error
        if isinstance(error, (ConnectionError, TimeoutError)) or _is_network(error):
            raise StoreUnreachable(sentence) from error
        raise StoreFailed(sentence) from error


_NETWORK = ("connect", "timed out", "no active", "unreachable", "dns", "lookup address")
_NOT_NOW = ("SafeModeException", "StandbyException", "RetriableException")
"""Java's classes of refusals that end by themselves."""

_REFUSAL = re.compile(r'RPCError\("[\w.$]*?(\w+)", "((?:\\.|[^"\\])*)"\)')
"""What the NameNode refused, as the client quotes it: Java's class, message and stack."""


def _is_network(error: Exception) -> bool:
    text = str(error)
    refusal = _REFUSAL.search(text)
    if refusal is not None:
        return refusal[1] in _NOT_NOW
    return any(word in text.lower() for word in _NETWORK)


def _sentence(error: Exception) -> str:
    text = str(error)
    refusal = _REFUSAL.search(text)
    if refusal is not None:
        return f"the NameNode refuses it: {refusal[2].partition(chr(92) + 'n')[0]}"
    return (text.strip().splitlines() or [type(error).__name__])[0]
