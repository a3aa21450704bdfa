"""Replays the intents that were made before the agent started. To replay an intent is to send its
records again unchanged.

Some intents cannot be replayed: their bytes are gone or changed, another version of the program
made the intents, this program refuses their settings, a broker refused one of their records, or an
operator gave them up. The replay hands such an intent, and all later intents of its file, to the
inquiry. The inquiry finds out which of their records the brokers have, before it declares bytes
lost or uncertain. A file that cannot be opened right now is tried again later. Until then, its
intents wait, and the file is not read. The intents of a topic that has no room (see `values.room`)
wait in the same way, until brokers acknowledge batches of the topic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from skidway.agent.batches.program_versions import at_present
from skidway.agent.delivery.evidence import proven_bytes
from skidway.agent.delivery.inquiry import AGAIN_AFTER_S, Inquiry
from skidway.agent.delivery.presses import Presses
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.reading import TURN_BYTES, TURN_LINES, Taken
from skidway.agent.files.tracking import Tracker
from skidway.agent.recipe import Recipe, has_refusal
from skidway.agent.values.intents import GIVEN_UP, Intent
from skidway.agent.values.room import Room
from skidway.agent.values.tracked import Flight


class Replay:
    """Owns the intents that were read from the state and are not sent again yet."""

    def __init__(
        self,
        intents: Iterable[Intent],
        presses: Presses,
        tracker: Tracker,
        handles: Handles,
        inquiry: Inquiry,
    ) -> None:
        self._waiting = deque(intents)
        self._presses = presses
        self._tracker = tracker
        self._handles = handles
        self._inquiry = inquiry
        self._later: list[Intent] = []
        self._later_at = 0.0
        self._held_back: dict[str, deque[Intent]] = {}  # by topic: its waiting intents, in order

    @property
    def is_over(self) -> bool:
        """Whether all intents that were made before the agent started have been sent again, or
        handed to the inquiry, which looks for their records in the brokers' logs.
        """
        return not (self._waiting or self._later or self._held_back)

    @property
    def can_go_on(self) -> bool:
        """Whether an intent waits that can be sent now. Ignores the intents of files that cannot be
        opened right now, and of topics that have no room.
        """
        return bool(self._waiting)

    @property
    def held_back(self) -> set[str]:
        """The topics with intents that wait because their topic had no room."""
        return set(self._held_back)

    def take(self, now: float, room: Room) -> list[Taken]:
        """Returns the next intents to send again, with their bytes. The intents of a file come in
        the order of its bytes."""
        if self._later and now >= self._later_at:
            self._try_again()
        taken: list[Taken] = []
        left, lines_left = TURN_BYTES, TURN_LINES
        for intent in self._next(room):
            one = self._replay(intent, now)
            if one is not None:
                left -= len(one.reading.data)
                lines_left -= self._presses.weight(one.reading)
                room.take(one.tracked.birth.topic, len(one.reading.data))
                taken.append(one)
            if left <= 0 or lines_left <= 0:
                break
        return taken

    def _try_again(self) -> None:
        """Moves the intents of files that could not be opened to the head of the queue, so that the
        intents of a file stay in their order."""
        for intent in reversed(self._later):
            self._held_back.get(self._topic(intent), self._waiting).appendleft(intent)
        self._later = []

    def _next(self, room: Room) -> Iterator[Intent]:
        """Removes and yields the intents of topics with room; the intents that were held back come
        first. Holds back the intents of the other topics. The intents of a topic stay in their
        order."""
        for topic in [each for each in self._held_back if room.has(each)]:
            intents = self._held_back.pop(topic)
            self._waiting.extendleft(reversed(intents))
        while self._waiting:
            intent = self._waiting.popleft()
            topic = self._topic(intent)
            if room.has(topic):
                yield intent
            else:
                self._held_back.setdefault(topic, deque()).append(intent)

    def _topic(self, intent: Intent) -> str:
        tracked = self._tracker.files.get(intent.file)
        return "" if tracked is None else tracked.birth.topic

    def _replay(self, intent: Intent, now: float) -> Taken | None:
        tracked = self._tracker.files.get(intent.file)
        if tracked is None or any(late.file == intent.file for late in self._later):
            self._later.append(intent)
            return None
        recipe = self._presses.recipe(intent.recipe)
        reason = self._obstacle(intent, recipe)
        if reason is not None:
            self._inquiry.ask(intent, tracked, recipe, reason)
            return None
        try:
            found = proven_bytes(self._handles, tracked, intent)
        except Moved:
            found = None  # `inquiry` looks for the file's present path
        except OSError as error:
            self._tracker.cannot_read(tracked, error)
            self._handles.drop(tracked.file)
            self._later.append(intent)
            self._later_at = now + AGAIN_AFTER_S
            return None
        if found is None:
            reason = "its bytes are not what was promised"
            self._inquiry.ask(intent, tracked, recipe, reason)
            return None
        flight = Flight(intent, tracked.read_on(found.prefix_crc, found.tail, intent.end))
        self._tracker.launch(tracked, flight)
        return Taken(tracked, tracked.reading(intent, found.data), flight, is_new=False)

    def _obstacle(self, intent: Intent, recipe: Recipe | None) -> str | None:
        """Returns why the intent cannot be replayed even if the file's bytes are unchanged. Returns
        None if only changed or missing bytes can prevent the replay.
        """
        if intent.recipe == GIVEN_UP:
            return "an operator gave up what was on its way"
        if recipe is not None and has_refusal(recipe):
            return "the broker had refused a record of it"
        if recipe is None or recipe != at_present(recipe):
            return "another version of the program had promised it"
        if not self._presses.can_press(recipe):
            return "the program cannot make its records any more"
        if self._inquiry.has(intent.file):
            return "what was promised before it could not be sent again"
        return None
