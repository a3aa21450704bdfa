"""Does schema resolution for types that contain themselves, value by value, with fastavro.

Each value of the writer's column becomes a datum of the writer's type. fastavro reads this datum
with the writer's and the reader's schema. From what fastavro has read, the module `rows` makes the
reader's column, as it does for other datums: JSON texts (`json_text`) if the reader's type contains
itself, and other columns if it does not.

fastavro does not say which branch of a union it has read, and reads a value as the first branch to
which the value can be promoted. So in the schemas that fastavro gets here, every type but null is
inside a *wrapper*, which is a record with one field, and adds no bytes to a datum. fastavro reads a
record as another record only if their names match. So the names of wrappers say which types can be
read as which, and the name of a wrapper's field says which branch was read.

fastavro keeps the number in a datum, and knows no logical types. So a value does not fit the
reader's schema if a timestamp or time of day in it would need another unit, or a decimal another
scale. Numbers that become floating-point numbers may be rounded, as Avro allows. If a field of the
writer has the name of a reader's field, and another one has its alias, fastavro refuses the value
or reads one of the two; a registry refuses such versions.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
from fastavro.read import SchemaResolutionError

from skidway.schemas.avro_schema import (
    AvroType,
    Field,
    Fixed,
    Named,
    Primitive,
    Recursive,
    Union,
    candidates,
    default_fault,
    named_types,
)
from skidway.schemas.codec.arrow import (
    VALUE,
    arrow_schema,
    arrow_type,
    branches_of,
    member,
    record_of,
)
from skidway.schemas.codec.json_text import tagged_default
from skidway.schemas.codec.matching import Budget, Unresolvable, size
from skidway.schemas.codec.promotion import PROMOTIONS, Step
from skidway.schemas.codec.rows import DEFAULT_FAULTS, Rows
from skidway.schemas.codec.spreading import spread
from skidway.schemas.codec.writing import joined, writer_of
from skidway.schemas.datum import MALFORMED, PlainSchema

UNFIT: Final = "a part of the value does not fit the reader's schema"
_INSIDE: Final = "inside"
_DEFAULT: Final = "default"
"""The names of the field in a wrapper. `_DEFAULT`: of a default, whose value has no wrappers
inside. For a branch of a reader's union of several types, the name is that of the member."""
_OF_READER: Final = "-"
"""The name of a wrapper that no wrapper of a writer has."""
_UNITS: Final = ("", "_ms", "_us", "_ns")
"""Numbers without a unit are read from numbers of any unit."""


def text_step(writer: AvroType, reader: AvroType, path: str, budget: Budget) -> Step:
    """Returns the function that turns the writer's column into the reader's column. At least one of
    the two types contains itself. Raises `Unresolvable` if the types are nested too deeply, and
    `TooManyTypes`."""
    budget.take(size(writer))
    budget.take(size(reader) * (1 + len(named_types(getattr(writer, "type", writer)))))
    try:
        read = _reading(writer, reader)
    except RecursionError:  # types contain one another in too long a chain
        raise Unresolvable(f"Field {path} is nested too deeply.") from None
    record = record_of([(VALUE, reader)])
    encode, rows = writer_of(writer), Rows(record, arrow_schema(record), read)

    def step(given: pa.Array) -> tuple[pa.Array, list[tuple[Any, str]]]:
        (column,), faults = rows.decode(joined(encode(given), len(given)).to_pylist())
        reasons = np.full(len(given), "", object)
        reasons[list(faults)] = list(faults.values())
        unfit = [(reasons == why, why) for why in dict.fromkeys(faults.values())]
        return spread(column, reasons == "") if unfit else column, unfit

    return step


def _reading(writer: AvroType, reader: AvroType) -> Callable[[bytes], dict[str, Any]]:
    """Returns the function that reads a datum of the writer's type as a value of the reader's type,
    in the form that `Rows` needs. The function raises ValueError if the value does not fit."""
    wrapped = _Wrapped()
    written = _parsed(wrapped.of(writer))
    read = _parsed(_Wrapped(wrapped.named).of(reader))

    def row_of(datum: bytes) -> dict[str, Any]:
        try:
            value: Any = fastavro.schemaless_reader(io.BytesIO(datum), written, read)
        except (SchemaResolutionError, *MALFORMED):
            raise ValueError(UNFIT) from None
        return {VALUE: _unwrapped(value[VALUE])}

    return row_of


def _parsed(schema: Any) -> Any:
    """Returns a schema as fastavro needs it. Puts the schema inside a record, because fastavro
    would parse any other schema again for each datum."""
    fields = [{"name": VALUE, "type": schema}]
    return fastavro.parse_schema({"type": "record", "name": "_.-", "fields": fields})


class _Wrapped(PlainSchema):
    """Converts one schema to the form with wrappers. named: the named types that were converted.
    written: for a reader's schema, the named types of the writer's."""

    def __init__(self, written: Mapping[str, Named] | None = None) -> None:
        super().__init__(defaults=False, tagged=False)
        self.named: dict[str, Named] = {}
        self._is_reader = written is not None
        self._written = [*(written or {}).values()]
        self._count = 0

    def of(self, avro: AvroType) -> Any:
        if isinstance(avro, Recursive | Union) or avro.kind == "null":
            return super().of(avro)
        return self._wrapper(avro, _INSIDE, self._names(avro))

    def _union(self, union: Union) -> list[Any]:
        members = {at: number for number, at in enumerate(branches_of(union))}
        kinds = tuple(each.kind for each in union.branches)
        is_tagged = self._is_reader and len(members) > 1
        read_as: dict[int, list[Named]] = {at: [] for at in members}
        for each in self._written:
            for at in candidates(each, union.branches):
                read_as[at].append(each)
        return [
            self._wrapper(
                each,
                member(members[at]) if is_tagged else _INSIDE,
                self._names(each, kinds, read_as[at]),
            )
            if at in members
            else "null"
            for at, each in enumerate(union.branches)
        ]

    def _names(
        self, avro: AvroType, beside: tuple[str, ...] = (), read_as: Sequence[Named] | None = None
    ) -> list[str]:
        """Returns the name of the type's wrapper, and then the names of those wrappers of a writer
        that can be read as the type. beside: the kinds of all types in the same union, which come
        before types to which a value would have to be promoted. read_as: the writer's named types
        that the union reads as this type."""
        if not isinstance(avro, Named):
            return _names(avro, beside)
        self.named[avro.name] = avro
        if not self._is_reader:
            return [_named(avro, avro)]
        if read_as is None:
            read_as = [each for each in self._written if candidates(each, (avro,))]
        return [_OF_READER, *(_named(each, avro) for each in read_as)]

    def _wrapper(self, avro: AvroType, inside: str, names: Sequence[str]) -> dict[str, Any]:
        self._count += 1
        first, *others = names
        # fastavro compares the names without the namespace, which makes each full name unique
        made = {"type": "record", "name": f"_{self._count}.{first}", "aliases": others}
        field = {"name": inside, "aliases": [_INSIDE], "type": super().of(avro)}
        return made | {"fields": [field]}

    def _field(self, field: Field) -> dict[str, Any]:
        made = super()._field(field)
        return made | _default(field) if self._is_reader else made


def _named(written: Named, avro: Named) -> str:
    """Returns the name of the wrapper of a writer's type that has the unit of `avro`."""
    full = written.name.replace("_", "__").replace(".", "_d")
    return f"{written.kind}_{full}_u{_unit(avro)}"


def _unit(avro: AvroType) -> str:
    """Returns what two types must share besides their kind, as a suffix of a name."""
    leaf = arrow_type(avro) if isinstance(avro, Primitive | Fixed) else None
    return f"_{getattr(leaf, 'unit', getattr(leaf, 'scale', ''))}".rstrip("_")


def _names(avro: AvroType, beside: tuple[str, ...]) -> list[str]:
    if not isinstance(avro, Primitive):
        return [avro.kind]
    unit = _unit(avro)
    kinds = [kind for kind, into in PROMOTIONS.items() if avro.kind in into and kind not in beside]
    units = (unit, "") if unit else _UNITS
    return [f"{kind}{each}" for kind in (avro.kind, *kinds) for each in units]


def _default(field: Field) -> dict[str, Any]:
    """Returns the default of a field as a property of the field in a reader's schema. Returns
    nothing if the default is invalid; then a value that needs it does not fit."""
    if not field.has_default or default_fault(field.type, field.default) is not None:
        return {}
    try:
        value = tagged_default(field.type, field.default)
    except DEFAULT_FAULTS:
        return {}
    return {"default": None if value is None else {_DEFAULT: value}}


def _unwrapped(value: Any) -> Any:
    """Returns a value without its wrappers. A value of a union of several types keeps the name of
    its member, as in `json_text`."""
    if value is None:
        return None
    ((name, made),) = value.items()
    if name == _DEFAULT:
        return made
    if isinstance(made, dict):
        made = dict(zip(made, map(_unwrapped, made.values()), strict=True))
    elif isinstance(made, list):
        made = list(map(_unwrapped, made))
    return made if name == _INSIDE else {name: made}
