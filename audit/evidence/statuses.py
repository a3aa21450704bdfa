"""What the programs of a site have told about themselves. Only few answers need it, so it is
decoded when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from skidway.audit.topic import notes
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import ProgramStatus, status_of


class Statuses:
    """The newest note of each program in which it tells its status. values: the notes as bytes."""

    def __init__(self, values: Sequence[bytes] = ()) -> None:
        self._values = values

    @cached_property
    def told(self) -> tuple[tuple[Note, ProgramStatus], ...]:
        """The notes, each with the status in it."""
        found = map(notes.decode, self._values)
        return tuple((note, status_of(note)) for note in found)
