"""Does the work of one task: reads the files of a group, and writes one file in their place.

A file cannot be rewritten if it is gone, if its bytes have changed since its commit, if the
registry lacks its schema, or if its rows do not fit the newest schema. Then all files of the group
stay as they are, and the result says why.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import google_crc32c
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.errors import SkidwayError
from skidway.loader.reading.projection import NotProjectable
from skidway.loader.rewriting.file_columns import common, filled
from skidway.loader.rewriting.groups import Group
from skidway.loader.rewriting.proof import OtherRecords, check_same
from skidway.loader.rewriting.rewriter import Rewriter, RowsRefused
from skidway.loader.state import layout
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import ROWS, DataFile
from skidway.loader.state.parquet_file import ROW_GROUP_ROWS, new_file
from skidway.loader.store import Store

BUFFER_BYTES: Final = 64 << 20
"""A task collects rows until they take this many bytes, or until it has `ROW_GROUP_ROWS` rows. Then
the task writes these rows."""


class FileRefused(SkidwayError):
    """Raised if a file cannot be rewritten. The error message contains the file's path."""


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """The values that all groups of files that one load rewrites have in common. reader: the schema
    whose columns the new files get; None if the new files have the columns of the old files. texts:
    if `reader` is not None, the schemas of the old files, by id.
    """

    load: LoadId
    compression: str
    reader: str | None = None
    texts: Mapping[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result of a task, which rewrites one group of files. made: the new file; None if the old
    files stay as they are. kept: why the old files stay as they are; "" if there is a new file."""

    group: Group
    made: DataFile | None
    kept: str = ""


class GroupRewrite:
    """One attempt to rewrite one group of files. number: the group's number within the load."""

    def __init__(
        self, job: RewriteJob, group: Group, number: int, store: Store, attempt: int
    ) -> None:
        self._job, self._group, self._number = job, group, number
        self._store = store
        self._staged = f"{job.load.staging}/rows-{number}-{attempt}.parquet"

    def run(self) -> Rewritten:
        """Writes the new file into the staging directory, and returns the result. Raises
        StoreFailed and StoreUnreachable."""
        try:
            return self._rewritten()
        except FileRefused as error:
            return Rewritten(self._group, None, str(error))

    def _rewritten(self) -> Rewritten:
        job, group = self._job, self._group
        path = layout.rewritten(group.folder, job.load.number, self._number)
        tables = self._tables()
        first = next(tables)
        with new_file(self._store, first.schema, self._staged, job.compression) as writer:
            for table in chain([first], tables):
                with _refusing(group.folder):
                    writer.write(table)
            made = replace(writer.close(ROWS, path), schema_id=self._schema_id())
        try:
            check_same(f"{group.folder}: files have", [x.file for x in group.files], [made])
        except OtherRecords as error:
            raise FileRefused(str(error)) from error
        return Rewritten(group, made)

    def _tables(self) -> Iterator[pa.Table]:
        """Yields the rows of the group's files, in tables of about the size of a row group."""
        waiting: list[pa.Table] = []
        rows = size = 0
        for table in self._small_tables():
            waiting.append(table)
            rows, size = rows + table.num_rows, size + table.nbytes
            if rows >= ROW_GROUP_ROWS or size >= BUFFER_BYTES:
                yield pa.concat_tables(waiting)
                waiting, rows, size = [], 0, 0
        if waiting:
            yield pa.concat_tables(waiting)

    def _small_tables(self) -> Iterator[pa.Table]:
        """Yields the row groups of the group's files, each as a table with the columns of the new
        file."""
        rewritten = self._rewriting()
        for each in self._group.files:
            with _refusing(each.file.path):
                for table in self._row_groups(each.file):
                    yield rewritten(table)

    def _row_groups(self, file: DataFile) -> Iterator[pa.Table]:
        parquet = self._opened(file)
        for number in range(parquet.num_row_groups):
            yield parquet.read_row_group(number)

    def _opened(self, file: DataFile) -> pq.ParquetFile:
        """Opens a file of the group. Raises FileRefused if the file no longer has the bytes that
        were committed."""
        data = self._store.read(file.path)
        if data is None:
            raise FileRefused(f"{file.path} is gone")
        if (len(data), google_crc32c.value(data)) != (file.length, file.crc32c):
            raise FileRefused(f"{file.path} has other bytes than those that were committed")
        return pq.ParquetFile(io.BytesIO(data))

    def _schema_id(self) -> int | None:
        """Returns the id of the old files' schema if the new file has their columns. Returns None
        if the new file has the columns of the newest schema, which is the manifest's `schema`.
        """
        return self._group.files[0].schema_id if self._job.reader is None else None

    def _rewriting(self) -> Callable[[pa.Table], pa.Table]:
        """Returns the function that turns a row group into rows with the columns of the new
        file."""
        job, file = self._job, self._group.files[0]
        if job.reader is None:
            columns = self._common_columns()
            return lambda table: filled(table, columns)
        text = (job.texts or {}).get(file.schema_id) if file.schema_id is not None else None
        if file.schema_id is None or text is None:
            raise FileRefused(f"the registry does not have the schema of {file.file.path}")
        try:
            return Rewriter(text, job.reader).rewritten
        except NotProjectable as error:
            raise FileRefused(f"{file.file.path}: {error}") from error

    def _common_columns(self) -> pa.Schema:
        schemas: list[pa.Schema] = []
        for each in self._group.files:
            with _refusing(each.file.path):
                schemas.append(self._opened(each.file).schema_arrow)
        with _refusing(self._group.folder):
            return common(schemas)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Raises FileRefused with the path if the code in the `with` block cannot read or convert rows,
    or if rows do not fit the newest schema."""
    try:
        yield
    except MemoryError:
        raise  # in another attempt, the task may get enough memory
    except (RowsRefused, pa.ArrowException, ArithmeticError, LookupError) as error:
        raise FileRefused(f"{path}: {error}") from error
