"""Encodes columns into datums, a whole column at once. Each type of the schema has a writer, which
turns a column into fragments. Then this module joins the fragments.

A fragment is a column that has some bytes for every row, for example a number, a text, or the items
of a list. Arrow joins the fragments of all fields row by row; the result is the datums. For the
writer of a list's items, each item counts as a row. For the writers of a nested record's fields,
each nested record counts as a row. The encoded items of one list are adjacent, so one range of the
items' bytes contains all items of one list. The fragment of a list column has one such range for
each row. A column with nulls has two fragments: the indexes of the union's branches, and the
values, with no bytes for a null.

Writers need arrays that have exactly the schema's types, and that `conform` has accepted. These
arrays have no null where the schema forbids null, no unknown symbol, and no map with the same key
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    Recursive,
    Union,
)
from skidway.schemas.codec import decimals
from skidway.schemas.codec.arrow import branches_of, decimal_type, is_nullable
from skidway.schemas.codec.cursor import Ints, Mask, Words
from skidway.schemas.codec.text_columns import text_writer

Fragment: TypeAlias = "pa.BinaryArray | pa.BinaryScalar"
"""Some bytes for every row. If the fragment is a scalar, all rows have the same bytes."""
Writer = Callable[[pa.Array], list[Fragment]]

EMPTY: Final = pa.scalar(b"", pa.binary())
DATUM_BYTES_MAX: Final = 2**31 - 1
"""All datums of a batch together have at most this many bytes, because Arrow's offsets have 31
bits."""
_VIEWS: Final = {"int": pa.int32(), "long": pa.int64()}


_NOTHING: Final = pa.py_buffer(b"")


class TooLong(Exception):
    """Raised if the datums of a batch would take more than `DATUM_BYTES_MAX` bytes."""

    def __init__(self) -> None:
        super().__init__(f"The datums of a batch take more than {DATUM_BYTES_MAX} bytes.")


def joined(fragments: list[Fragment], rows: int) -> pa.BinaryArray:
    """Joins the fragments (columns of bytes) row by row into one array. Raises `TooLong`."""
    arrays = [each for each in fragments if isinstance(each, pa.BinaryArray)]
    if len(arrays) == len(fragments) == 1:
        return arrays[0]
    if not arrays:
        constant = b"".join(each.as_py() for each in fragments)
        return pa.array([constant], pa.binary()).take(pa.array(np.zeros(rows, np.int32)))
    constants = sum(len(each.as_py()) for each in fragments if isinstance(each, pa.BinaryScalar))
    if rows * constants + sum(map(_byte_count, arrays)) > DATUM_BYTES_MAX:
        raise TooLong
    return pc.binary_join_element_wise(*fragments, EMPTY)


def writer_of(avro: AvroType) -> Writer:
    """Returns the writer for columns of the type `avro`."""
    if isinstance(avro, Recursive):
        text = text_writer(avro)
        return lambda array: [text(array)]
    if isinstance(avro, Union):
        return _union(avro)
    if isinstance(avro, Record):
        return _record(avro)
    if isinstance(avro, Array):
        return _array(avro)
    if isinstance(avro, Map):
        return _map(avro)
    if isinstance(avro, Enum):
        return _enum(avro)
    if decimal_type(avro) is not None:
        return _decimal(avro.size if isinstance(avro, Fixed) else None)
    return _fixed if isinstance(avro, Fixed) else _PRIMITIVES[avro.kind]


def _numbers(values: Ints) -> pa.BinaryArray:
    return _varints(((values << 1) ^ (values >> 63)).view(np.uint64))


def _varints(rest: Words) -> pa.BinaryArray:
    largest = int(rest.max()) if len(rest) else 0
    width = max((largest.bit_length() + 6) // 7, 1)
    if width == 1:
        return _of_one_size(rest.astype(np.uint8), 1)
    matrix = np.empty((len(rest), width), np.uint8)
    used = np.empty((len(rest), width), bool)
    going_on = np.ones(len(rest), bool)
    for at in range(width):
        used[:, at] = going_on
        low = rest.astype(np.uint8) & 0x7F
        rest = rest >> np.uint64(7)
        going_on = rest != 0
        matrix[:, at] = low | (going_on.view(np.uint8) << 7)
    return _of_sizes(matrix[used], used.sum(axis=1))


def _of_one_size(data: Any, size: int) -> pa.BinaryArray:
    rows = data.nbytes // size
    offsets = np.arange(0, (rows + 1) * size, size, dtype=np.int32)
    return _binary(offsets, pa.py_buffer(data))


def _of_sizes(data: Any, sizes: Ints) -> pa.BinaryArray:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return _binary(offsets, pa.py_buffer(np.ascontiguousarray(data)))


def _binary(offsets: Any, data: pa.Buffer | None) -> pa.BinaryArray:
    held = _NOTHING if data is None else data
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), held]
    )


def _offsets(array: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.int32]]:
    if len(array) == 0:
        return np.zeros(1, np.int32)
    every = np.frombuffer(array.buffers()[1], np.int32)
    return every[array.offset : array.offset + len(array) + 1]


def _byte_count(array: pa.BinaryArray) -> int:
    offsets = _offsets(array)
    return int(offsets[-1]) - int(offsets[0])


def _null(_: pa.Array) -> list[Fragment]:
    return [EMPTY]


def _boolean(array: pa.Array) -> list[Fragment]:
    return [_of_one_size(np.asarray(array).view(np.uint8), 1)]


def _number(array: pa.Array) -> list[Fragment]:
    wide = array.view(_VIEWS["int" if array.type.bit_width == 32 else "long"])
    return [_numbers(np.asarray(wide).astype(np.int64))]


def _float(array: pa.Array) -> list[Fragment]:
    size = array.type.bit_width // 8
    return [_of_one_size(np.ascontiguousarray(np.asarray(array)), size)]


def _sized(array: pa.Array) -> list[Fragment]:
    raw = array.view(pa.binary())
    return [_varints(np.diff(_offsets(raw)).astype(np.uint64) << np.uint64(1)), raw]


def _fixed(array: pa.Array) -> list[Fragment]:
    return [array.cast(pa.binary())]


def _decimal(size: int | None) -> Writer:
    def write(array: pa.Array) -> list[Fragment]:
        data, sizes = decimals.encode(array, size)
        if size is not None:
            return [_of_sizes(data, sizes)]
        return [_varints(sizes.astype(np.uint64) << np.uint64(1)), _of_sizes(data, sizes)]

    return write


def _enum(avro: Enum) -> Writer:
    symbols = pa.array(avro.symbols, pa.string())
    return lambda array: [_numbers(np.asarray(pc.index_in(array, symbols)).astype(np.int64))]


def _record(record: Record) -> Writer:
    writers = [writer_of(each.type) for each in record.fields]

    def write(array: pa.StructArray) -> list[Fragment]:
        return [
            fragment for at, writer in enumerate(writers) for fragment in writer(array.field(at))
        ] or [EMPTY]

    return write


def _array(avro: Array) -> Writer:
    writer = writer_of(avro.items)

    def write(array: pa.ListArray) -> list[Fragment]:
        offsets = np.asarray(array.offsets)
        items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
        return _blocks(offsets, joined(writer(items), len(items)))

    return write


def _map(avro: Map) -> Writer:
    writer = writer_of(avro.values)

    def write(array: pa.MapArray) -> list[Fragment]:
        offsets = np.asarray(array.offsets)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        keys, values = array.keys.slice(first, count), array.items.slice(first, count)
        return _blocks(offsets, joined([*_sized(keys), *writer(values)], count))

    return write


def _blocks(offsets: Any, items: pa.BinaryArray) -> list[Fragment]:
    """Encodes the items of each row as one block, followed by the zero that ends an array or map.
    If a row has no items, its bytes are only this zero."""
    bounds = _offsets(items)[offsets - offsets[0]]
    counts = np.diff(offsets).astype(np.int64)
    begin = _numbers(counts[counts > 0])
    return [_spread(begin, counts > 0), _binary(bounds, items.buffers()[2]), _END]


_END: Final = pa.scalar(b"\0", pa.binary())


def _spread(part: pa.BinaryArray, mask: Mask) -> pa.BinaryArray:
    """Returns an array with the values of `part` in the rows where `mask` is true, and an empty
    value in the other rows."""
    if len(part) == len(mask):
        return part
    places = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask, out=places[1:])
    return _binary(_offsets(part)[places], part.buffers()[2])


def _union(union: Union) -> Writer:
    members = branches_of(union)
    if not members:
        return lambda _: [pa.scalar(b"\0", pa.binary())]
    if len(members) > 1:
        return _members(union)
    (place,) = members
    writer, branch = writer_of(union.branches[place]), _branch(place)
    if not is_nullable(union):
        return lambda array: [branch, *writer(array)]

    def write(array: pa.Array) -> list[Fragment]:
        if not array.null_count:
            return [branch, *writer(array)]
        valid = np.asarray(array.is_valid())
        numbers = np.where(valid, place, 1 - place).astype(np.int64)
        return [_numbers(numbers), _chosen(writer, array, valid)]

    return write


def _branch(place: int) -> pa.BinaryScalar:
    return _numbers(np.array([place]))[0]


def _chosen(writer: Writer, array: pa.Array, mask: Mask) -> pa.BinaryArray:
    count = int(mask.sum())
    part = array.filter(pa.array(mask))
    return _spread(joined(writer(part), count), mask)


def _members(union: Union) -> Writer:
    places = branches_of(union)
    writers = [writer_of(union.branches[at]) for at in places]
    null = next((at for at, each in enumerate(union.branches) if each.kind == "null"), 0)

    def write(array: pa.StructArray) -> list[Fragment]:
        numbers = np.full(len(array), null, np.int64)
        present = np.asarray(array.is_valid())
        parts: list[Fragment] = []
        for number, (place, writer) in enumerate(zip(places, writers, strict=True)):
            member = array.field(number)
            mask = np.asarray(member.is_valid()) & present
            numbers[mask] = place
            parts.append(_chosen(writer, member, mask))
        return [_numbers(numbers), *parts]

    return write


_PRIMITIVES: Final[dict[str, Writer]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _float,
    "double": _float,
    "bytes": _sized,
    "string": _sized,
}
