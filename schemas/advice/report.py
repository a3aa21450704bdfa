"""Explains to the author of a schema why the schema is not compatible. The explanation names the
field, the earlier version, and the compatibility level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skidway.schemas.advice.draft import Draft, place_name
from skidway.schemas.advice.repair import Suggestion, repair
from skidway.schemas.avro_schema import AvroType, Named
from skidway.schemas.compatibility import Incompatibility, Level, check
from skidway.schemas.differences import type_name


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
    """Advice on an incompatible schema.

    `version` is the newest version with which the schema is not compatible. `allowing` are the
    compatibility levels at which the schema would be accepted. `suggestion` is a similar schema
    that was checked and is compatible; it is None if no compatible schema was found.
    """

    level: Level
    version: int
    faults: tuple[Fault, ...]
    allowing: tuple[Level, ...]
    suggestion: Suggestion | None


def advise(
    new: AvroType,
    earlier: Sequence[tuple[int, AvroType]],
    level: Level,
    known: Mapping[str, Named] | None = None,
) -> Advice | None:
    """Returns advice on `new`, which is to become the next version after the versions `earlier`.
    Returns None if `new` is compatible with them.

    `earlier`: number and schema of each earlier version, in ascending order. `known`: types of the
    schemas that `new` references. Raises `SchemaInvalid` if the schemas are too large to be
    compared.
    """
    failed = check(new, earlier, level)
    if failed is None:
        return None
    version, found = failed
    old = dict(earlier)[version]
    return Advice(
        level,
        version,
        tuple(_fault(version, each, new, old) for each in found),
        tuple(each for each in Level if check(new, earlier, each) is None),
        repair(new, earlier, level, known),
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
    ("TYPE_MISMATCH", "new"): "{place}: {reader} cannot read {writer}, which version {version} "
    "wrote",
    ("TYPE_MISMATCH", "old"): "{place}: version {version} reads it as {reader}, which cannot read "
    "{writer}",
    ("MISSING_UNION_BRANCH", "new"): "{place}: {reader} cannot read {writer}, which version "
    "{version} wrote",
    ("MISSING_UNION_BRANCH", "old"): "{place}: version {version} reads it as {reader}, "
    "which cannot read {writer}",
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


def _fault(version: int, each: Incompatibility, new: AvroType, old: AvroType) -> Fault:
    reader, writer = (new, old) if each.reader == "new" else (old, new)
    place = place_name(reader, each.path)
    sentence = _SENTENCES[each.kind, each.reader].format(
        place=place or "the schema",
        version=version,
        detail=each.detail,
        reader=type_name(Draft(reader).type_at(each.reader_place)),
        writer=type_name(Draft(writer).type_at(each.writer_place)),
    )
    return Fault(version, place, sentence)
