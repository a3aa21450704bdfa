"""Promises of before the start, sent again as they say.

An intent that cannot be replayed (bytes gone or changed, another program, given up by an operator)
is set apart as uncertain with everything promised behind it: whether its records arrived nobody
here knows. A file that cannot be opened right now is asked again later; its promises wait, and so
does its reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.delivery.intents import GIVEN_UP, Intent, Reading, crc_of
from agent.delivery.press import Outcome
from agent.delivery.recipe import Recipe, program_version
from agent.files.handles import Handles, Moved
from agent.files.host import Handle
from agent.files.reading import TURN_BYTES, Taken
from agent.files.tracked import Flight, TrackedFile
from agent.files.tracking import SetApart, Tracker
from agent.framing import READ_BYTES
from agent.identity import GUARD_BYTES
from audit.counts import Counts
from audit.messages import Certainty

AGAIN_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class _Bytes:
    """An intent's bytes (the head of an over-long line), the CRC of all before its end, a tail."""

    data: bytes
    prefix_crc: int
    tail: bytes


class Replay:
    """Owns the intents that were read from the state and are not on their way yet."""

    def __init__(
        self,
        intents: Iterable[Intent],
        recipes: Mapping[bytes, Recipe],
        tracker: Tracker,
        handles: Handles,
    ) -> None:
        self._waiting = deque(intents)
        self._recipes = recipes
        self._tracker = tracker
        self._handles = handles
        self._later: list[Intent] = []
        self._later_at = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing of before the start waits any more."""
        return not self._waiting and not self._later

    @property
    def can_go_on(self) -> bool:
        """Whether something waits that is not put off."""
        return bool(self._waiting)

    def take(self, now: float) -> list[Taken]:
        """The next readings, in the order in which they were promised."""
        if self._later and now >= self._later_at:
            self._waiting.extend(self._later)
            self._later = []
        taken: list[Taken] = []
        room = TURN_BYTES
        while self._waiting and room > 0:
            intent = self._waiting.popleft()
            one = self._replay(intent, now)
            if one is not None:
                room -= len(one.reading.data)
                taken.append(one)
        return taken

    def _replay(self, intent: Intent, now: float) -> Taken | None:
        tracked = self._tracker.files.get(intent.file)
        if tracked is None or any(late.file == intent.file for late in self._later):
            self._later.append(intent)
            return None
        try:
            found = self._proven_bytes(intent, tracked)
        except OSError as error:
            self._tracker.cannot_read(tracked, error)
            self._handles.drop(tracked.file)
            self._later.append(intent)
            self._later_at = now + AGAIN_AFTER_S
            return None
        if found is None:
            self._set_apart(intent, tracked, "its bytes are not what was promised", None)
            return None
        recipe = self._recipes.get(intent.recipe)
        if recipe is None or recipe.program != program_version():
            reason = "another version of the program had promised it"
            if intent.recipe == GIVEN_UP:
                reason = "an operator gave up what was on its way"
            self._set_apart(intent, tracked, reason, found)
            return None
        flight = Flight(intent, tracked.read_on(found.prefix_crc, found.tail, intent.end))
        self._tracker.launch(tracked, flight)
        reading = Reading(intent, found.data, tracked.birth.host, tracked.birth.path)
        return Taken(tracked, reading, flight, is_new=False)

    def _proven_bytes(self, intent: Intent, tracked: TrackedFile) -> _Bytes | None:
        """None if the bytes are gone or others; OSError if they cannot be had right now."""
        if intent.first != tracked.read_position:
            return None  # what was before it could not be replayed
        try:
            handle = self._handles.get(tracked)
        except Moved:
            return None
        if intent.length > READ_BYTES:
            return _long(handle, intent, tracked.read_crc)
        data = handle.read(intent.length, intent.first)
        if len(data) != intent.length or crc_of(data) != intent.crc:
            return None
        tail = ((tracked.tail or b"") + data[-GUARD_BYTES:])[-GUARD_BYTES:]
        return _Bytes(data, crc_of(data, tracked.read_crc), tail)

    def _set_apart(
        self, intent: Intent, tracked: TrackedFile, reason: str, found: _Bytes | None
    ) -> None:
        """Notes the range; a file whose bytes are unproven is looked at again before it is read."""
        if found is not None:
            after = tracked.read_on(found.prefix_crc, found.tail, intent.end)
        else:
            after = tracked.skip_to(intent.end)
            tracked.verified = False
            self._tracker.doubts[tracked.birth.topic] += 1
        flight = Flight(intent, after, Outcome(0, 0, Counts()), uncertain_bytes=intent.length)
        self._tracker.launch(tracked, flight)
        self._tracker.news.set_apart.append(
            SetApart(tracked, intent.first, intent.end, Certainty.UNCERTAIN, reason)
        )


def _long(handle: Handle, intent: Intent, before: int) -> _Bytes | None:
    """An over-long line is looked through piece by piece; only its head is kept."""
    crc, prefix_crc, at = 0, before, intent.first
    head = tail = b""
    while at < intent.end:
        piece = handle.read(min(READ_BYTES, intent.end - at), at)
        if not piece:
            return None
        head = head or piece
        crc, prefix_crc = crc_of(piece, crc), crc_of(piece, prefix_crc)
        tail = (tail + piece)[-GUARD_BYTES:]
        at += len(piece)
    return _Bytes(head, prefix_crc, tail) if crc == intent.crc else None
