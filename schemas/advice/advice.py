"""Advises the author of a schema that is to follow earlier versions. The reasons why it is not
compatible name the field, the earlier version, and what cannot be read.

Two libraries read a schema here. Our own parser and `compatibility` decide; the tests check that
they agree with Apache Avro's Java library. Apache's Python library (avro 1.12) only gives a second
opinion, because it differs from Java: it accepts invalid defaults and field names such as `a-b`,
compares aliases without their namespace, and its reports of incompatibilities have no fixed order
and no path. But some people read the data with it, so the advice says if it refuses the schema.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skidway.schemas.advice.differences import Difference, differences
from skidway.schemas.advice.draft import Draft, place_name
from skidway.schemas.advice.repair import Suggestion, repair
from skidway.schemas.avro_schema import AvroType, Named, type_name
from skidway.schemas.canonical import canonical
from skidway.schemas.compatibility import Incompatibility, Level, check
from skidway.schemas.logical_types import ignored


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why a schema is not compatible with the earlier version `version`. `place`: the
    path of the field, such as `order.lines[].price`. The path is empty if the reason concerns the
    schema's outermost type."""

    version: int
    place: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is to know of a schema.

    `differences` are those from the newest of the earlier versions. `faults` are the reasons why
    the schema is not compatible at the level `level`, all with the newest version with which it is
    not; without any, it is compatible. `allowed_by` are the levels other than NONE at which it
    would be. `suggestion` is a similar schema that was checked and is compatible; it is None if the
    schema itself is compatible, or if none was found. `notes` are sentences on what readers will
    not take as the author may expect.
    """

    differences: tuple[Difference, ...]
    level: Level
    faults: tuple[Fault, ...]
    allowed_by: tuple[Level, ...]
    suggestion: Suggestion | None
    notes: tuple[str, ...]


def advise(
    old: Sequence[tuple[int, AvroType]],
    new: AvroType,
    level: Level,
    known: Mapping[str, Named] | None = None,
) -> Advice:
    """Returns advice on `new`, which is to become the next version after the versions `old`.

    `old`: number and schema of each earlier version, in ascending order. `known`: types of the
    schemas that `new` references. Raises `SchemaInvalid` if the schemas are too large to be
    compared.
    """
    known = known or {}
    changes = differences(old[-1][1], new) if old else ()
    version, found = check(new, old, level) or (0, [])
    return Advice(
        changes,
        level,
        tuple(_fault(version, each, new, dict(old)[version]) for each in found),
        tuple(each for each in Level if each is not Level.NONE and check(new, old, each) is None),
        repair(old, new, level, known) if found else None,
        tuple(_notes(changes, new, known)),
    )


_SENTENCES: Final = {
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "new"): "{place}: version {version} does not have this "
    "field, and the new schema has no default for it",
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "old"): "{place}: version {version} reads this field "
    "and has no default for it, and the new schema does not have it",
    ("READER_FIELD_AMBIGUOUS", "new"): "{place}: by its name and aliases this field is several "
    "fields of version {version}: {detail}",
    ("READER_FIELD_AMBIGUOUS", "old"): "{place}: by its name and aliases this field of version "
    "{version} is several fields of the new schema: {detail}",
    ("MISSING_ENUM_SYMBOLS", "new"): "{place}: {reader} has no default and lacks the symbols "
    "{detail}, which version {version} wrote",
    ("MISSING_ENUM_SYMBOLS", "old"): "{place}: {reader} of version {version} has no default and "
    "does not know the symbols {detail}",
    ("NAME_MISMATCH", "new"): "{place}: {reader} has neither the name nor an alias of {writer}, "
    "which version {version} wrote",
    ("NAME_MISMATCH", "old"): "{place}: version {version} reads it as {reader}, which has neither "
    "the name nor an alias of {writer}",
    ("FIXED_SIZE_MISMATCH", "new"): "{place}: {reader} has another size than in version {version} "
    "({detail})",
    ("FIXED_SIZE_MISMATCH", "old"): "{place}: {reader} has another size in version {version} "
    "({detail})",
}
_OTHERS: Final = {
    "new": "{place}: {reader} cannot read {writer}, which version {version} wrote",
    "old": "{place}: version {version} reads it as {reader}, which cannot read {writer}",
}
"""The sentences for types that do not fit, and for unions that lack a type."""


def _fault(version: int, each: Incompatibility, new: AvroType, old: AvroType) -> Fault:
    reader, writer = (new, old) if each.reader == "new" else (old, new)
    place = place_name(reader, each.path)
    sentence = _SENTENCES.get((each.kind, each.reader), _OTHERS[each.reader]).format(
        place=place or "the schema",
        version=version,
        detail=each.detail,
        reader=type_name(Draft(reader).type_at(each.reader_place)),
        writer=type_name(Draft(writer).type_at(each.writer_place)),
    )
    return Fault(version, place, sentence)


def _notes(
    changes: Sequence[Difference], new: AvroType, known: Mapping[str, Named]
) -> Iterator[str]:
    yield from ignored(canonical(new, known))
    yield from (str(each) for each in changes if each.note is not None)
    refusal = _second_opinion(canonical(new))
    if refusal is not None:
        yield f"Apache Avro's Python library does not read it: {refusal}"


def _second_opinion(text: str) -> str | None:
    """Returns the reason why Apache's Python library refuses a schema, or None if that library
    accepts the schema or is not installed."""
    try:
        import avro.errors
        import avro.schema
    except ImportError:
        return None
    # the library also raises these built-in errors for schemas that it refuses
    refusals = (avro.errors.AvroException, ValueError, TypeError, KeyError, AttributeError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library warns about unknown logical types
        try:
            avro.schema.parse(text)
        except refusals as error:
            return str(error) or type(error).__name__
    return None
