"""Implements the rules of Avro's schema resolution about the names of records, enums and fixed
types, and about the conversion between primitive or fixed types."""

from __future__ import annotations

from typing import Final

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import (
    AvroType,
    Fixed,
    Named,
    Primitive,
    Record,
    has_name,
    named_types,
)
from skidway.schemas.codec.promotion import NotPromotable, Step, promotion


class Unresolvable(SkidwayError):
    """Raised if the reader's schema cannot read any datum of the writer's schema. The message names
    the field or the type."""


class TooManyTypes(SkidwayError):
    """Raised if it would take too long to compile the columns of a pair of schemas."""


STEPS_MAX: Final = 500_000
"""The columns of a pair of schemas are compiled in at most this many steps, which take a second or
two. Each pair of types is a step, and for a type that contains itself each type of the writer for
each field and branch of the reader. Two records with ten thousand fields need ten thousand steps;
two schemas of many types that contain one another could need hours."""


class Budget:
    """The steps that are left to compile the columns of a pair of schemas."""

    def __init__(self) -> None:
        self._left = STEPS_MAX

    def take(self, steps: int) -> None:
        """Raises `TooManyTypes` if fewer steps are left."""
        self._left -= steps
        if self._left < 0:
            raise TooManyTypes("the schemas have too many types that contain one another")


def size(avro: AvroType) -> int:
    """Returns the number of steps to walk once over all types inside a type, also if the type
    contains itself."""
    count = 1
    for each in named_types(getattr(avro, "type", avro)).values():
        count += 1 + len(each.aliases)
        if isinstance(each, Record):
            count += sum(len(getattr(field.type, "branches", "-")) for field in each.fields)
    return count


def leaf(writer: AvroType, reader: AvroType, path: str) -> Step:
    """Returns the function that converts a column from the writer's primitive or fixed type to the
    reader's type. Raises `Unresolvable`."""
    if isinstance(writer, Fixed) and isinstance(reader, Fixed):
        check_name(writer, reader, path)
        if writer.size != reader.size:
            raise Unresolvable(f"Field {path} was a fixed({writer.size}) and is ({reader.size}).")
    elif not (isinstance(writer, Primitive) and isinstance(reader, Primitive)):
        raise mismatch(writer, reader, path)
    try:
        return promotion(writer, reader)
    except NotPromotable:
        raise mismatch(writer, reader, path) from None


def mismatch(writer: AvroType, reader: AvroType, path: str) -> Unresolvable:
    """Returns the error for a pair of types if no value of the writer's type can become a value of
    the reader's type, for example a string and a record."""
    return Unresolvable(f"Field {path} was written as {writer.kind} and is {reader.kind} now.")


def check_name(writer: Named, reader: Named, path: str) -> None:
    """Raises `Unresolvable` if the names of the two types do not match (`has_name`)."""
    if not has_name(writer, reader):
        where = f" at {path}" if path else ""
        raise Unresolvable(f"The {writer.kind} {writer.name}{where} is {reader.name} now.")
