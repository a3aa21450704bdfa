"""HDFS as a store. The NameNode can rename without overwriting. So if several writers create the
same name, only one succeeds.

The writer makes files durable by hsync before it closes them (hdfs_writer.py). If the NameNode does
not answer a request, the requested change may or may not have happened. `create_if_absent` then
raises OutcomeUnclear; the other methods raise StoreUnreachable. The code that reads files is in
audit/output/hdfs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from uuid import uuid4

from hdfs_native import WriteOptions

from skidway.audit.output.hdfs.failures import failures
from skidway.audit.output.hdfs.output import HdfsOutput
from skidway.loader.store import PARTIAL_SUFFIX, OutcomeUnclear, StoreConnection, StoreWriter
from skidway.loader.store.hdfs_writer import HdfsWriter


class HdfsStore(HdfsOutput):
    """A store that consists of the files below one folder of HDFS."""

    def __init__(self, connection: StoreConnection) -> None:
        super().__init__(connection)
        self.connection = connection

    def create(self, path: str) -> StoreWriter:
        """See Store."""
        target = self._at(path)
        self._make_parent(path)
        # Another run may remove the directory after `_make_parent`; then `create` makes it again.
        options = WriteOptions(
            permission=self.connection.modes.file, overwrite=True, create_parent=True
        )
        # `inner`: Python closes the client's own FileWriter when nobody refers to it any more, and
        # waits for ever for a NameNode that does not answer.
        return HdfsWriter(
            self._server + target, lambda: self._client.inner.create(target, options), self._answers
        )

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        staged = f"{scratch}/{posixpath.basename(path)}.{uuid4().hex}{PARTIAL_SUFFIX}"
        writer = self.create(staged)
        writer.write(data)
        writer.close()
        self._make_parent(path)
        with failures("rename", self._named(staged), OutcomeUnclear):
            try:
                self._rename(staged, path, overwrite=False)
            except FileExistsError:
                return False
        return True

    def rename(self, source: str, target: str) -> bool:
        return self._move(source, target, overwrite=False)

    def replace(self, source: str, target: str) -> bool:
        return self._move(source, target, overwrite=True)

    def delete(self, path: str) -> None:
        with failures("delete", self._named(path)):
            try:
                self._answers.get(lambda: self._client.delete(self._at(path), recursive=True))
            except FileNotFoundError:
                return

    def sync(self, paths: Sequence[str]) -> None:
        """Does nothing, because names are already durable: the NameNode logs every change before it
        answers."""

    def _move(self, source: str, target: str, *, overwrite: bool) -> bool:
        self._make_parent(target)
        with failures("rename", self._named(source)):
            try:
                self._rename(source, target, overwrite=overwrite)
            except (FileExistsError, FileNotFoundError):
                return False
        return True

    def _rename(self, source: str, target: str, *, overwrite: bool) -> None:
        old, new = self._at(source), self._at(target)
        self._answers.get(lambda: self._client.rename(old, new, overwrite=overwrite))

    def _make_parent(self, path: str) -> None:
        parent = posixpath.dirname(self._at(path))
        with failures("make the directory", self._server + parent):
            mode = self.connection.modes.directory
            self._answers.get(lambda: self._client.mkdirs(parent, mode, create_parent=True))
