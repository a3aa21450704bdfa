"""Proposes edits of a new schema whose datums the old schema cannot read. The edits try to make
these datums readable with the old schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skidway.schemas.advice.draft import Draft, place_name
from skidway.schemas.advice.edit import Edit, keep_name, keep_type, named_at
from skidway.schemas.advice.pieces import branches, union
from skidway.schemas.avro_schema import AvroType, Enum, Named, Record, Union
from skidway.schemas.compatibility import Incompatibility
from skidway.schemas.differences import type_name


def put_back(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes an edit for a removed field that the old schema still reads. The edit keeps the
    field. (A default in the old schema would help, too, but an edit can only change the new
    schema.)"""
    lost = Draft(old).field_at(fault.path)

    def change(draft: Draft) -> None:
        record = draft.record_at(fault.writer_place)
        record.fields.append(replace(lost, aliases=_free(lost.aliases, record)))

    yield Edit(f"keep field {place_name(old, fault.path)}: {type_name(lost.type)}", change)


def narrow(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes edits for a new type whose values the old schema cannot read. If the new type is a
    branch of a union, one edit drops this branch. Another edit keeps the old type."""
    place = fault.writer_place
    name = place_name(new, place) or "the schema"
    above, _, last = place.rpartition("/")
    if last.isdigit():
        written = Draft(new).type_at(above)
        if isinstance(written, Union):
            gone = written.branches[int(last)]

            def drop(draft: Draft) -> None:
                now = draft.type_at(above)
                left = [each for at, each in enumerate(branches(now)) if at != int(last)]
                draft.put(above, left[0] if len(left) == 1 else union(left))

            yield Edit(f"let {name} not be {type_name(gone)}", drop)
    yield keep_type(place, name, Draft(old).type_at(fault.reader_place))


def drop_symbols(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes an edit for an enum with symbols that the old schema does not know. The edit leaves
    these symbols out; its sentence says how to add the symbols in later versions."""
    there = Draft(old).type_at(fault.reader_place)

    def drop(draft: Draft) -> None:
        enum = draft.type_at(fault.writer_place)
        if isinstance(enum, Enum) and isinstance(there, Enum):
            enum.symbols = tuple(each for each in enum.symbols if each in there.symbols)
            enum.default = enum.default if enum.default in enum.symbols else None

    name = named_at(new, fault.writer_place)
    yield Edit(
        f"leave the symbols {fault.detail} out of {name}; give it a default first, in a version "
        "of its own, and then add them",
        drop,
    )


def former_name(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes an edit for a type that the old schema does not know under its new name. The edit
    keeps the old name."""
    there = Draft(old).type_at(fault.reader_place)
    if isinstance(there, Named):
        yield from keep_name(fault.writer_place, there)


def leave_out(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Proposes an edit for an old field whose aliases match several new fields. The edit leaves out
    the new fields that match only an alias."""
    field = Draft(old).field_at(fault.path)
    gone = set(field.aliases) - {field.name}

    def drop(draft: Draft) -> None:
        record = draft.record_at(fault.writer_place)
        record.fields[:] = [each for each in record.fields if each.name not in gone]

    yield Edit(f"leave out {', '.join(sorted(gone))}: {field.name} has these names too", drop)


def _free(aliases: tuple[str, ...], record: Record) -> tuple[str, ...]:
    taken = {each.name for each in record.fields}
    return tuple(each for each in aliases if each not in taken)
