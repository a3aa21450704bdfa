"""Edits a schema until it is compatible. After each edit, `compatibility.check` judges the schema.
The number of edits is limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skidway.schemas.advice.draft import Draft, PlaceMissing
from skidway.schemas.advice.edit import Edit
from skidway.schemas.advice.edits import edits
from skidway.schemas.avro_schema import AvroType, Named, SchemaInvalid, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.compatibility import Incompatibility, Level, check

TRIES_MAX: Final = 200
"""At most this many edits are tried. If none of them leads to a compatible schema, the schema is
too different from the earlier versions."""
EDITS_MAX: Final = 50
"""A suggestion has at most this many edits."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A compatible schema that is similar to the author's schema. `edits`: sentences that say what
    was changed."""

    schema: str
    edits: tuple[str, ...]


def repair(
    new: AvroType,
    earlier: Sequence[tuple[int, AvroType]],
    level: Level,
    known: Mapping[str, Named] | None = None,
) -> Suggestion | None:
    """Returns a schema that is similar to `new`, and compatible with the versions `earlier` at this
    compatibility level. Returns None if it finds no such schema."""
    return _Search(earlier, level, known or {}).of(canonical(new, known or {}), ())


class _Search:
    """Searches depth first for edits that make a schema compatible. If several edits mend the
    schema's first fault (incompatibility), the search first continues with the edited schema that
    has the fewest faults left."""

    def __init__(
        self,
        earlier: Sequence[tuple[int, AvroType]],
        level: Level,
        known: Mapping[str, Named],
    ) -> None:
        self._earlier, self._level, self._known = earlier, level, known
        self._versions = dict(earlier)
        self._seen: set[str] = set()
        self._tries = 0

    def of(self, text: str, words: tuple[str, ...]) -> Suggestion | None:
        new = parse(text, self._known)
        failed = check(new, self._earlier, self._level)
        if failed is None:
            return Suggestion(text, words)
        if len(words) == EDITS_MAX:
            return None
        version, faults = failed
        old = self._versions[version]
        mended = [
            (len(left), edited, edit.words)
            for edit in edits(faults[0], new, old)
            if (edited := self._edited(text, edit)) is not None
            and faults[0] not in (left := self._faults(edited, version))
        ]
        for _, edited, said in sorted(mended, key=lambda each: each[0]):
            found = self.of(edited, (*words, said))
            if found is not None:
                return found
        return None

    def _edited(self, text: str, edit: Edit) -> str | None:
        """Returns the text of the schema `text` after an edit. Returns None if the edit cannot be
        made, if the new text is no valid schema or was tried before, or if `TRIES_MAX` edits were
        tried already."""
        if self._tries == TRIES_MAX:
            return None
        self._tries += 1
        draft = Draft(parse(text, self._known), self._known)
        try:
            edit.change(draft)
            edited = canonical(draft.root, self._known)
            parse(edited, self._known)
        except (PlaceMissing, SchemaInvalid):
            return None
        if edited in self._seen:
            return None
        self._seen.add(edited)
        return edited

    def _faults(self, edited: str, version: int) -> list[Incompatibility]:
        """Returns the incompatibilities that the edited schema still has with the earlier version
        `version`."""
        versions = [(version, self._versions[version])]
        after = check(parse(edited, self._known), versions, self._level)
        return [] if after is None else after[1]
