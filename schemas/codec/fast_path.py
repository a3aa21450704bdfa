"""The fast path of the codec: flat records, through pyruhvro (Rust) and the checks around it.

pyruhvro is only ever shown a record of boolean, long, float, double and string columns, each
perhaps nullable: the subset in which it is proven equal to the slow path. What else Avro has is
brought down to these where the bytes are the same: int, date, times and timestamps are longs (so
that an int out of range is seen and not cut), bytes are strings that nobody looks into, an enum is
the number of its symbol, a record inside a record is its fields. Everything outside (arrays, maps,
fixed, nullable records, null) belongs to `skidway.schemas.codec.rows`.

What pyruhvro does not notice is noticed here, for whole columns: a string that is not UTF-8, an int
out of range, a symbol that the enum has not, and bytes left over behind a datum. The last one
costs no second encoding: the values' shortest encoding can only be as long as the datum if the
datum was read to its end. (Only ten-byte varints can hide bits; a chunk with one is encoded again
and compared.) Whenever anything is odd, `NotProven` says so and the slow path decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyruhvro

from skidway.schemas.avro_schema import AvroType, Enum, Primitive, Record, Union
from skidway.schemas.codec.arrow import decimal_type, unwrapped
from skidway.schemas.codec.text import utf8_faults
from skidway.schemas.codec.times import time_faults

_PHYSICAL: Final = {
    "boolean": "boolean",
    "int": "long",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "string",
    "string": "string",
    "enum": "long",
}
_FIXED_SIZES: Final = {"boolean": 1, "float": 4, "double": 8}
_TEN_BYTES: Final = 1 << 63
"""From this zigzag number on, a varint takes ten bytes, the last of which has unused bits."""


class NotProven(Exception):
    """The fast path does not vouch for this input; the slow path has to decide."""


@dataclass(frozen=True, slots=True)
class WireColumn:
    """One column as pyruhvro sees it. `path` leads to it through records inside records."""

    path: tuple[int, ...]
    kind: str
    nullable: bool
    null_first: bool
    arrow: pa.DataType
    symbols: pa.StringArray | None

    @property
    def physical(self) -> str:
        """The type that pyruhvro is told."""
        return _PHYSICAL[self.kind]


def wire_columns(record: Record, schema: pa.Schema) -> list[WireColumn] | None:
    """The columns of a record in the proven subset; None for a record outside of it."""
    found = list(_leaves(record, schema, ()))
    return [each for each in found if each is not None] if found and None not in found else None


class FastPath:
    """Encodes and decodes columns whose types are exactly the schema's. Holds no state."""

    def __init__(self, columns: list[WireColumn], schema: pa.Schema) -> None:
        self._columns = columns
        self._schema = schema
        self._names = [f"f{at}" for at in range(len(columns))]
        self._wire_schema = _wire_schema(columns)

    def encode(self, columns: list[pa.Array]) -> pa.BinaryArray:
        """The datums of checked columns (no null where none may be, UTF-8). Raises `NotProven`."""
        arrays = [_to_physical(_reach(columns, each.path), each) for each in self._columns]
        return self._serialize(arrays)

    def decode(self, datums: pa.BinaryArray) -> list[pa.Array]:
        """The columns of datums that are all good and none null. Raises `NotProven`."""
        physical = self._deserialize(datums.to_pylist())
        self._check_lengths(physical, datums)
        leaves = iter(map(_from_physical, physical, self._columns))
        return [_rebuilt(field.type, leaves) for field in self._schema]

    def _serialize(self, arrays: list[pa.Array]) -> pa.BinaryArray:
        batch = pa.RecordBatch.from_arrays(arrays, names=self._names)
        pieces = _guarded(lambda: pyruhvro.serialize_record_batch(batch, self._wire_schema, 1))
        if len(pieces) != 1 or len(pieces[0]) != batch.num_rows:
            raise NotProven("another number of datums than rows")
        return pieces[0]

    def _deserialize(self, datums: list[bytes]) -> list[pa.Array]:
        batch = _guarded(lambda: pyruhvro.deserialize_array(datums, self._wire_schema))
        if batch.num_rows != len(datums) or batch.num_columns != len(self._columns):
            raise NotProven("another number of rows than datums")
        columns: list[pa.Array] = batch.columns
        return columns

    def _check_lengths(self, physical: list[pa.Array], datums: pa.BinaryArray) -> None:
        total = np.zeros(len(datums), np.int64)
        ten_bytes = False
        for array, column in zip(physical, self._columns, strict=True):
            sizes, hides_bits = _value_sizes(array, column.physical)
            ten_bytes |= hides_bits
            if array.null_count:
                sizes = sizes * np.asarray(array.is_valid())
            total += sizes + 1 if column.nullable else sizes
        if not np.array_equal(total, _lengths(datums)):
            raise NotProven("a datum longer than its values")
        if ten_bytes and not self._serialize(physical).equals(datums):
            raise NotProven("a varint of more than 64 bits")


def _leaves(
    record: Record, fields: pa.Schema | pa.StructType, path: tuple[int, ...]
) -> Iterator[WireColumn | None]:
    for at, each in enumerate(record.fields):
        inner, nullable = unwrapped(each.type)
        arrow, here = fields.field(at).type, (*path, at)
        if isinstance(inner, Record) and inner is each.type and inner.fields:
            yield from _leaves(inner, arrow, here)
        elif not _is_proven(each.type, inner):
            yield None
        else:
            null_first = nullable and _branches(each.type)[0].kind == "null"
            symbols = pa.array(inner.symbols, pa.string()) if isinstance(inner, Enum) else None
            yield WireColumn(here, inner.kind, nullable, null_first, arrow, symbols)


def _branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def _is_proven(avro: AvroType, inner: AvroType) -> bool:
    if isinstance(avro, Union) and len(avro.branches) != 2:
        return False
    if not isinstance(inner, Primitive | Enum) or inner.kind not in _PHYSICAL:
        return False
    return decimal_type(inner) is None


def _wire_schema(columns: list[WireColumn]) -> str:
    def type_of(column: WireColumn) -> str:
        name = f'"{column.physical}"'
        if not column.nullable:
            return name
        return f'["null", {name}]' if column.null_first else f'[{name}, "null"]'

    fields = ", ".join(
        f'{{"name": "f{at}", "type": {type_of(each)}}}' for at, each in enumerate(columns)
    )
    return f'{{"type": "record", "name": "Wire", "fields": [{fields}]}}'


def _guarded(call: Callable[[], Any]) -> Any:
    """`call`'s result. A Rust panic arrives as a BaseException that no `except Exception` sees."""
    try:
        return call()
    except (ValueError, TypeError, OverflowError) as error:
        raise NotProven(str(error)) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise NotProven("the fast codec gave up") from None


def _reach(columns: list[pa.Array], path: tuple[int, ...]) -> pa.Array:
    array = columns[path[0]]
    for at in path[1:]:
        array = array.field(at)
    return array


def _to_physical(array: pa.Array, column: WireColumn) -> pa.Array:
    if column.symbols is not None:
        return pc.index_in(array, column.symbols).cast(pa.int64())
    if column.kind == "int":
        return array.view(pa.int32()).cast(pa.int64())
    if column.kind == "long":
        return array.view(pa.int64())
    return array.view(pa.string()) if column.kind == "bytes" else array


def _from_physical(array: pa.Array, column: WireColumn) -> pa.Array:
    if column.symbols is not None:
        return _symbols(array, column.symbols)
    if column.kind == "int":
        try:
            narrow = array.cast(pa.int32())
        except pa.ArrowInvalid:
            raise NotProven("an int out of range") from None
        return _viewed(narrow, column.arrow)
    if column.kind == "string" and utf8_faults(array) is not None:
        raise NotProven("a string that is not UTF-8")
    return array if array.type == column.arrow else _viewed(array, column.arrow)


def _viewed(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    viewed = array.view(arrow)
    if time_faults(viewed) is not None:
        raise NotProven("no time of a day")
    return viewed


def _symbols(numbers: pa.Array, symbols: pa.StringArray) -> pa.Array:
    known = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, len(symbols)))
    if pc.all(known).as_py() is False:
        raise NotProven("a symbol that the enum has not")
    return symbols.take(numbers)


def _rebuilt(arrow: pa.DataType, leaves: Iterator[pa.Array]) -> pa.Array:
    if not pa.types.is_struct(arrow):
        return next(leaves)
    children = [_rebuilt(each.type, leaves) for each in arrow]
    return pa.StructArray.from_arrays(children, fields=list(arrow))


def _lengths(datums: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    if len(datums) == 0:
        return np.zeros(0, np.int64)
    bounds = np.frombuffer(datums.buffers()[1], np.int32)
    return np.diff(bounds[datums.offset : datums.offset + len(datums) + 1]).astype(np.int64)


def _value_sizes(array: pa.Array, physical: str) -> tuple[Any, bool]:
    """(bytes that each value takes, whether one of them is a varint of ten bytes)."""
    if physical in _FIXED_SIZES:
        return np.full(len(array), _FIXED_SIZES[physical], np.int64), False
    if physical == "string":
        lengths = _lengths(array)
        return lengths + _varint_sizes(lengths.astype(np.uint64) << np.uint64(1))[0], False
    values = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]
    zigzag = (values << 1) ^ (values >> 63)
    return _varint_sizes(zigzag.view(np.uint64))


def _varint_sizes(numbers: Any) -> tuple[Any, bool]:
    sizes = np.ones(len(numbers), np.int64)
    largest = int(numbers.max()) if len(numbers) else 0
    for bits in range(7, largest.bit_length(), 7):
        sizes += numbers >= np.uint64(1 << bits)
    return sizes, largest >= _TEN_BYTES
