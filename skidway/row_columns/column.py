"""What a column is that Skidway adds to rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Protocol

Type = Literal["int", "long", "timestamp", "place", "string", "headers"]
"""The type of a column. place: a text that many rows share. headers: a record's headers."""


class Rows(Protocol):
    """What the values of columns are made from: records of one partition, as columns, and where
    their lines come from."""

    @property
    def partition(self) -> int: ...
    @property
    def offsets(self) -> Any: ...
    @property
    def timestamps(self) -> Any: ...
    @property
    def origins(self) -> Any: ...
    @property
    def hosts(self) -> Any: ...
    @property
    def files(self) -> Any: ...
    @property
    def topic(self) -> str: ...
    @property
    def headers(self) -> Any: ...
    def __len__(self) -> int: ...


class RowColumn(ABC):
    """A column that Skidway adds to the columns of a schema.

    name: no field of a schema may have it. type, is_null: of its values; is_null says whether a
    value may be null. rises: whether its numbers rise from row to row. in_files: whether files of
    rows have it; if not, only queries of the data source have it.
    """

    name: ClassVar[str]
    type: ClassVar[Type]
    is_null: ClassVar[bool] = False
    rises: ClassVar[bool] = False
    in_files: ClassVar[bool] = True

    @abstractmethod
    def values(self, rows: Rows) -> Any:
        """Returns the column's values as an array of NumPy or Arrow, or one value that all rows
        have."""
