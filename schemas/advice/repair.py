"""Edits an incompatible schema until it is compatible.

Of the edits that can mend the first incompatibility, the search takes the one after which the
fewest are left, and goes on with the edited schema; among equals, the first, which keeps most of
the author's schema. Each edit has a sentence for the author, and changes a draft of the schema. No
edit changes an earlier version, because the registry keeps every schema permanently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from skidway.schemas.advice.differences import branches
from skidway.schemas.advice.draft import Draft, PlaceMissing, place_name
from skidway.schemas.avro_schema import (
    AvroType,
    Enum,
    Named,
    Primitive,
    Record,
    SchemaInvalid,
    Union,
    parse,
    type_name,
)
from skidway.schemas.canonical import canonical
from skidway.schemas.compatibility import Incompatibility, Level, check, incompatibilities

EDITS_MAX: Final = 50
"""A suggestion has at most this many edits. A schema that needs more is too different from the
earlier versions."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A compatible schema that is similar to the author's schema. `edits`: sentences that say what
    was changed."""

    schema: str
    edits: tuple[str, ...]


def repair(
    old: Sequence[tuple[int, AvroType]], new: AvroType, level: Level, known: Mapping[str, Named]
) -> Suggestion | None:
    """Returns a schema that is similar to `new`, and compatible with the versions `old` at this
    compatibility level. `known`: types of the schemas that `new` references, which are not edited.
    Returns None if it finds no such schema."""
    said: tuple[str, ...] = ()
    text, failed = canonical(new, known), check(new, old, level)
    seen = {text}
    while failed is not None and len(said) < EDITS_MAX:
        tried = []
        version, faults = failed
        for words, change in _edits(faults[0], parse(text, known), dict(old)[version]):
            draft = Draft(parse(text, known), known)
            try:
                change(draft)
                edited = canonical(draft.root, known)
                after = check(parse(edited, known), old, level)
            except (PlaceMissing, SchemaInvalid):
                continue
            left, rest = after or (0, [])
            if edited not in seen and (left != version or faults[0] not in rest):
                tried.append(((left, len(rest)), edited, words, after))
        if not tried:
            return None
        _, text, words, failed = min(tried, key=lambda each: each[0])
        seen.add(text)
        said = (*said, words)
    return None if failed is not None else Suggestion(text, said)


Edit = tuple[str, Callable[[Draft], None]]
"""What an edit does, as a sentence, and the function that does it."""


def _edits(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    try:
        case = _Case.of(fault, new, old)
        proposed = _EDITS.get((fault.kind, fault.reader))
        yield from () if proposed is None else proposed(case)
    except PlaceMissing:
        return


@dataclass(frozen=True, slots=True)
class _Case:
    """An incompatibility, with the two types that do not fit: `ours` is at the path `place` of the
    new schema, and `theirs` is in the old schema. `name`: `place` in a form for people."""

    fault: Incompatibility
    new: AvroType
    old: AvroType
    place: str
    name: str
    ours: AvroType
    theirs: AvroType

    @classmethod
    def of(cls, fault: Incompatibility, new: AvroType, old: AvroType) -> _Case:
        place, there = fault.reader_place, fault.writer_place
        if fault.reader == "old":
            place, there = there, place
        ours, theirs = Draft(new).type_at(place), Draft(old).type_at(there)
        return cls(fault, new, old, place, place_name(new, place) or "the schema", ours, theirs)


def _add_default(case: _Case) -> Iterator[Edit]:
    path, place = case.fault.path, place_name(case.new, case.fault.path)
    field, former = Draft(case.new).field_at(path), _former_name(case)

    def alias(draft: Draft) -> None:
        draft.field_at(path).aliases += (former,)

    if former:
        yield f"give field {place} the alias {former}, its former name", alias
    # null comes first: older versions of the Avro specification demand that the default of a union
    # fits the union's first branch
    nullable = _union(Primitive("null"), field.type)
    for avro, value in (nullable, None), (field.type, _zero(field.type)):

        def default(draft: Draft, avro: AvroType = avro, value: Any = value) -> None:
            ours = draft.field_at(path)
            ours.type, ours.default, ours.has_default = avro, value, True

        yield f"make {json.dumps(value)} the default of field {place}", default


def _former_name(case: _Case) -> str:
    """Returns the name of the only old field that no new field reads, and whose values the new
    field could read. Returns an empty text if there is no such field, or if there are several."""
    field = Draft(case.new).field_at(case.fault.path)
    if not isinstance(case.ours, Record) or not isinstance(case.theirs, Record):
        return ""
    read = {name for each in case.ours.fields for name in (each.name, *each.aliases)}
    left = [
        each.name
        for each in case.theirs.fields
        if each.name not in read and not incompatibilities(field.type, each.type)
    ]
    return left[0] if len(left) == 1 else ""


def _put_back(case: _Case) -> Iterator[Edit]:
    lost = Draft(case.old).field_at(case.fault.path)

    def put_back(draft: Draft) -> None:
        fields = draft.record_at(case.place).fields
        taken = {each.name for each in fields}
        free = tuple(each for each in lost.aliases if each not in taken)
        fields.append(replace(lost, aliases=free))

    yield f"keep field {place_name(case.old, case.fault.path)}: {type_name(lost.type)}", put_back


def _widen(case: _Case) -> Iterator[Edit]:
    """Proposes a union of both types, and the old type. The old type comes first if both are
    primitive, and it can hold all values of the new one."""
    primitive = isinstance(case.ours, Primitive) and isinstance(case.theirs, Primitive)
    if primitive and not incompatibilities(case.theirs, case.ours):
        yield from _keep_type(case)

    def widen(draft: Draft) -> None:
        draft.put(case.place, _union(draft.type_at(case.place), case.theirs))

    yield f"let {case.name} be {type_name(case.theirs)} as well, as it was before", widen
    yield from _keep_type(case)


def _narrow(case: _Case) -> Iterator[Edit]:
    """Proposes to drop the branch that the old schema cannot read, and to keep the old type."""
    above, _, last = case.place.rpartition("/")
    if last.isdigit() and isinstance(Draft(case.new).type_at(above), Union):

        def drop(draft: Draft) -> None:
            left = [*branches(draft.type_at(above)).values()]
            del left[int(last)]
            draft.put(above, left[0] if len(left) == 1 else Union(tuple(left)))

        yield f"let {case.name} not be {type_name(case.ours)}", drop
    yield from _keep_type(case)


def _keep_type(case: _Case) -> Iterator[Edit]:
    words = f"keep the type of {case.name}: {type_name(case.theirs)}"
    yield words, lambda draft: draft.put(case.place, case.theirs)


def _keep_symbols(case: _Case) -> Iterator[Edit]:
    def keep(draft: Draft) -> None:
        ours = draft.type_at(case.place)
        if isinstance(ours, Enum) and isinstance(case.theirs, Enum):
            ours.symbols = tuple(dict.fromkeys((*case.theirs.symbols, *ours.symbols)))

    yield f"keep the symbols {case.fault.detail} of {type_name(case.ours)}", keep


def _drop_symbols(case: _Case) -> Iterator[Edit]:
    def drop(draft: Draft) -> None:
        ours = draft.type_at(case.place)
        if isinstance(ours, Enum) and isinstance(case.theirs, Enum):
            ours.symbols = tuple(each for each in ours.symbols if each in case.theirs.symbols)
            ours.default = ours.default if ours.default in ours.symbols else None

    words = (
        f"leave the symbols {case.fault.detail} out of {type_name(case.ours)}; give it a default "
        "first, in a version of its own, and then add them"
    )
    yield words, drop


def _add_alias(case: _Case) -> Iterator[Edit]:
    def alias(draft: Draft) -> None:
        ours = draft.type_at(case.place)
        if isinstance(ours, Named) and isinstance(case.theirs, Named):
            ours.aliases += (case.theirs.name,)

    if isinstance(case.theirs, Named):
        words = f"give {type_name(case.ours)} the alias {case.theirs.name}, its former name"
        yield words, alias
    yield from _keep_name(case)


def _keep_name(case: _Case) -> Iterator[Edit]:
    def keep(draft: Draft) -> None:
        ours = draft.type_at(case.place)
        if isinstance(ours, Named) and isinstance(case.theirs, Named):
            ours.name = case.theirs.name

    if isinstance(case.theirs, Named):
        yield f"keep the name {case.theirs.name}", keep


def _drop_aliases(case: _Case) -> Iterator[Edit]:
    def drop(draft: Draft) -> None:
        draft.field_at(case.fault.path).aliases = ()

    yield f"give field {place_name(case.new, case.fault.path)} no alias that is a field too", drop


_EDITS: Final[dict[tuple[str, str], Callable[[_Case], Iterator[Edit]]]] = {
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "new"): _add_default,
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "old"): _put_back,
    ("TYPE_MISMATCH", "new"): _widen,
    ("TYPE_MISMATCH", "old"): _narrow,
    ("MISSING_UNION_BRANCH", "new"): _widen,
    ("MISSING_UNION_BRANCH", "old"): _narrow,
    ("MISSING_ENUM_SYMBOLS", "new"): _keep_symbols,
    ("MISSING_ENUM_SYMBOLS", "old"): _drop_symbols,
    ("NAME_MISMATCH", "new"): _add_alias,
    ("NAME_MISMATCH", "old"): _keep_name,
    ("FIXED_SIZE_MISMATCH", "new"): _keep_type,
    ("FIXED_SIZE_MISMATCH", "old"): _keep_type,
    ("READER_FIELD_AMBIGUOUS", "new"): _drop_aliases,
}
"""The edits for each incompatibility of a new reader, or of an old one."""


def _union(first: AvroType, second: AvroType) -> Union:
    """Returns a union of both types. Of branches that cannot be told apart, the first stays."""
    return Union(tuple((branches(first) | branches(second) | branches(first)).values()))


def _zero(avro: AvroType) -> Any:
    if isinstance(avro, Union):
        return _zero(avro.branches[0])
    if isinstance(avro, Enum):
        return next(iter(avro.symbols), None)
    return _ZEROS.get(avro.kind)


_ZEROS: Final[dict[str, Any]] = {
    "boolean": False, "int": 0, "long": 0, "float": 0.0, "double": 0.0, "bytes": "", "string": "",
    "array": [], "map": {},
}  # fmt: skip
