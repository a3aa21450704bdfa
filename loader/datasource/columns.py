"""Decides which columns a query has, over all its topics. Does no I/O.

First come the columns of the topics' schemas, or `key` and `value` if the query has no registry.
Then come the columns of `skidway.row_columns`. A query has `_host`, `_file` and `_headers` only if
its options or its list of columns ask for them.

If a query lists its columns (`.schema(...)`), its result has exactly the listed columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyarrow import types

from skidway import row_columns
from skidway.errors import SkidwayError, UsageError
from skidway.loader.reading.columns import RESERVED, field_of
from skidway.loader.reading.decoder import check_reader

PLACES: Final = (row_columns.HOST.name, row_columns.FILE.name)
"""The columns whose values come from announcements, the agents' messages with a file's host and
path."""
QUERY_RESERVED: Final = RESERVED | {each.name for each in row_columns.columns()}
"""The names that no field of a topic's schema may have."""
_RAW: Final = pa.schema([pa.field("key", pa.binary()), pa.field("value", pa.binary())])


def own_fields() -> list[pa.Field]:
    """Returns the columns that a query can have besides the columns of schemas, in the query's
    order."""
    return [_plain(field_of(each)) for each in row_columns.columns()]


def value_columns(schema: str) -> pa.Schema:
    """Returns the columns of records with this Avro schema. If `schema` is empty, the columns are
    `key` and `value`. Raises SkidwayError if the schema cannot become columns."""
    return check_reader(schema, QUERY_RESERVED) if schema else _RAW


def all_columns(schemas: Mapping[str, str], *, with_places: bool, with_headers: bool) -> pa.Schema:
    """Returns the columns of a query that does not list its columns. schemas: the Avro schema of
    each topic.

    If a topic lacks a column, the topic's rows have null in this column. Raises SkidwayError if a
    column has different types in different topics, or if the names of two columns differ only in
    case.
    """
    left_out = () if with_places else PLACES
    own = [
        field
        for field in own_fields()
        if field.name not in left_out and (with_headers or field.name != "_headers")
    ]
    parts = {topic: value_columns(schema) for topic, schema in schemas.items()}
    return pa.schema([*_together(parts), *own])


def check_wanted(wanted: pa.Schema, schemas: Iterable[str]) -> None:
    """Raises UsageError if the query lists an unknown column. The known columns are the columns of
    these Avro schemas and those of `own_fields`."""
    texts = list(schemas)
    if not texts:
        return  # the query reads no topic
    known = {name for text in texts for name in value_columns(text).names}
    known |= {field.name for field in own_fields()}
    for name in wanted.names:
        if name not in known:
            raise UsageError(
                f"no topic of the query has a column {name}; it has {', '.join(sorted(known))}"
            )


def _together(parts: Mapping[str, pa.Schema]) -> list[pa.Field]:
    found: dict[str, pa.Field] = {}
    homes: dict[str, str] = {}
    for topic, fields in parts.items():
        for each in map(_plain, fields):
            home = homes.setdefault(each.name.lower(), topic)
            known = found.setdefault(each.name, each)
            if home != topic and known.type != each.type:
                raise SkidwayError(
                    f"the column {each.name} is {known.type} in the topic {home}, and {each.type} "
                    f"in {topic}; read these topics one by one, or name columns with .schema()"
                )
            found[each.name] = known.with_nullable(known.nullable or each.nullable)
    return [
        each.with_nullable(each.nullable or any(name not in part.names for part in parts.values()))
        for name, each in _distinct(found).items()
    ]


def _distinct(found: Mapping[str, pa.Field]) -> Mapping[str, pa.Field]:
    """Returns the fields unchanged. Raises SkidwayError if two names differ only in case, because
    Spark treats these names as equal."""
    seen: dict[str, str] = {}
    for name in found:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise SkidwayError(
                f"the columns {other} and {name} of these topics differ only in upper and lower "
                "case; read these topics one by one, or name columns with .schema()"
            )
    return found


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if types.is_dictionary(field.type) else field
