"""Defines an edit of a draft (a schema that is being edited), and makes the edits that keep the old
type, name or size. The modules `backward` and `forward` both propose these edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from skidway.schemas.advice.draft import Draft
from skidway.schemas.avro_schema import AvroType, Fixed, Named
from skidway.schemas.differences import type_name


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a draft (a schema that is being edited). `words` is a sentence that says what the
    edit does, and `change` is the function that changes the draft."""

    words: str
    change: Callable[[Draft], None]


def keep_type(place: str, name: str, theirs: AvroType) -> Edit:
    """Returns the edit that restores the old type `theirs` at the path `place`. `name` is this path
    in a form for people."""
    return Edit(
        f"keep the type of {name}: {type_name(theirs)}", lambda draft: draft.put(place, theirs)
    )


def keep_name(place: str, there: Named) -> Iterator[Edit]:
    """Yields the edit that renames the type at the path `place` to the name of the old type
    `there`."""

    def keep(draft: Draft) -> None:
        made = draft.type_at(place)
        if isinstance(made, Named):
            made.name = there.name

    yield Edit(f"keep the name {there.name}", keep)


def keep_size(place: str, there: AvroType) -> Iterator[Edit]:
    """Yields the edit that sets the size of the fixed type at the path `place` to the size of the
    old type `there`. Yields nothing if `there` is no fixed type."""

    def keep(draft: Draft) -> None:
        made = draft.type_at(place)
        if isinstance(made, Fixed) and isinstance(there, Fixed):
            made.size = there.size

    if isinstance(there, Fixed):
        yield Edit(f"keep the size of fixed {there.name}: {there.size}", keep)


def named_at(root: AvroType, place: str) -> str:
    """Returns a short name for the type at the path `place`. Raises `PlaceMissing`."""
    return type_name(Draft(root).type_at(place))
