"""The fast path of encoding: it encodes flat records with pyruhvro, a library in Rust.

pyruhvro gets only records of boolean, long, float, double and string columns, which may be
nullable. For these records, tests prove that the fast path gives the same datums as the slow path.
Columns of some other types are first turned into columns of these types; this does not change the
bytes of the datums. Int, date, times and timestamps become longs. Bytes become strings whose
content is not checked. An enum becomes the number of its symbol. A record inside a record is
replaced by the fields of the inner record. The slow path, `skidway.schemas.codec.writing`, encodes
all other records (for example, with arrays, maps, fixed, decimals, nullable records or null). It
also encodes a batch for which the fast path raises `NotProven`.

pyruhvro is not used for decoding (`skidway.schemas.codec.reading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.dataclass import dataclass
from skidway.schemas.avro_schema import AvroType, Enum, Primitive, Record, Union
from skidway.schemas.codec.arrow import decimal_type, unwrapped

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


class NotProven(Exception):
    """Raised if the slow path has to encode the input: pyruhvro has failed, or has returned another
    number of datums than there are rows."""


@dataclass(frozen=True, slots=True)
class WireColumn:
    """One column in the form that pyruhvro encodes. `path` leads to the column's field: it has the
    index of a field for each level of nested records."""

    path: tuple[int, ...]
    kind: str
    nullable: bool
    null_first: bool
    symbols: pa.StringArray | None

    @property
    def physical(self) -> str:
        """Returns the column's type in the schema that pyruhvro gets."""
        return _PHYSICAL[self.kind]


def wire_columns(record: Record) -> list[WireColumn] | None:
    """Returns the columns of a record if Skidway's tests prove, for the type of each column, that
    the fast path encodes it correctly. Otherwise returns None."""
    found = list(_leaves(record, ()))
    return [each for each in found if each is not None] if found and None not in found else None


class FastPath:
    """Encodes columns that have exactly the types of the schema. Keeps no state."""

    def __init__(self, columns: list[WireColumn]) -> None:
        self._columns = columns
        self._names = [f"f{at}" for at in range(len(columns))]
        self._wire_schema = _wire_schema(columns)

    def encode(self, columns: list[pa.Array]) -> pa.BinaryArray:
        """Returns the datums of the rows in `columns`. The caller must have checked that the
        columns have nulls only where the schema allows nulls, and that all strings are UTF-8.
        Raises `NotProven`."""
        import pyruhvro  # only here: programs that only decode do not have it

        arrays = [_to_physical(_reach(columns, each.path), each) for each in self._columns]
        batch = pa.RecordBatch.from_arrays(arrays, names=self._names)
        pieces = _guarded(lambda: pyruhvro.serialize_record_batch(batch, self._wire_schema, 1))
        if len(pieces) != 1 or len(pieces[0]) != batch.num_rows:
            raise NotProven("another number of datums than rows")
        return pieces[0]


def _leaves(record: Record, path: tuple[int, ...]) -> Iterator[WireColumn | None]:
    for at, each in enumerate(record.fields):
        inner, nullable = unwrapped(each.type)
        here = (*path, at)
        if isinstance(inner, Record) and inner is each.type and inner.fields:
            yield from _leaves(inner, here)
        elif not _is_proven(each.type, inner):
            yield None
        else:
            null_first = nullable and _branches(each.type)[0].kind == "null"
            symbols = pa.array(inner.symbols, pa.string()) if isinstance(inner, Enum) else None
            yield WireColumn(here, inner.kind, nullable, null_first, symbols)


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
    """Returns the result of `call`. Raises `NotProven` if `call` fails, even by a Rust panic, which
    Python sees as a BaseException that is no Exception."""
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
