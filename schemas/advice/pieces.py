"""Makes types and defaults for edits of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from skidway.schemas.avro_schema import Array, AvroType, Enum, Fixed, Map, Named, Primitive, Union

NOTHING: Final = Primitive("null")
FIXED_ZERO_MAX: Final = 64
"""A default of zeros is suggested only for an Avro `fixed` of at most this many bytes."""


def or_null(avro: AvroType) -> AvroType:
    """Returns a union of null and the type `avro`. Null comes first, because null is to be the
    default, and older versions of the Avro specification demand that the default of a union fits
    the union's first branch."""
    rest = [each for each in branches(avro) if each.kind != "null"]
    return Union((NOTHING, *rest))


def branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def union(types: Sequence[AvroType]) -> Union:
    """Returns a union of the types. If one of the types is a union, the result has the branches of
    that union. If two types have the same name, or are of the same type without a name (such as
    int), the result has only the first of them."""
    named: dict[str, AvroType] = {}
    for each in (branch for avro in types for branch in branches(avro)):
        named.setdefault(each.name if isinstance(each, Named) else each.kind, each)
    return Union(tuple(named.values()))


def zeros(avro: AvroType) -> Iterator[Any]:
    """Yields values that can be the default of a field with this type, such as 0, an empty text or
    the first symbol of an enum. Yields nothing for a record, or for a fixed of more than
    `FIXED_ZERO_MAX` bytes."""
    if isinstance(avro, Union):
        for branch in avro.branches:
            yield from zeros(branch)
    elif isinstance(avro, Enum):
        yield from avro.symbols[:1]
    elif isinstance(avro, Fixed) and avro.size <= FIXED_ZERO_MAX:
        yield "\0" * avro.size
    elif isinstance(avro, Array):
        yield []
    elif isinstance(avro, Map):
        yield {}
    elif isinstance(avro, Primitive):
        yield _ZEROS[avro.kind]


_ZEROS: Final[dict[str, Any]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": "",
    "string": "",
}
