"""Turns values into columns: finds the schema id and the writer's schema of each value, decodes the
Avro datum, and converts the result to the file's schema. No record is dropped.

If a value cannot be turned into columns, the loader writes its record into a file of rejects. This
file contains the value's bytes, the record's origin and one of these reasons:

    null-value        the record has no value
    no-schema-id      the value does not begin with byte 0 and a schema id
    unknown-schema    the registry has no schema of that id, or the schema cannot become columns
    undecodable       the value's Avro data does not match its schema, or is nested too deeply
    not-projectable   the row does not fit the subject's latest schema
    far-time          a timestamp in milliseconds is one that microseconds of 64 bits cannot hold
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.loader.reading.column_types import column_schema, converted
from skidway.loader.reading.projection import NotProjectable, Projection
from skidway.schemas import wire
from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client import SCHEMA_UNKNOWN, RegistryRefused, SchemaTexts
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import SchemaUnsupported
from skidway.schemas.codec.times import FAR_TIME as WHY_FAR

Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int32]

NULL_VALUE: Final = "null-value"
NO_SCHEMA_ID: Final = "no-schema-id"
UNKNOWN_SCHEMA: Final = "unknown-schema"
UNDECODABLE: Final = "undecodable"
NOT_PROJECTABLE: Final = "not-projectable"
FAR_TIME: Final = "far-time"


@dataclass(slots=True)
class Decoded:
    """The columns of the values that were decoded, and why the other values could not be decoded.

    good: for each value, whether it was decoded. refused: for the index of each value that could
    not be decoded, the reason and a detail. schema_ids: for each schema id, how many of its values
    were decoded.
    """

    columns: list[pa.Array]
    good: Bools
    refused: dict[int, tuple[str, str]] = field(default_factory=dict)
    schema_ids: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Decodes the values of one schema id. If no value of this schema id can be decoded, for
    example because the registry lacks the schema, `fault` says why.
    """

    codec: Codec | None
    projection: Projection | None
    fault: tuple[str, str] | None = None


class Decoder:
    """Decodes values of any schema id into the columns of one reader's schema."""

    def __init__(self, registry: SchemaTexts, reader: str) -> None:
        self._registry = registry
        self._reader = reader
        self._writers: dict[int, _Writer] = {}
        self.schema: pa.Schema = column_schema(Codec(reader).arrow_schema)

    def forget_unknown(self) -> None:
        """Makes `decode` ask the registry again for schemas that the registry did not have earlier.
        These schemas may be registered by now.
        """
        self._writers = {key: each for key, each in self._writers.items() if each.codec is not None}

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Decodes values. Returns the columns of the decoded values, and why the other values could
        not be decoded. Raises RegistryUnreachable if the registry does not answer. Raises
        RegistryRefused, which names the schema id, if the answer does not show whether the registry
        has the schema."""
        if len(values) == 0:
            return Decoded([pa.nulls(0, each.type) for each in self.schema], np.zeros(0, np.bool_))
        ids, datums = wire.split(values)
        first = int(ids[0])
        if first >= 0 and (ids == first).all():
            return self._one(first, datums)
        return self._many(values, ids, datums)

    def _one(self, schema_id: int, datums: pa.BinaryArray) -> Decoded:
        writer = self._writer(schema_id)
        if writer.codec is None or writer.projection is None:
            assert writer.fault is not None
            columns = [pa.nulls(0, each.type) for each in self.schema]
            none = np.zeros(len(datums), np.bool_)
            return Decoded(columns, none, dict.fromkeys(range(len(datums)), writer.fault))
        decoded = writer.codec.decode(datums)
        refused = {index: (UNDECODABLE, reason) for index, reason in decoded.refused}
        projected = writer.projection.apply(decoded.batch)
        good = decoded.good
        if not projected.fits.all():
            places = np.flatnonzero(good)
            bad = places[~projected.fits]
            good = good.copy()
            good[bad] = False
            detail = f"schema {schema_id}: a field does not fit the latest schema"
            refused |= dict.fromkeys(bad.tolist(), (NOT_PROJECTABLE, detail))
            far = places[projected.far].tolist()
            refused |= dict.fromkeys(far, (FAR_TIME, f"schema {schema_id}: a field has {WHY_FAR}"))
        columns = [
            converted(column, field.type)
            for column, field in zip(projected.columns, self.schema, strict=True)
        ]
        return Decoded(columns, good, refused, Counter({schema_id: int(good.sum())}))

    def _many(self, values: pa.BinaryArray, ids: Ids, datums: pa.BinaryArray) -> Decoded:
        """Decodes the values of each schema id together, and returns the result in the original
        order of the values."""
        good = np.zeros(len(ids), np.bool_)
        refused: dict[int, tuple[str, str]] = {}
        counted: Counter[int] = Counter()
        parts: list[list[pa.Array]] = []
        places: list[npt.NDArray[np.intp]] = []
        for schema_id in np.unique(ids).tolist():
            rows = np.flatnonzero(ids == schema_id)
            if schema_id < 0:
                refused |= _without_id(values, rows)
                continue
            part = self._one(schema_id, datums.take(pa.array(rows)))
            good[rows] = part.good
            refused |= {int(rows[index]): fault for index, fault in part.refused.items()}
            counted += part.schema_ids
            parts.append(part.columns)
            places.append(rows[part.good])
        return Decoded(_in_order(parts, places, self.schema), good, refused, counted)

    def _writer(self, schema_id: int) -> _Writer:
        known = self._writers.get(schema_id)
        if known is None:
            known = self._writers[schema_id] = self._make_writer(schema_id)
        return known

    def _make_writer(self, schema_id: int) -> _Writer:
        try:
            text = self._registry.schema(schema_id)
            return _Writer(Codec(text), Projection(text, self._reader))
        except RegistryRefused as error:
            # Any other error code (or none) may mean that a proxy answered, or that the URL is
            # wrong.
            if error.error_code != SCHEMA_UNKNOWN:
                raise error.about(schema_id) from error
            return _Writer(None, None, (UNKNOWN_SCHEMA, f"schema {schema_id}: {error}"))
        except (SchemaInvalid, SchemaUnsupported) as error:
            return _Writer(None, None, (UNKNOWN_SCHEMA, f"schema {schema_id}: {error}"))
        except NotProjectable as error:
            return _Writer(None, None, (NOT_PROJECTABLE, f"schema {schema_id}: {error}"))


def check_reader(schema: str, reserved: frozenset[str]) -> pa.Schema:
    """Returns the columns of a subject's schema. Raises SkidwayError if the schema cannot become
    columns, if a column has a name that the loader reserves, or if the names of two fields differ
    only in case. Case does not count in either check, because Spark ignores the case of names."""
    columns = column_schema(Codec(schema).arrow_schema)
    own = {name.lower() for name in reserved}
    taken = [name for name in columns.names if name.lower() in own]
    if taken:
        raise SkidwayError(f"its field {taken[0]} has the name of one of the loader's own columns")
    _check_names(columns)
    return columns


def _check_names(fields: Iterable[pa.Field]) -> None:
    """Raises SkidwayError if the names of two fields differ only in case, at any depth."""
    seen: dict[str, str] = {}
    for each in fields:
        other = seen.setdefault(each.name.lower(), each.name)
        if other != each.name:
            raise SkidwayError(
                f"the names of its fields {other} and {each.name} differ only in upper and lower "
                "case; register a version in which one of the fields has another name, and its old "
                "name as an alias"
            )
        if types.is_nested(each.type):
            _check_names(each.type.field(at) for at in range(each.type.num_fields))


def _without_id(values: pa.BinaryArray, rows: npt.NDArray[np.intp]) -> dict[int, tuple[str, str]]:
    missing = np.asarray(values.take(pa.array(rows)).is_null())
    return {
        int(row): (NULL_VALUE, "") if is_null else (NO_SCHEMA_ID, "")
        for row, is_null in zip(rows, missing, strict=True)
    }


def _in_order(
    parts: list[list[pa.Array]], places: list[npt.NDArray[np.intp]], schema: pa.Schema
) -> list[pa.Array]:
    if not parts:
        return [pa.nulls(0, each.type) for each in schema]
    if len(parts) == 1:
        return parts[0]
    order = pa.array(np.argsort(np.concatenate(places), kind="stable"))
    return [pa.concat_arrays(list(column)).take(order) for column in zip(*parts, strict=True)]
